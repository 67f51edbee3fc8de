"""Draw a gate with the values under it, as Pkl draws a failed constraint, and describe it in one line.

candidate.score > incumbent.score + 2%
|                 |
|                 80 %
35 % to 81.25 % (63 of 80)

at best 81.25 %, needs more than 82 % (`incumbent.score + 2%`)
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import cast

from skillc.dataclass import dataclass
from skillc.gates.evaluate import decide, value
from skillc.gates.evidence import Evidence, SplitEvidence
from skillc.gates.functions import RUN_FUNCTIONS, is_arithmetic, is_on_batch, without_option
from skillc.gates.intervals import UNIT, Interval, Truth
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
from skillc.gates.units import POINTS, SHARE, format_amount, places_for, unit_of_metric

_GAP = 3
_NEEDS = {">": "more than", ">=": "at least", "<": "less than", "<=": "at most", "==": "exactly", "!=": "anything but"}


def draw(term: Term, evidence: Evidence) -> str:
    """Draw the failed comparisons of a gate, or all if none failed, with the value of every operand.

    A partially measured quantity is drawn as its interval, with the number of measured examples. Failures are evaluated
    first, so a mean over the measured part would mislead.
    """
    return "\n\n".join(_draw(comparison, evidence) for comparison in _comparisons(term, evidence))


def brief(term: Term, evidence: Evidence) -> str:
    """Describe the value and the bound of a gate in one line: `at best 66.95 %, needs more than 66.95 %`.

    Numbers have enough digits to keep different values distinct.
    """
    found = list(_requirements(term, evidence, negated=False))
    return "; ".join(_sentence(each, evidence, named=len(found) > 1) for each in found)


@dataclass(frozen=True, slots=True)
class _Requirement:
    """A comparison with the quantity that the candidate changes on the left; `failed` if it can no longer hold."""

    subject: Term
    operator: Comparison
    bound: Term
    failed: bool


def _requirements(term: Term, evidence: Evidence, *, negated: bool) -> Iterator[_Requirement]:
    """Return the comparisons that must hold, without `not`; of a failed `and` only the failing ones."""
    assert isinstance(term, Operation)
    fails = Truth.TRUE if negated else Truth.FALSE
    if term.operator == "not":
        yield from _requirements(term.operands[0], evidence, negated=not negated)
    elif term.operator in ("and", "or"):
        every = (term.operator == "and") != negated
        failed = [operand for operand in term.operands if decide(operand, evidence) is fails] if every else []
        for operand in failed or term.operands:
            yield from _requirements(operand, evidence, negated=negated)
    else:
        left, right = term.operands
        operator = OPPOSITE[term.operator] if negated else cast(Comparison, term.operator)
        if _candidate_rank(right) > _candidate_rank(left):
            left, right, operator = right, left, MIRRORED[operator]
        yield _Requirement(left, operator, right, decide(term, evidence) is fails)


def _candidate_rank(term: Term) -> int:
    """2 for a quantity of the candidate, 1 for one of another skill, 0 for a constant."""

    def rank(part: Term) -> int:
        match part:
            case MeanTerm(state) | StateTerm(state):
                return 2 if state == "candidate" else 1
            case CallTerm(function):
                return 2 if RUN_FUNCTIONS[function].about_candidate else 0
        return 0

    return max(map(rank, walk(term)))


def _sentence(each: _Requirement, evidence: Evidence, *, named: bool) -> str:
    have, need = value(each.subject, evidence), value(each.bound, evidence)
    details, known = _details(each.subject, evidence, have), have.known
    if each.failed and each.operator in (">", ">="):
        have, need = Interval(have.high, have.high), Interval(need.low, need.low)
    elif each.failed and each.operator in ("<", "<="):
        have, need = Interval(have.low, have.low), Interval(need.high, need.high)
    unit = unit_of(each.subject, evidence) or unit_of(each.bound, evidence) or ""
    places = places_for([*_ends(have), *_ends(need)], unit)
    best = "at best " if not known and have.low == have.high else ""
    name = f"`{show_term(each.subject)}` " if named else ""
    shown = f"{name}{best}{_interval(have, unit, places)}{details}"
    computed = isinstance(each.bound, Operation) and any(_operands(each.bound))
    formula = f" (`{show_term(each.bound)}`)" if computed else ""
    return f"{shown}, needs {_NEEDS[each.operator]} {_interval(need, unit, places)}{formula}"


@dataclass(frozen=True, slots=True)
class SideState:
    """One side of a comparison on the evidence so far.

    Attributes:
        low, high: its interval in base units; None for an infinite end.
        shown: the interval in its unit, with the number of measured examples while it is open.
    """

    text: str
    low: float | None
    high: float | None
    shown: str


@dataclass(frozen=True, slots=True)
class ComparisonState:
    """A comparison of a gate: both sides and its truth so far."""

    left: SideState
    operator: str
    right: SideState
    truth: str


@dataclass(frozen=True, slots=True)
class GateState:
    """A gate on the evidence so far: `true`, `false` or `unknown`."""

    name: str
    truth: str
    comparisons: tuple[ComparisonState, ...]


def gate_state(name: str, truth: Truth, term: Term, evidence: Evidence) -> GateState:
    """Return a gate with the intervals of the comparisons that `draw` draws, for display while it is decided."""
    found = tuple(_comparison_state(comparison, evidence) for comparison in _comparisons(term, evidence))
    return GateState(name, truth.name.lower(), found)


def _comparison_state(comparison: Term, evidence: Evidence) -> ComparisonState:
    assert isinstance(comparison, Operation)
    inner = comparison.operands[0] if comparison.operator == "not" else comparison
    assert isinstance(inner, Operation)
    operator = cast(Comparison, inner.operator)
    left, right = inner.operands
    unit = unit_of(left, evidence) or unit_of(right, evidence) or ""
    values = value(left, evidence), value(right, evidence)
    places = places_for([end for each in values for end in _ends(each)], unit)
    return ComparisonState(
        left=_side_state(left, values[0], unit, places, evidence),
        operator=OPPOSITE[operator] if inner is not comparison else operator,
        right=_side_state(right, values[1], unit, places, evidence),
        truth=decide(comparison, evidence).name.lower(),
    )


def _side_state(term: Term, interval: Interval, unit: str, places: int, evidence: Evidence) -> SideState:
    low, high = (None if end is None else float(end) for end in interval.bounds)
    shown = _interval(interval, unit, places) + _details(term, evidence, interval)
    return SideState(show_term(term), low, high, shown + ("" if interval.known else _measured(term, evidence)))


def _comparisons(term: Term, evidence: Evidence) -> Iterator[Term]:
    if not _is_logic(term):
        yield term
        return
    assert isinstance(term, Operation)
    if term.operator == "not" and not _is_logic(term.operands[0]):
        yield term
        return
    failed = [o for o in term.operands if decide(o, evidence) is Truth.FALSE] if term.operator == "and" else []
    for operand in failed or term.operands:
        yield from _comparisons(operand, evidence)


def _is_logic(term: Term) -> bool:
    return isinstance(term, Operation) and term.operator in ("and", "or", "not")


def _draw(comparison: Term, evidence: Evidence) -> str:
    text, marks, start = show_term(comparison), [], 0
    operands = [(operand, unit_of(operand, evidence) or "") for operand in _operands(comparison)]
    ends: dict[str, list[Fraction]] = {}
    for operand, unit in operands:
        ends.setdefault(unit, []).extend(_ends(value(operand, evidence)))
    places = {unit: places_for(found, unit) for unit, found in ends.items()}
    for operand, unit in operands:
        written = show_term(operand)
        column = text.index(written, start)
        start = column + len(written)
        interval = value(operand, evidence)
        shown = _interval(interval, unit, places[unit]) + _details(operand, evidence, interval)
        marks.append((column, shown + _measured(operand, evidence)))
    return "\n".join([text, *_rows(marks)])


def _ends(interval: Interval) -> list[Fraction]:
    return [end for end in interval.bounds if end is not None]


def _rows(marks: list[tuple[int, str]]) -> Iterator[str]:
    """Render values under their columns: as many as fit on a line, from the right, and bars for the others."""
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
    """The quantities of a comparison from left to right, constants left out."""
    if is_arithmetic(term):
        for part in parts(term):
            yield from _operands(part)
    elif isinstance(term, CallTerm | MeanTerm):
        yield term


def _details(term: Term, evidence: Evidence, interval: Interval) -> str:
    """Return the total that a quantity is a share of, and its group."""
    base, group = evidence.texts.base, _group(term, evidence, interval)
    relative = isinstance(term, CallTerm) and RUN_FUNCTIONS[term.function].share_of_tokens
    return (f" of {base:,} tokens" if relative and base else "") + (f" in `{group}`" if group is not None else "")


def _interval(interval: Interval, unit: str, places: int) -> str:
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
    """Return the first group by name that has the worst value; None while several may be the worst."""
    by = term.option("by") if isinstance(term, CallTerm) else None
    if not isinstance(term, CallTerm) or not isinstance(by, FieldTerm) or whole.low != whole.high:
        return None
    split = _split(term, evidence)
    for name, indices in split.named_groups(by.name):
        part = SplitEvidence(tuple(split.examples[i] for i in indices), split.samples, split.lookup, split.ranges)
        group = Evidence(part, part, evidence.texts, evidence.planned, evidence.seed)
        if value(without_option(term, "by"), group) == whole:
            return name
    return None


def _split(term: Term, evidence: Evidence) -> SplitEvidence:
    batch = isinstance(term, CallTerm) and is_on_batch(term)
    return evidence.batch if batch else evidence.validation


def _measured(term: Term, evidence: Evidence) -> str:
    """Render the number of examples measured on everything that a quantity reads: ` (63 of 80)`; empty if all."""
    import numpy as np

    split = _split(term, evidence)
    columns = [split.column(state, metric) for state, metric in _columns_read(term)]
    if not columns:
        return ""
    known = int(np.logical_and.reduce([column.low == column.high for column in columns]).sum())
    return f" ({known} of {len(split.examples)})" if known < len(split.examples) else ""


def _columns_read(term: Term) -> list[tuple[SkillState, str]]:
    """Return the columns that a quantity reads. A metric as argument is read for the candidate and the incumbent."""
    found: list[tuple[SkillState, str]] = []
    for part in walk(term):
        match part:
            case MeanTerm(state, metric):
                found.append((state, metric))
            case MetricTerm(metric):
                found += [("candidate", metric), ("incumbent", metric)]
    return found


# ---- units ----------------------------------------------------------------------------------------


def unit_of(term: Term, evidence: Evidence) -> str | None:
    """The unit of a quantity of run level; None for a plain constant, which takes the unit of the other side."""

    def combine(part: Term, inner: list[str | None]) -> str | None:
        match part:
            case Constant(_, unit):
                return unit or None
            case MeanTerm(_, metric) | MetricTerm(metric):
                whole = evidence.validation.ranges[metric]
                if whole.share:
                    return SHARE
                return unit_of_metric(whole.unit, Fraction(whole.low, 10**6), Fraction(whole.high, 10**6))
            case CallTerm(function, arguments):
                builtin = RUN_FUNCTIONS[function]
                if builtin.unit is None:
                    return next((unit for unit in inner[: len(arguments)] if unit), None)
                share = builtin.share_of_tokens or builtin.range == UNIT
                return SHARE if share and not builtin.unit else builtin.unit
            case Operation(operator):
                return _of_operation(operator, inner)
        return None

    return fold(term, combine)


def _of_operation(operator: str, inner: list[str | None]) -> str | None:
    """A difference of two shares is in points; a product or quotient with a constant keeps its unit."""
    known = [part for part in inner if part is not None]
    if operator == "-" and inner == [SHARE] * 2:
        return POINTS
    if (operator in ("*", "/") and len(known) > 1) or (operator == "/" and inner[0] is None):
        return ""
    return known[0] if known else None
