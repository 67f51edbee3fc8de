"""The normal form of terms: numbers as weighted sums, conditions without `not`, alternatives of linear constraints.

Everything that is not a sum is an atom: a mean, a call, a product of two quantities. Atoms are terms in normal form, so
equal atoms in different notation are identical.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Literal, TypeVar, cast

from skillc.dataclass import dataclass
from skillc.gates.functions import is_arithmetic, is_claim_test
from skillc.gates.terms import (
    OPPOSITE,
    CallTerm,
    Comparison,
    Constant,
    FieldTerm,
    Operation,
    Operator,
    Term,
    TextConstant,
    WordTerm,
    parts,
    with_parts,
)

_ZERO, _ONE = Fraction(0), Fraction(1)
_NONE = WordTerm("none")
_ARITHMETIC = ("+", "-", "negate", "*", "/")
_MOST = 64
_Alternative = TypeVar("_Alternative")


class TooMany(Exception):  # noqa: N818
    """A condition has more alternatives than the limit."""


@dataclass(frozen=True, slots=True)
class Sum:
    """`weights[x] * x + ... + constant` over atoms; no weight is 0."""

    weights: Mapping[Term, Fraction]
    constant: Fraction = _ZERO

    def __add__(self, other: Sum) -> Sum:
        weights = dict(self.weights)
        for term, weight in other.weights.items():
            weights[term] = weights.get(term, _ZERO) + weight
        return Sum({term: weight for term, weight in weights.items() if weight}, self.constant + other.constant)

    def __neg__(self) -> Sum:
        return self.scaled(-_ONE)

    def __sub__(self, other: Sum) -> Sum:
        return self + -other

    def scaled(self, by: Fraction) -> Sum:
        """The sum times a number."""
        if not by:
            return Sum({})
        return Sum({term: weight * by for term, weight in self.weights.items()}, self.constant * by)

    @property
    def term(self) -> Term:
        """The sum as a term; equal sums are equal terms."""
        ordered = sorted(self.weights.items(), key=lambda pair: repr(pair[0]))
        terms = [atom if weight == 1 else Operation("*", (Constant(weight), atom)) for atom, weight in ordered]
        if self.constant or not terms:
            terms.append(Constant(self.constant))
        return terms[0] if len(terms) == 1 else Operation("+", tuple(terms))


def arithmetic(operator: str, parts: Sequence[Sum]) -> Sum | None:
    """Apply an arithmetic operator to sums; return None for a product or quotient that is not a sum."""
    if operator == "negate":
        return -parts[0]
    if operator == "+":
        return sum(parts[1:], parts[0])
    left, right = parts
    if operator == "-":
        return left - right
    if not right.weights and (operator == "*" or right.constant):
        return left.scaled(right.constant if operator == "*" else 1 / right.constant)
    return right.scaled(left.constant) if operator == "*" and not left.weights else None


# ---- terms ----------------------------------------------------------------------------------------


def normal_form(term: Term) -> Term:
    """The normal form of a term, equal for terms that differ only in notation."""
    if isinstance(term, Operation) and term.operator not in _ARITHMETIC:
        return _condition(term, holds=True)
    return linear(term).term


def linear(term: Term) -> Sum:
    """A number as a sum of atoms."""
    match term:
        case Constant(value):
            return Sum({}, value)
        case Operation(operator, operands) if operator in _ARITHMETIC:
            inner = [linear(operand) for operand in operands]
            found = arithmetic(operator, inner)
            if found is not None:
                return found
            terms = [each.term for each in inner]
            return _atom(Operation(operator, tuple(sorted(terms, key=repr) if operator == "*" else terms)))
        case Operation():
            return _atom(_condition(term, holds=True))
        case CallTerm("min" | "max" as function, arguments):
            return _extreme(function, [normal_form(each) for each in arguments])
        case CallTerm("clamp", (x, low, high)):
            return _extreme("max", [normal_form(low), _extreme("min", [normal_form(x), normal_form(high)]).term])
        case CallTerm():
            return _atom(_call(term))
    return _atom(with_parts(term, [normal_form(part) for part in parts(term)]))


def _atom(term: Term) -> Sum:
    return Sum({term: _ONE})


def _extreme(function: str, arguments: Sequence[Term]) -> Sum:
    """`min` or `max`, with nested ones of the same kind flattened."""
    flat: set[Term] = set()
    for each in arguments:
        flat |= set(each.arguments) if isinstance(each, CallTerm) and each.function == function else {each}
    return linear(flat.pop()) if len(flat) == 1 else _atom(CallTerm(function, tuple(sorted(flat, key=repr))))


def _call(term: CallTerm) -> CallTerm:
    """Return a call without options that are `none`, with its other options sorted."""
    options = tuple(sorted((name, normal_form(value)) for name, value in term.options if value != _NONE))
    if is_claim_test(term) and isinstance(claim := term.arguments[0], Operation):
        # The test claims that one mean is higher, so `>` and `>=` are equivalent.
        pair = claim.operands[::-1] if claim.operator in ("<", "<=") else claim.operands
        return CallTerm(term.function, (Operation(">", pair),), options)
    return CallTerm(term.function, tuple(normal_form(each) for each in term.arguments), options)


def _condition(term: Term, *, holds: bool) -> Term:
    """A condition, or its negation, with every `not` moved into the comparisons."""
    match term:
        case Operation("not", (inner,)):
            return _condition(inner, holds=not holds)
        case Operation("and" | "or" as operator, operands):
            same: Literal["and", "or"] = "and" if (operator == "and") == holds else "or"
            flat: set[Term] = set()
            for part in (_condition(operand, holds=holds) for operand in operands):
                flat |= set(part.operands) if isinstance(part, Operation) and part.operator == same else {part}
            return flat.pop() if len(flat) == 1 else Operation(same, tuple(sorted(flat, key=repr)))
        case Operation(operator, (left, right)) if operator in OPPOSITE:
            comparison = cast(Comparison, operator if holds else OPPOSITE[operator])
            texts = any(isinstance(side, FieldTerm | TextConstant) for side in (left, right))
            if texts and comparison in ("==", "!="):
                return Operation(comparison, tuple(sorted((left, right), key=repr)))
            return _compared(comparison, linear(left) - linear(right))
    plain = normal_form(term)
    return plain if holds else Operation("not", (plain,))


def _compared(operator: Comparison, difference: Sum) -> Term:
    """A comparison with 0, scaled so that the first weight is 1, or -1 if the sign matters."""
    if operator in ("<", "<="):
        operator, difference = (">" if operator == "<" else ">="), -difference
    lead = min(difference.weights.items(), key=lambda pair: repr(pair[0]), default=(None, _ONE))[1]
    scaled = difference.scaled(1 / (lead if operator in ("==", "!=") else abs(lead)))
    return Operation(operator, (scaled.term, Constant(_ZERO)))


# ---- alternatives ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constraint:
    """`sum >= 0`, or `sum > 0` if strict; `leaf` is the comparison as written, or its `not`."""

    sum: Sum
    strict: bool
    leaf: Term


Clause = tuple[Constraint, ...]
"""Constraints that hold together."""


def clauses(term: Term, *, holds: bool = True) -> list[Clause]:
    """Return alternatives: at least one holds if and only if the condition does (does not, for `holds=False`).

    `min`, `max` and `clamp` equal one of their arguments, so each adds alternatives.

    Raises:
        TooMany: there are more than the limit.
    """
    match term:
        case Operation("not", (inner,)):
            return clauses(inner, holds=not holds)
        case Operation("and" | "or" as operator, operands):
            found = [clauses(operand, holds=holds) for operand in operands]
            if (operator == "and") != holds:
                return _few([clause for part in found for clause in part])
            joined: list[Clause] = [()]
            for part in found:
                joined = _few([(*before, *clause) for before, clause in product(joined, part)])
            return joined
        case Operation():
            return _comparison(term, holds=holds)
    return [()]


def _few(found: list[_Alternative]) -> list[_Alternative]:
    if len(found) > _MOST:
        raise TooMany
    return found


def _comparison(leaf: Operation, *, holds: bool) -> list[Clause]:
    operator = leaf.operator if holds else OPPOSITE[leaf.operator]
    written: Term = leaf if holds else Operation("not", (leaf,))
    found: list[Clause] = []
    for difference, guards in _sums(Operation("-", leaf.operands), written):
        up, down = difference, -difference
        if operator == "==":
            found.append((*guards, Constraint(up, False, written), Constraint(down, False, written)))
        elif operator == "!=":
            found += [(*guards, Constraint(up, True, written)), (*guards, Constraint(down, True, written))]
        else:
            sign = up if operator in (">", ">=") else down
            found.append((*guards, Constraint(sign, operator in (">", "<"), written)))
    return _few(found)


def _sums(term: Term, leaf: Term) -> list[tuple[Sum, Clause]]:
    """Return the sums that a quantity may equal, each with the constraints under which it does."""
    if not is_arithmetic(term):
        return [(linear(term), ())]
    # A product of two quantities is one atom, so that it is the same wherever it occurs.
    if isinstance(term, Operation) and arithmetic(term.operator, [linear(part) for part in term.operands]) is None:
        return [(linear(term), ())]
    inner = [_sums(part, leaf) for part in parts(term)]
    match term:
        case CallTerm("clamp"):
            value, low, high = inner
            return _extremes([low, _extremes([value, high], leaf, smallest=True)], leaf, smallest=False)
        case CallTerm(function):
            return _extremes(inner, leaf, smallest=function == "min")
    assert isinstance(term, Operation)
    return _few([_arithmetic(term.operator, chosen) for chosen in product(*inner)])


def _arithmetic(operator: Operator, chosen: Sequence[tuple[Sum, Clause]]) -> tuple[Sum, Clause]:
    found = arithmetic(operator, [each for each, _ in chosen])
    assert found is not None
    return found, tuple(guard for _, clause in chosen for guard in clause)


def _extremes(inner: list[list[tuple[Sum, Clause]]], leaf: Term, *, smallest: bool) -> list[tuple[Sum, Clause]]:
    found = []
    for chosen in product(*inner):
        guards = tuple(guard for _, clause in chosen for guard in clause)
        for i, (one, _) in enumerate(chosen):
            others = (other for j, (other, _) in enumerate(chosen) if j != i)
            beyond = [other - one if smallest else one - other for other in others]
            if any(not each.weights and each.constant < 0 for each in beyond):
                continue
            found.append((one, (*guards, *(Constraint(each, False, leaf) for each in beyond if each.weights))))
    return _few(found)
