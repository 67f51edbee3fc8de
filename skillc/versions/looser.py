"""Whether gates are at least as strict as others: nothing that the old ones reject is ever accepted by the new ones.

An answer of True is a proof; False only says that none was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from skillc.gates.stages import reads_batch
from skillc.gates.terms import Operation, Term
from skillc.versions.order import Bounds
from skillc.versions.quantities import Compared, Condition, Junction, condition, junction

_ZERO, _ONE = Fraction(0), Fraction(1)


def as_strict(new: Sequence[Term], old: Term, bounds: Bounds) -> bool:
    """Whether whatever all the new gates accept is accepted by an old one.

    That has to hold for a candidate that has a training batch, and for one of an epoch's end that has none: there a
    comparison that reads the batch is left out.

    Args:
        new: the terms of all gates that a candidate must pass.
        old: the term of one gate.
        bounds: the ranges of metrics.
    """
    if not implies(_all(new), condition(old), bounds):
        return False
    rest = without_batch(old)
    return rest is None or implies(_all(kept for term in new if (kept := without_batch(term))), condition(rest), bounds)


def _all(terms: Iterable[Term]) -> Condition:
    return junction("and", (condition(term) for term in terms))


def without_batch(term: Term) -> Term | None:
    """A condition without the comparisons that read the batch; None where nothing is left."""
    if isinstance(term, Operation) and term.operator in ("and", "or", "not"):
        rest = [part for operand in term.operands if (part := without_batch(operand)) is not None]
        if len(rest) > 1 or (rest and term.operator == "not"):
            return Operation(term.operator, tuple(rest))
        return rest[0] if rest else None
    return None if reads_batch(term) else term


def implies(new: Condition, old: Condition, bounds: Bounds) -> bool:
    """Whether the old condition is shown to hold wherever the new one does."""
    if new == old:
        return True
    if isinstance(old, Junction) and old.operator == "and":
        return all(implies(new, part, bounds) for part in old.parts)
    if isinstance(new, Junction) and new.operator == "or":
        return all(implies(part, old, bounds) for part in new.parts)
    if isinstance(new, Junction) and any(implies(part, old, bounds) for part in new.parts):
        return True
    if isinstance(old, Junction):
        return any(implies(new, part, bounds) for part in old.parts)
    return isinstance(new, Compared) and isinstance(old, Compared) and _comparison(new, old, bounds)


def _comparison(new: Compared, old: Compared, bounds: Bounds) -> bool:
    """`old.sum` is at least a positive multiple of `new.sum`, so that the one is above 0 where the other is."""
    if new.operator == "!=":
        return False
    if old.operator == "==":
        return new.operator == "==" and any(
            old.sum == new.sum.scaled(factor) for factor in _factors(new, old, any_=True)
        )
    if old.operator == "!=":
        above = Compared(">", old.sum)
        below = Compared(">", old.sum.scaled(-_ONE))
        return _comparison(new, above, bounds) or _comparison(new, below, bounds)
    for factor in _factors(new, old, any_=new.operator == "=="):
        left = bounds.least(old.sum - new.sum.scaled(factor))
        if left is None:
            continue
        strict = old.operator == ">" and not (new.operator == ">" and factor > 0)
        if left > 0 or (left == 0 and not strict):
            return True
    return False


def _factors(new: Compared, old: Compared, *, any_: bool) -> Iterator[Fraction]:
    """Multiples of the new sum that are worth a try: those that take an atom of the old one away."""
    yield from (_ZERO, _ONE)
    ours = new.sum.coefficients
    ratios = dict.fromkeys(each / ours[atom] for atom, each in old.sum.terms if atom in ours)
    yield from (ratio for ratio in ratios if ratio > 0 or any_)
