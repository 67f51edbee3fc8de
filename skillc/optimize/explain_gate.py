"""A gate drawn with the value of each operand under it, the way Pkl draws a failed constraint.

candidate.score > incumbent.score + 2%
|                 |
|                 0.8
0.35 to 0.81 (63 of 80)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from skillc.language.show import show_term
from skillc.language.terms import CallTerm, FieldTerm, MeanTerm, MetricTerm, Operation, State, Term, WordTerm
from skillc.optimize.evidence import Evidence, SplitEvidence
from skillc.optimize.gates import decide, value
from skillc.optimize.intervals import Interval, Truth

_COMPOSED = ("min", "max", "clamp")
_IN_PERCENT = ("improved", "regressed", "change", "overlap", "confidence")
_ORDERS = (">", ">=", "<", "<=")
_GAP = 3


def draw(term: Term, evidence: Evidence) -> str:
    """The comparisons that a failed gate fails by, each with what is known of its operands; otherwise all of them.

    A quantity that is known in part is drawn as its interval, with how much of it was measured: failures are evaluated
    first, so a mean over a part would mislead.
    """
    return "\n\n".join(_draw(comparison, evidence) for comparison in _comparisons(term, evidence))


def brief(term: Term, evidence: Evidence) -> str:
    """As `draw` on one line, with each operand replaced by what is known of it: `0.35 to 0.81 > 0.8 + 2%`.

    Where a comparison of two bare quantities fails, an open one is told by the end that decides: `at most 0.8 > 0.8`.
    """
    return "; ".join(_filled_in(comparison, evidence) for comparison in _comparisons(term, evidence))


def _filled_in(comparison: Term, evidence: Evidence) -> str:
    line, rest = "", show_term(comparison)
    failed = isinstance(comparison, Operation) and decide(comparison, evidence) is Truth.FALSE
    for operand in _operands(comparison):
        before, _, rest = rest.partition(show_term(operand))
        interval = value(operand, evidence)
        group = _group(operand, evidence, interval)
        if failed:
            interval = _deciding(interval, operand, comparison)
        line += before + _interval(interval, operand) + (f" in `{group}`" if group is not None else "")
    return line + rest


def _deciding(interval: Interval, operand: Term, comparison: Term) -> Interval:
    """The end by which a comparison fails: of the side that should be greater the upper one, of the other the lower."""
    if not isinstance(comparison, Operation) or comparison.operator not in _ORDERS or interval.lo == interval.hi:
        return interval
    if operand not in comparison.operands:
        return interval
    upper = (operand == comparison.operands[0]) == (comparison.operator in (">", ">="))
    return Interval(-math.inf, interval.hi) if upper else Interval(interval.lo, math.inf)


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
    for operand in _operands(comparison):
        written = show_term(operand)
        column = text.index(written, start)
        start = column + len(written)
        marks.append((column, _known(operand, evidence)))
    return "\n".join([text, *_rows(marks)])


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
    """The quantities of a comparison from left to right; constants speak for themselves."""
    if isinstance(term, Operation):
        for operand in term.operands:
            yield from _operands(operand)
    elif isinstance(term, CallTerm) and term.function in _COMPOSED:
        for argument in term.arguments:
            yield from _operands(argument)
    elif isinstance(term, CallTerm | MeanTerm):
        yield term


def _known(term: Term, evidence: Evidence) -> str:
    """What is known of a quantity: its value or its interval, the group that it is of, and how much was measured."""
    interval = value(term, evidence)
    shown = _interval(interval, term)
    group = _group(term, evidence, interval)
    return shown + (f" in `{group}`" if group is not None else "") + _measured(term, evidence)


def _interval(interval: Interval, term: Term) -> str:
    if interval.lo == interval.hi:
        return _number(interval.lo, term)
    if isinstance(interval.lo, float) and isinstance(interval.hi, float):
        return "unknown"
    if isinstance(interval.hi, float):
        return f"at least {_number(interval.lo, term)}"
    if isinstance(interval.lo, float):
        return f"at most {_number(interval.hi, term)}"
    return f"{_number(interval.lo, term)} to {_number(interval.hi, term)}"


def _number(end: Fraction | float, term: Term) -> str:
    function = term.function if isinstance(term, CallTerm) else ""
    if function == "tokens":
        return f"{float(end):,.0f} tokens"
    if function == "cost":
        return f"${_digits(end, 6)}"
    if function == "latency":
        return f"{_digits(end, 3)} s"
    return f"{_digits(end * 100, 2)}%" if function in _IN_PERCENT else _digits(end, 4)


def _digits(end: Fraction | float, places: int) -> str:
    text = f"{float(end):.{places}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _group(term: Term, evidence: Evidence, whole: Interval) -> str | None:
    """The first group, by name, whose value the worst group's is; None where several may be it."""
    by = term.option("by") if isinstance(term, CallTerm) else None
    if not isinstance(term, CallTerm) or not isinstance(by, FieldTerm) or whole.lo != whole.hi:
        return None
    split = _split(term, evidence)
    for name, indices in split.named_groups(by.name):
        if value(_ungrouped(term), _only(evidence, split, indices)) == whole:
            return name
    return None


def _ungrouped(term: CallTerm) -> Term:
    if term.function == "worst":
        return term.arguments[0]
    return CallTerm(term.function, term.arguments, tuple(option for option in term.options if option[0] != "by"))


def _only(evidence: Evidence, split: SplitEvidence, indices: list[int]) -> Evidence:
    part = SplitEvidence(tuple(split.examples[i] for i in indices), split.samples, split.lookup, split.ranges)
    return Evidence(part, part, evidence.texts, evidence.planned, evidence.seed)


def _split(term: Term, evidence: Evidence) -> SplitEvidence:
    batch = isinstance(term, CallTerm) and term.option("on") == WordTerm("batch")
    return evidence.batch if batch else evidence.validation


def _measured(term: Term, evidence: Evidence) -> str:
    """` (63 of 80)`: the examples on which everything that the quantity reads was measured; empty where all were."""
    split = _split(term, evidence)
    columns = [split.column(state, metric) for state, metric in _reads(term)]
    if not columns:
        return ""
    known = int(np.logical_and.reduce([column.low == column.high for column in columns]).sum())
    return f" ({known} of {len(split.examples)})" if known < len(split.examples) else ""


def _reads(term: Term) -> list[tuple[State, str]]:
    if isinstance(term, MeanTerm):
        return [(term.state, term.metric)]
    if isinstance(term, CallTerm):
        own: list[tuple[State, str]] = [
            (state, argument.name)
            for argument in term.arguments
            if isinstance(argument, MetricTerm)
            for state in ("candidate", "incumbent")
        ]
        return own + [pair for argument in term.arguments for pair in _reads(argument)]
    if isinstance(term, Operation):
        return [pair for operand in term.operands for pair in _reads(operand)]
    return []
