"""Conditions of run level as alternatives of linear comparisons, so that what they demand can be reckoned with.

A term that is no sum stands for itself: two that read the same are the same quantity. `min`, `max` and `clamp` are one
of their arguments each time, so each makes alternatives, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeVar

from skillc.gates.terms import CallTerm, Constant, ListTerm, Operation, Operator, Term

_ONE = Fraction(1)
_ZERO = Fraction(0)
_MOST = 64
_Alternative = TypeVar("_Alternative")

_FLIPPED: dict[str, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE: dict[str, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


class TooMany(Exception):  # noqa: N818
    """More alternatives than are worth the time."""


@dataclass(frozen=True, slots=True)
class Sum:
    """`weights[x] * x + ... + constant`, over quantities that stand for themselves."""

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


@dataclass(frozen=True, slots=True)
class Demand:
    """`sum >= 0`, or `sum > 0` where it is strict; `leaf` is the comparison that was written, or its `not`."""

    sum: Sum
    strict: bool
    leaf: Term


Clause = tuple[Demand, ...]
"""Demands that hold together."""


def clauses(term: Term, *, holds: bool = True) -> list[Clause]:
    """The alternatives of which at least one holds exactly if the condition does (does not, for `holds=False`).

    Raises:
        TooMany: there are too many of them.
    """
    if isinstance(term, Operation) and term.operator == "not":
        return clauses(term.operands[0], holds=not holds)
    if isinstance(term, Operation) and term.operator in ("and", "or"):
        parts = [clauses(operand, holds=holds) for operand in term.operands]
        if (term.operator == "and") == holds:
            return _together(parts)
        return _few([clause for part in parts for clause in part])
    return _comparison(term, holds=holds) if isinstance(term, Operation) else [()]


def _together(parts: list[list[Clause]]) -> list[Clause]:
    joined: list[Clause] = [()]
    for part in parts:
        joined = _few([(*before, *clause) for before, clause in product(joined, part)])
    return joined


def _few(found: list[_Alternative]) -> list[_Alternative]:
    if len(found) > _MOST:
        raise TooMany
    return found


def _comparison(leaf: Operation, *, holds: bool) -> list[Clause]:
    operator = leaf.operator if holds else _OPPOSITE[leaf.operator]
    written: Term = leaf if holds else Operation("not", (leaf,))
    found: list[Clause] = []
    for difference, guards in _sums(Operation("-", leaf.operands), written):
        up, down = difference, -difference
        if operator == "==":
            found.append((*guards, Demand(up, False, written), Demand(down, False, written)))
        elif operator == "!=":
            found += [(*guards, Demand(up, True, written)), (*guards, Demand(down, True, written))]
        else:
            sign = up if operator in (">", ">=") else down
            found.append((*guards, Demand(sign, operator in (">", "<"), written)))
    return _few(found)


# ---- quantities -----------------------------------------------------------------------------------


def _sums(term: Term, leaf: Term) -> list[tuple[Sum, Clause]]:
    """What a quantity is, with what decides which of the alternatives it is."""
    if isinstance(term, Constant):
        return [(Sum({}, term.value), ())]
    if isinstance(term, CallTerm) and term.function in ("min", "max"):
        return _extreme([_sums(each, leaf) for each in term.arguments], leaf, least=term.function == "min")
    if isinstance(term, CallTerm) and term.function == "clamp":
        value, low, high = (_sums(each, leaf) for each in term.arguments)
        return _extreme([_extreme([value, low], leaf, least=False), high], leaf, least=True)
    if isinstance(term, Operation) and term.operator in ("+", "-", "negate", "*", "/"):
        return _few([_arithmetic(term, parts) for parts in product(*(_sums(o, leaf) for o in term.operands))])
    return [(Sum({normal(term): _ONE}), ())]


def _arithmetic(term: Operation, parts: tuple[tuple[Sum, Clause], ...]) -> tuple[Sum, Clause]:
    guards = tuple(guard for _, clause in parts for guard in clause)
    joined = arithmetic(term.operator, [each for each, _ in parts])
    return (joined if joined is not None else Sum({normal(term): _ONE})), guards


def arithmetic(operator: str, parts: Sequence[Sum]) -> Sum | None:
    """What `+`, `-`, `negate`, `*` or `/` make of sums; None where that is none: a product or quotient of two."""
    if operator == "negate":
        return -parts[0]
    left, right = parts
    if operator in ("+", "-"):
        return left + right if operator == "+" else left - right
    if not right.weights and (operator == "*" or right.constant):
        return left.scaled(right.constant if operator == "*" else 1 / right.constant)
    return right.scaled(left.constant) if operator == "*" and not left.weights else None


def _extreme(parts: list[list[tuple[Sum, Clause]]], leaf: Term, *, least: bool) -> list[tuple[Sum, Clause]]:
    found = []
    for chosen in product(*parts):
        guards = tuple(guard for _, clause in chosen for guard in clause)
        for i, (one, _) in enumerate(chosen):
            others = (other for j, (other, _) in enumerate(chosen) if j != i)
            beyond = tuple(Demand(other - one if least else one - other, False, leaf) for other in others)
            found.append((one, (*guards, *beyond)))
    return _few(found)


def normal(term: Term) -> Term:
    """One form for what two orders say alike: `a < b` and `b > a` in a claim, `a * b` and `b * a`."""
    if isinstance(term, CallTerm):
        options = tuple((name, normal(value)) for name, value in term.options)
        return CallTerm(term.function, tuple(normal(each) for each in term.arguments), options)
    if isinstance(term, ListTerm):
        return ListTerm(tuple(normal(each) for each in term.items))
    if not isinstance(term, Operation):
        return term
    operands = tuple(normal(each) for each in term.operands)
    if term.operator in ("<", "<="):
        return Operation(_FLIPPED[term.operator], operands[::-1])
    if term.operator in ("*", "+", "==", "!="):
        operands = tuple(sorted(operands, key=repr))
    return Operation(term.operator, operands)
