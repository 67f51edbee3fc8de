"""Draw a gate with the values under it, the way Pkl draws a failed constraint, and describe it in one sentence.

candidate.score > incumbent.score + 2%
|                 |
|                 80 %
35 % to 81.25 % (63 of 80)

at best 81.25 %, needs more than 82 % (`incumbent.score + 2%`)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from skillc.gates.evaluate import decide, value
from skillc.gates.evidence import Evidence, SplitEvidence
from skillc.gates.functions import RUN_FUNCTIONS, is_arithmetic, is_on_batch, without_option
from skillc.gates.intervals import UNIT, Endpoint, Interval, Truth
from skillc.gates.terms import (
    MIRRORED,
    OPPOSITE,
    CallTerm,
    Comparison,
    Constant,
    FieldTerm,
    MeanTerm,
    MetricTerm,
    Operation,
    SkillState,
    StateTerm,
    Term,
    fold,
    parts,
    show_term,
    walk,
)
from skillc.gates.units import POINTS, SHARE, Unit, format_amount, places_for, unit_of_metric

_GAP = 3
_NEEDS = {
    ">": "more than",
    ">=": "at least",
    "<": "less than",
    "<=": "at most",
    "==": "exactly",
    "!=": "anything but",
}


def draw(term: Term, evidence: Evidence) -> str:
    """Draw the comparisons that a gate fails by, or all of them, each with the value of every operand.

    A quantity that is known in part is drawn as its interval, with how much of it was measured: failures are evaluated
    first, so a mean over a part would mislead.
    """
    return "\n\n".join(_draw(comparison, evidence) for comparison in _comparisons(term, evidence))


def brief(term: Term, evidence: Evidence) -> str:
    """Describe in one line the value and the bound of a gate: `at best 66.95 %, needs more than 66.95 %`.

    Numbers are exact up to the digits shown, and have enough digits to tell apart values that differ.
    """
    demands = list(_demands(term, evidence, negated=False))
    return "; ".join(_sentence(demand, evidence, named=len(demands) > 1) for demand in demands)


@dataclass(frozen=True, slots=True)
class _Demand:
    """One comparison, with the quantity that the candidate moves on the left; `failed` if it can no longer hold."""

    subject: Term
    operator: str
    bound: Term
    failed: bool


def _demands(term: Term, evidence: Evidence, *, negated: bool) -> Iterator[_Demand]:
    """The comparisons that have to hold, without `not`; of an `and` that fails only those that fail."""
    assert isinstance(term, Operation)
    fails = Truth.TRUE if negated else Truth.FALSE
    if term.operator == "not":
        yield from _demands(term.operands[0], evidence, negated=not negated)
    elif term.operator in ("and", "or"):
        every = (term.operator == "and") != negated
        failed = [operand for operand in term.operands if decide(operand, evidence) is fails] if every else []
        for operand in failed or term.operands:
            yield from _demands(operand, evidence, negated=negated)
    else:
        left, right = term.operands
        operator = OPPOSITE[term.operator] if negated else cast(Comparison, term.operator)
        if _moves(right) > _moves(left):
            left, right, operator = right, left, MIRRORED[operator]
        yield _Demand(left, operator, right, decide(term, evidence) is fails)


def _moves(term: Term) -> int:
    """How much of a quantity the candidate moves: 2 for its own, 1 for another skill's, 0 for a constant."""

    def own(part: Term) -> int:
        match part:
            case MeanTerm(state) | StateTerm(state):
                return 2 if state == "candidate" else 1
            case CallTerm(function):
                return 2 if RUN_FUNCTIONS[function].about_candidate else 0
        return 0

    return max(own(part) for part in walk(term))


def _sentence(demand: _Demand, evidence: Evidence, *, named: bool) -> str:
    have, need = value(demand.subject, evidence), value(demand.bound, evidence)
    group, known = _group(demand.subject, evidence, have), have.known
    if demand.failed and demand.operator in (">", ">="):
        have, need = _point(have.high), _point(need.low)
    elif demand.failed and demand.operator in ("<", "<="):
        have, need = _point(have.low), _point(need.high)
    unit = unit_of(demand.subject, evidence) or unit_of(demand.bound, evidence) or Unit("")
    places = places_for([*_ends(have), *_ends(need)], unit)
    best = "at best " if not known and have.low == have.high else ""
    shown = f"{best}{_interval(have, unit, places)}{_of(demand.subject, evidence)}"
    if group is not None:
        shown += f" in `{group}`"
    if named:
        shown = f"`{show_term(demand.subject)}` {shown}"
    return f"{shown}, needs {_NEEDS[demand.operator]} {_interval(need, unit, places)}{_computed(demand.bound)}"


def _point(end: Endpoint) -> Interval:
    return Interval(end, end)


def _computed(bound: Term) -> str:
    """The expression that a bound was computed from, unless it is a single quantity."""
    reckoned = isinstance(bound, Operation) and any(True for _ in _operands(bound))
    return f" (`{show_term(bound)}`)" if reckoned else ""


def _comparisons(term: Term, evidence: Evidence) -> Iterator[Term]:
    if isinstance(term, Operation) and term.operator in ("and", "or", "not"):
        failed = [o for o in term.operands if decide(o, evidence) is Truth.FALSE] if term.operator == "and" else []
        if term.operator == "not" and not _is_logic(term.operands[0]):
            yield term
            return
        for operand in failed or term.operands:
            yield from _comparisons(operand, evidence)
    else:
        yield term


def _is_logic(term: Term) -> bool:
    return isinstance(term, Operation) and term.operator in ("and", "or", "not")


def _draw(comparison: Term, evidence: Evidence) -> str:
    text, marks, start = show_term(comparison), [], 0
    ends: dict[Unit, list[Fraction]] = {}
    for operand in _operands(comparison):
        ends.setdefault(_unit(operand, evidence), []).extend(_ends(value(operand, evidence)))
    places = {unit: places_for(found, unit) for unit, found in ends.items()}
    for operand in _operands(comparison):
        written = show_term(operand)
        column = text.index(written, start)
        start = column + len(written)
        unit = _unit(operand, evidence)
        marks.append((column, _known(operand, evidence, unit, places[unit])))
    return "\n".join([text, *_rows(marks)])


def _unit(term: Term, evidence: Evidence) -> Unit:
    return unit_of(term, evidence) or Unit("")


def _ends(interval: Interval) -> list[Fraction]:
    return [end for end in interval.bounds if end is not None]


def _rows(marks: list[tuple[int, str]]) -> Iterator[str]:
    """Values under their columns: from the right as many as fit on a line, bars for those that wait."""
    if marks:
        yield _row([(column, "|") for column, _ in marks])
    while marks:
        placed: list[tuple[int, str]] = []
        waiting: list[tuple[int, str]] = []
        edge: int | None = None
        for column, shown in reversed(marks):
            if edge is None or column + len(shown) + _GAP <= edge:
                placed.append((column, shown))
            else:
                placed.append((column, "|"))
                waiting.append((column, shown))
            edge = column
        yield _row(placed[::-1])
        marks = waiting[::-1]


def _row(cells: list[tuple[int, str]]) -> str:
    line = ""
    for column, shown in cells:
        line = line.ljust(column) + shown
    return line


def _operands(term: Term) -> Iterator[Term]:
    """The quantities of a comparison from left to right, without constants."""
    if is_arithmetic(term):
        for part in parts(term):
            yield from _operands(part)
    elif isinstance(term, CallTerm | MeanTerm):
        yield term


def _known(term: Term, evidence: Evidence, unit: Unit, places: int) -> str:
    """The value or interval of a quantity, the group that it is of, and how much was measured."""
    interval = value(term, evidence)
    shown = _interval(interval, unit, places) + _of(term, evidence)
    group = _group(term, evidence, interval)
    return shown + (f" in `{group}`" if group is not None else "") + _measured(term, evidence)


def _of(term: Term, evidence: Evidence) -> str:
    """The base of a share that its text leaves open: `change` is of the incumbent or of the section limits."""
    base = evidence.texts.base
    return f" of {base:,} tokens" if isinstance(term, CallTerm) and term.function == "change" and base else ""


def _interval(interval: Interval, unit: Unit, places: int) -> str:
    low, high = interval.low, interval.high
    if isinstance(low, float) and isinstance(high, float):
        return "unknown"
    if isinstance(high, float):
        return f"at least {format_amount(Fraction(low), unit, places)}"
    if isinstance(low, float):
        return f"at most {format_amount(high, unit, places)}"
    if low == high:
        return format_amount(low, unit, places)
    return f"{format_amount(low, unit, places)} to {format_amount(high, unit, places)}"


def _group(term: Term, evidence: Evidence, whole: Interval) -> str | None:
    """The first group, by name, that has the value of the worst one; None while several may be the worst."""
    by = term.option("by") if isinstance(term, CallTerm) else None
    if not isinstance(term, CallTerm) or not isinstance(by, FieldTerm) or whole.low != whole.high:
        return None
    split = _split(term, evidence)
    for name, indices in split.named_groups(by.name):
        if value(without_option(term, "by"), _only(evidence, split, indices)) == whole:
            return name
    return None


def _only(evidence: Evidence, split: SplitEvidence, indices: list[int]) -> Evidence:
    part = SplitEvidence(tuple(split.examples[i] for i in indices), split.samples, split.lookup, split.ranges)
    return Evidence(part, part, evidence.texts, evidence.planned, evidence.seed)


def _split(term: Term, evidence: Evidence) -> SplitEvidence:
    batch = isinstance(term, CallTerm) and is_on_batch(term)
    return evidence.batch if batch else evidence.validation


def _measured(term: Term, evidence: Evidence) -> str:
    """` (63 of 80)`: the examples on which everything that the quantity reads was measured; empty where all were."""
    split = _split(term, evidence)
    columns = [split.column(state, metric) for state, metric in _reads(term)]
    if not columns:
        return ""
    known = int(np.logical_and.reduce([column.low == column.high for column in columns]).sum())
    return f" ({known} of {len(split.examples)})" if known < len(split.examples) else ""


def _reads(term: Term) -> list[tuple[SkillState, str]]:
    """The cells that a quantity is made of; a metric as an argument is read for the candidate and the incumbent."""
    found: list[tuple[SkillState, str]] = []
    for part in walk(term):
        match part:
            case MeanTerm(state, metric):
                found.append((state, metric))
            case MetricTerm(metric):
                found += [("candidate", metric), ("incumbent", metric)]
    return found


# ---- units ----------------------------------------------------------------------------------------


def unit_of(term: Term, evidence: Evidence) -> Unit | None:
    """The unit of a quantity of run level; None for a constant without one, which takes the unit of the other side."""

    def combine(part: Term, inner: list[Unit | None]) -> Unit | None:
        match part:
            case Constant(_, unit):
                return Unit(unit) if unit else None
            case MeanTerm(_, metric) | MetricTerm(metric):
                whole = evidence.validation.ranges[metric]
                return unit_of_metric(whole.unit, Fraction(whole.low, 10**6), Fraction(whole.high, 10**6))
            case CallTerm(function, arguments):
                builtin = RUN_FUNCTIONS[function]
                if builtin.unit is None:
                    return next((unit for unit in inner[: len(arguments)] if unit), None)
                share = builtin.percent or builtin.range == UNIT
                return Unit(SHARE if share and not builtin.unit else builtin.unit)
            case Operation(operator):
                return _of_operation(operator, inner)
        return None

    return fold(term, combine)


def _of_operation(operator: str, inner: list[Unit | None]) -> Unit | None:
    """A difference of two shares is in points; a product or quotient with a constant keeps its unit."""
    known = [part for part in inner if part is not None]
    if operator == "-" and inner == [Unit(SHARE)] * 2:
        return Unit(POINTS)
    if operator in ("*", "/") and len(known) > 1:
        return Unit("")
    if operator == "/" and inner[0] is None:
        return Unit("")
    return known[0] if known else None
