"""What always holds of the quantities of gates: their ranges, and how they depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from skillc.gates.functions import RUN_FUNCTIONS, interval_of, without_option
from skillc.gates.intervals import EVERYTHING, Interval
from skillc.gates.normal import Sum, linear
from skillc.gates.terms import CallTerm, MeanTerm, MetricTerm, Term

_ONE = Fraction(1)
_ROUNDED = Fraction(1, 10**6)
"""Scores are kept in millionths, so a sum of rounded ones may differ from a rounded sum by that much."""

Fact = tuple[Sum, bool]
"""`sum >= 0`, or `sum > 0` where the second is True."""


class Axioms:
    """What is known of the quantities of one program.

    Args:
        metrics: the range of each.
        sums: how metrics are computed; one that is a sum of others is known to have the sum of their means.
        functions: narrower ranges that the program gives to functions, such as a limit on `change`.
    """

    def __init__(
        self,
        metrics: Mapping[str, Interval],
        sums: Mapping[str, Term] | None = None,
        functions: Mapping[str, Interval] | None = None,
    ) -> None:
        self._metrics = metrics
        self._sums = sums or {}
        self._functions = functions or {}
        self._known: dict[Term, tuple[Fact, ...]] = {}

    def about(self, atoms: Iterable[Term]) -> list[Fact]:
        """All that is known of some atoms, and of those that they depend on."""
        waiting = list(atoms)
        seen: set[Term] = set()
        found: list[Fact] = []
        while waiting:
            atom = waiting.pop()
            if atom in seen:
                continue
            seen.add(atom)
            if atom not in self._known:
                self._known[atom] = tuple(self._of(atom))
            for each in self._known[atom]:
                found.append(each)
                waiting += each[0].weights
        return found

    def related(self, atoms: Iterable[Term]) -> set[Term]:
        """Some atoms, and those that they depend on."""
        every = set(atoms)
        return every.union(*(each.weights for each, _ in self.about(every)))

    def _of(self, atom: Term) -> Iterator[Fact]:
        low, high = interval_of(atom, self._range).bounds
        if low is not None:
            yield Sum({atom: _ONE}, -low), False
        if high is not None:
            yield Sum({atom: -_ONE}, high), False
        if isinstance(atom, MeanTerm):
            yield from self._parts(atom)
        elif isinstance(atom, CallTerm):
            yield from _options(atom)
            if atom.function in ("improved", "regressed"):
                yield from self._moved(atom)

    def _range(self, term: Term) -> Interval:
        match term:
            case MeanTerm(_, metric) | MetricTerm(metric):
                return self._metrics.get(metric, EVERYTHING)
            case CallTerm(function, arguments) if function in self._functions:
                return self._functions[function]
            case CallTerm(function, arguments) if function in RUN_FUNCTIONS:
                return RUN_FUNCTIONS[function].range_of([self._range(each) for each in arguments])
        return EVERYTHING

    def _parts(self, mean: MeanTerm) -> Iterator[Fact]:
        """The mean of a sum is the sum of the means."""
        metric = self._sums.get(mean.metric)
        if metric is None:
            return
        found = linear(metric)
        weights: dict[Term, Fraction] = {}
        for term, weight in found.weights.items():
            if not isinstance(term, MetricTerm):
                return
            weights[MeanTerm(mean.state, term.name)] = weight
        if not weights:
            return
        difference = Sum(weights, found.constant) - Sum({mean: _ONE})
        for sign in (difference, -difference):
            yield sign + Sum({}, _ROUNDED), False

    def _moved(self, call: CallTerm) -> Iterator[Fact]:
        """Gains less losses are what the mean grew by, and no more together than the metric is wide."""
        metric = call.arguments[0]
        if not isinstance(metric, MetricTerm) or call.option("by") is not None:
            return
        gain, loss = (CallTerm(name, call.arguments, call.options) for name in ("improved", "regressed"))
        width = interval_of(gain, self._range).bounds[1]
        if width is not None:
            yield Sum({gain: -_ONE, loss: -_ONE}, width), False
        if not call.options:
            after, before = MeanTerm("candidate", metric.name), MeanTerm("incumbent", metric.name)
            grown = Sum({gain: _ONE, loss: -_ONE, after: -_ONE, before: _ONE})
            yield grown, False
            yield -grown, False


def _options(call: CallTerm) -> Iterator[Fact]:
    """Compare a call with the one without an option that lowers or raises the result."""
    builtin = RUN_FUNCTIONS.get(call.function)
    if builtin is None:
        return
    for name, _ in call.options:
        plain = without_option(call, name)
        if name in builtin.lowered_by:
            yield Sum({call: -_ONE, plain: _ONE}), False
        elif name in builtin.raised_by:
            yield Sum({call: _ONE, plain: -_ONE}), False
