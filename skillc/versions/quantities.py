"""Quantities in one form, whichever way they were written: a constant and a weighted sum of atoms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal

from skillc.gates.terms import CallTerm, Constant, Operation, Term, WordTerm

_ZERO, _ONE = Fraction(0), Fraction(1)
_NONE = WordTerm("none")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True, slots=True)
class Atom:
    """What sums are made of: a term as it stands, or a function of other sums, whose order may not matter."""

    kind: Literal["term", "min", "max", "product", "quotient", "truth"]
    term: Term | None = None
    parts: tuple[Linear, ...] = ()
    condition: Condition | None = None


@dataclass(frozen=True)
class Linear:
    """`constant + sum of coefficient * atom`; no coefficient is 0, and atoms stand in one order."""

    constant: Fraction = _ZERO
    terms: tuple[tuple[Atom, Fraction], ...] = ()

    @cached_property
    def coefficients(self) -> dict[Atom, Fraction]:
        """By atom."""
        return dict(self.terms)

    def __add__(self, other: Linear) -> Linear:
        total = dict(self.coefficients)
        for atom, coefficient in other.terms:
            total[atom] = total.get(atom, _ZERO) + coefficient
        return _linear(self.constant + other.constant, total)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.scaled(-_ONE)

    def scaled(self, factor: Fraction) -> Linear:
        """Each number times a factor."""
        return _linear(self.constant * factor, {atom: each * factor for atom, each in self.terms})


@dataclass(frozen=True, slots=True)
class Compared:
    """`sum > 0`, `sum >= 0`, `sum == 0` or `sum != 0`."""

    operator: Literal[">", ">=", "==", "!="]
    sum: Linear


@dataclass(frozen=True, slots=True)
class Junction:
    """All of the parts (`and`), or one of them (`or`); no two parts are the same, none is of the same kind."""

    operator: Literal["and", "or"]
    parts: frozenset[Condition] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Plain:
    """A condition that is no comparison, such as a bool field of an example; `holds` is False under a `not`."""

    term: Term
    holds: bool = True


Condition = Compared | Junction | Plain


def _linear(constant: Fraction, coefficients: dict[Atom, Fraction]) -> Linear:
    kept = ((atom, coefficient) for atom, coefficient in coefficients.items() if coefficient)
    return Linear(constant, tuple(sorted(kept, key=lambda pair: repr(pair[0]))))


def _one(atom: Atom) -> Linear:
    return Linear(_ZERO, ((atom, _ONE),))


def quantity(term: Term) -> Linear:
    """A term of a number as a sum."""
    if isinstance(term, Constant):
        return Linear(term.value)
    if isinstance(term, Operation):
        return _operation(term)
    if isinstance(term, CallTerm):
        return _call(term)
    return _one(Atom("term", term))


def _operation(term: Operation) -> Linear:
    if term.operator in (*_COMPARISONS, "and", "or", "not"):
        return _one(Atom("truth", condition=condition(term)))
    parts = [quantity(operand) for operand in term.operands]
    if term.operator == "negate":
        return parts[0].scaled(-_ONE)
    left, right = parts
    if term.operator == "+":
        return left + right
    if term.operator == "-":
        return left - right
    if term.operator == "*":
        return _product(left, right)
    if not right.terms and right.constant:
        return left.scaled(1 / right.constant)
    return _one(Atom("quotient", parts=(left, right)))


def _product(left: Linear, right: Linear) -> Linear:
    for plain, other in ((left, right), (right, left)):
        if not plain.terms:
            return other.scaled(plain.constant)
    return _one(Atom("product", parts=tuple(sorted((left, right), key=repr))))


def _call(term: CallTerm) -> Linear:
    if term.function in ("min", "max"):
        return _extreme(term.function == "min", [quantity(argument) for argument in term.arguments])
    if term.function == "clamp":
        x, low, high = (quantity(argument) for argument in term.arguments)
        return _extreme(False, [low, _extreme(True, [x, high])])
    return _one(Atom("term", _plain_call(term)))


def _extreme(least: bool, parts: Iterable[Linear]) -> Linear:
    """The smallest or the greatest; one in another of its kind is one."""
    kind: Literal["min", "max"] = "min" if least else "max"
    flat: set[Linear] = set()
    for part in parts:
        inner = part.terms[0][0] if len(part.terms) == 1 and part == _one(part.terms[0][0]) else None
        flat |= set(inner.parts) if inner is not None and inner.kind == kind else {part}
    if len(flat) == 1:
        return flat.pop()
    return _one(Atom(kind, parts=tuple(sorted(flat, key=repr))))


def _plain_call(term: CallTerm) -> CallTerm:
    """A call without the options that say nothing, the others in one order; a claim says what is above."""
    options = tuple(sorted((name, value) for name, value in term.options if value != _NONE))
    arguments = term.arguments
    if term.function in ("confidence", "e_value") and isinstance(arguments[0], Operation):
        left, right = arguments[0].operands
        # The test is of which mean is above; `>` and `>=` are one question to it.
        pair = (right, left) if arguments[0].operator in ("<", "<=") else (left, right)
        arguments = (Operation(">", pair),)
    return CallTerm(term.function, arguments, options)


def condition(term: Term, holds: bool = True) -> Condition:
    """A term of a condition, or of its contrary, with every `not` carried into the comparisons."""
    if isinstance(term, Operation):
        if term.operator == "not":
            return condition(term.operands[0], not holds)
        if term.operator in ("and", "or"):
            same: Literal["and", "or"] = "and" if (term.operator == "and") == holds else "or"
            return junction(same, (condition(part, holds) for part in term.operands))
        if term.operator in _COMPARISONS and not _of_texts(term):
            return _compared(term, holds)
    return Plain(term, holds)


def _of_texts(term: Operation) -> bool:
    return any(getattr(part, "kind", "") in ("text", "word", "field") for part in term.operands)


def _compared(term: Operation, holds: bool) -> Compared:
    left, right = (quantity(part) for part in term.operands)
    operator = term.operator
    if not holds:
        contrary = {">": "<=", ">=": "<", "<": ">=", "<=": ">", "==": "!=", "!=": "=="}
        operator = contrary[operator]  # type: ignore[assignment]  # the keys and values are operators
    if operator in (">", ">="):
        return Compared(operator, left - right)
    if operator in ("<", "<="):
        return Compared(">" if operator == "<" else ">=", right - left)
    both = sorted((left - right, right - left), key=repr)
    return Compared("==" if operator == "==" else "!=", both[0])


def junction(operator: Literal["and", "or"], parts: Iterable[Condition]) -> Condition:
    """Several conditions as one; one in another of its kind is one."""
    flat: set[Condition] = set()
    for part in parts:
        flat |= part.parts if isinstance(part, Junction) and part.operator == operator else {part}
    return next(iter(flat)) if len(flat) == 1 else Junction(operator, frozenset(flat))
