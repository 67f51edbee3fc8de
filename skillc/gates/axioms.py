"""What always holds of the quantities of gates: their ranges, and how they hang together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Protocol

from skillc.gates.functions import RUN_FUNCTIONS
from skillc.gates.linear import Sum, arithmetic
from skillc.gates.ranges import Range
from skillc.gates.terms import CallTerm, Constant, MeanTerm, MetricTerm, Operation, StateTerm, Term

_ONE = Fraction(1)
_ROUNDED = Fraction(1, 10**6)
"""Scores are kept in millionths, so a sum of rounded ones may differ from a rounded sum by that much."""

Known = tuple[Sum, bool]
"""`sum >= 0`, or `sum > 0` where the second is True."""


class Metric(Protocol):
    """A metric with its range; an end is None where no bound is known."""

    @property
    def name(self) -> str:
        """How terms refer to it."""

    @property
    def term(self) -> Term:
        """How it is computed from fields and other metrics."""

    @property
    def low(self) -> Fraction | None:
        """The least value."""

    @property
    def high(self) -> Fraction | None:
        """The greatest value."""


class Axioms:
    """What is known of the quantities of one program.

    Args:
        metrics: with their ranges.
        change: the most that `change(candidate)` can be, where the sections' limits bound it.
        least_tokens: what every skill of a run has: its frozen texts.
    """

    def __init__(self, metrics: Iterable[Metric], change: Fraction | None, least_tokens: int) -> None:
        self._metrics = {metric.name: metric for metric in metrics}
        self._change = change
        self._least_tokens = least_tokens
        self._known: dict[Term, tuple[Known, ...]] = {}

    def about(self, terms: Iterable[Term]) -> list[Known]:
        """All that is known of some quantities, and of those that they hang together with."""
        waiting = list(terms)
        seen: set[Term] = set()
        found: list[Known] = []
        while waiting:
            term = waiting.pop()
            if term in seen:
                continue
            seen.add(term)
            if term not in self._known:
                self._known[term] = tuple(self._of(term))
            for each in self._known[term]:
                found.append(each)
                waiting += each[0].weights
        return found

    def related(self, terms: Iterable[Term]) -> set[Term]:
        """Some quantities, and those that they hang together with."""
        every = set(terms)
        return every.union(*(each.weights for each, _ in self.about(every)))

    def _of(self, term: Term) -> Iterator[Known]:
        yield from _within(term, self._range(term))
        if isinstance(term, MeanTerm):
            yield from self._parts(term)
        elif isinstance(term, CallTerm) and term.function == "worst":
            mean = term.arguments[0]
            yield Sum({mean: _ONE, term: -_ONE}), False
        elif isinstance(term, CallTerm) and term.function in ("improved", "regressed"):
            yield from self._moved(term)

    def _parts(self, mean: MeanTerm) -> Iterator[Known]:
        """The mean of a sum is the sum of the means."""
        metric = self._metrics.get(mean.metric)
        parts = _as_sum(metric.term) if metric is not None else None
        if parts is None or not parts.weights:
            return
        weights: dict[Term, Fraction] = {}
        for term, weight in parts.weights.items():
            assert isinstance(term, MetricTerm)
            weights[MeanTerm(mean.state, term.name)] = weight
        difference = Sum(weights, parts.constant) - Sum({mean: _ONE})
        for sign in (difference, -difference):
            yield sign + Sum({}, _ROUNDED), False

    def _moved(self, term: CallTerm) -> Iterator[Known]:
        """Gains less losses are what the mean grew by, and no more together than the metric is wide."""
        metric, options = term.arguments[0], dict(term.options)
        if not isinstance(metric, MetricTerm):
            return
        if "by" in options:
            rest = tuple(pair for pair in term.options if pair[0] != "by")
            overall = CallTerm(term.function, term.arguments, rest)
            worse: dict[Term, Fraction] = {term: _ONE, overall: -_ONE}
            yield (Sum(worse) if term.function == "regressed" else -Sum(worse)), False
            return
        gain, loss = (CallTerm(name, term.arguments, term.options) for name in ("improved", "regressed"))
        width = self._width(metric.name)
        if width is not None:
            yield Sum({gain: -_ONE, loss: -_ONE}, width), False
        if not options:
            after, before = MeanTerm("candidate", metric.name), MeanTerm("incumbent", metric.name)
            grown = Sum({gain: _ONE, loss: -_ONE, after: -_ONE, before: _ONE})
            yield grown, False
            yield -grown, False

    # ---- ranges ----

    def _width(self, metric: str) -> Fraction | None:
        known = self._metrics.get(metric)
        if known is None or known.low is None or known.high is None:
            return None
        return known.high - known.low

    def _range(self, term: Term) -> Range:
        if isinstance(term, Constant):
            return Range(term.value, term.value)
        if isinstance(term, MeanTerm):
            metric = self._metrics.get(term.metric)
            return Range(metric.low, metric.high) if metric is not None else Range()
        if isinstance(term, CallTerm):
            return self._of_call(term)
        if isinstance(term, Operation) and term.operator in ("*", "/"):
            left, right = (self._range(operand) for operand in term.operands)
            if term.operator == "*":
                return left * right
            return left / right if not right.holds(Fraction(0)) else Range()
        return Range()

    def _of_call(self, term: CallTerm) -> Range:
        if term.function in ("improved", "regressed"):
            metric = term.arguments[0]
            return Range(Fraction(0), self._width(metric.name) if isinstance(metric, MetricTerm) else None)
        if term.function == "worst":
            return self._range(term.arguments[0])
        if term.function == "tokens" and isinstance(term.arguments[0], StateTerm):
            return Range(Fraction(self._least_tokens))
        if term.function == "change" and self._change is not None:
            return Range(Fraction(0), self._change)
        builtin = RUN_FUNCTIONS.get(term.function)
        return builtin.range if builtin is not None and builtin.unit is not None else Range()


def _within(term: Term, known: Range) -> Iterator[Known]:
    if known.low is not None:
        yield Sum({term: _ONE}, -known.low), False
    if known.high is not None:
        yield Sum({term: -_ONE}, known.high), False


def _as_sum(term: Term) -> Sum | None:
    """A metric as a sum of other metrics, where it is one."""
    if isinstance(term, Constant):
        return Sum({}, term.value)
    if isinstance(term, MetricTerm):
        return Sum({term: _ONE})
    if not isinstance(term, Operation) or term.operator not in ("+", "-", "negate", "*", "/"):
        return None
    parts = [_as_sum(operand) for operand in term.operands]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return arithmetic(term.operator, known)


def variables(sums: Iterable[Sum]) -> Mapping[Term, int]:
    """A number for each quantity, in the order in which they come."""
    found: dict[Term, int] = {}
    for each in sums:
        for term in each.weights:
            found.setdefault(term, len(found))
    return found
