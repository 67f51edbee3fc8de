"""Prove that gates exclude or imply each other.

A condition is a choice of clauses, each of linear demands (`normal.py`). Whether the demands of a clause can hold
together with the axioms is decided by Fourier-Motzkin elimination: each variable in turn is eliminated
by adding every inequality that bounds it from below to every one that bounds it from above (Schrijver, "Theory of
Linear and Integer Programming", 1986, section 12.2). What is left without variables is false exactly if the whole is,
over the rationals, with strict inequalities too. The sources of the false one can't hold together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm

from skillc.gates.functions import RUN_FUNCTIONS, interval_of, without_option
from skillc.gates.intervals import EVERYTHING, Interval
from skillc.gates.normal import Clause, Sum, TooMany, clauses, linear, normal_form
from skillc.gates.stages import without_batch
from skillc.gates.terms import CallTerm, MeanTerm, MetricTerm, Operation, Term, conjuncts

Variable = int
_MOST = 400


class TooLarge(Exception):  # noqa: N818
    """More inequalities than are worth the time; nothing is known then."""


@dataclass(frozen=True, slots=True)
class Inequality:
    """`sum of weights[x] * x + constant >= 0`, or `> 0` where it is strict.

    Attributes:
        weights: by variable, none of them 0.
        sources: what it follows from, as the caller names it.
    """

    weights: Mapping[Variable, Fraction]
    constant: Fraction
    strict: bool = False
    sources: frozenset[int] = field(default=frozenset())


@dataclass(frozen=True, slots=True)
class _Whole:
    """An inequality in whole numbers, which is the same for any multiple of it."""

    weights: dict[Variable, int]
    constant: int
    strict: bool
    sources: frozenset[int]

    @property
    def false(self) -> bool:
        return not self.weights and (self.constant < 0 or (self.strict and self.constant == 0))


_Standing = dict[frozenset[tuple[Variable, int]], tuple[_Whole, int]]
"""By their weights as small as whole numbers go, each with what its own are a multiple by."""


def conflict(inequalities: Iterable[Inequality]) -> frozenset[int] | None:
    """The sources of inequalities that exclude each other; None where all can hold together.

    Raises:
        TooLarge: the elimination would make too many inequalities.
    """
    standing: _Standing = {}
    for each in map(_whole, inequalities):
        if each.false:
            return each.sources
        _keep(standing, each)
    while standing:
        chosen = _cheapest(each for each, _ in standing.values())
        below = [each for each, _ in standing.values() if each.weights.get(chosen, 0) > 0]
        above = [each for each, _ in standing.values() if each.weights.get(chosen, 0) < 0]
        standing = {key: kept for key, kept in standing.items() if chosen not in kept[0].weights}
        for low in below:
            for high in above:
                joined = _joined(low, high, chosen)
                if joined.false:
                    return joined.sources
                _keep(standing, joined)
        if len(standing) > _MOST:
            raise TooLarge
    return None


def _whole(each: Inequality) -> _Whole:
    scale = lcm(each.constant.denominator, *(weight.denominator for weight in each.weights.values()))
    weights = {variable: int(weight * scale) for variable, weight in each.weights.items()}
    return _Whole(weights, int(each.constant * scale), each.strict, each.sources)


def _keep(standing: _Standing, each: _Whole) -> None:
    """Adds an inequality; of several with the same variables side by side only the tightest matters."""
    if not each.weights:
        return
    times = gcd(*each.weights.values())
    key = frozenset((variable, weight // times) for variable, weight in each.weights.items())
    known = standing.get(key)
    if known is not None:
        other, others = known
        if (other.constant * times, not other.strict) <= (each.constant * others, not each.strict):
            return
    standing[key] = each, times


def _cheapest(inequalities: Iterable[_Whole]) -> Variable:
    """The variable whose elimination makes the fewest inequalities."""
    low: dict[Variable, int] = {}
    high: dict[Variable, int] = {}
    for each in inequalities:
        for variable, weight in each.weights.items():
            counts = low if weight > 0 else high
            counts[variable] = counts.get(variable, 0) + 1
    both = [*low, *(each for each in high if each not in low)]
    return min(both, key=lambda v: low.get(v, 0) * high.get(v, 0) - low.get(v, 0) - high.get(v, 0))


def _joined(low: _Whole, high: _Whole, variable: Variable) -> _Whole:
    """The sum of a lower and an upper bound of a variable, without it."""
    a, b = -high.weights[variable], low.weights[variable]
    weights = {each: weight * a for each, weight in low.weights.items() if each != variable}
    for each, weight in high.weights.items():
        if each != variable:
            weights[each] = weights.get(each, 0) + weight * b
    kept = {each: weight for each, weight in weights.items() if weight}
    constant = low.constant * a + high.constant * b
    common = gcd(constant, *kept.values())
    if common > 1:
        kept, constant = {each: weight // common for each, weight in kept.items()}, constant // common
    return _Whole(kept, constant, low.strict or high.strict, low.sources | high.sources)


# ---- proofs ---------------------------------------------------------------------------------------

Alternatives = Sequence[Clause]
"""Clauses of which at least one holds."""


class Prover:
    """Proves that conditions can't hold together, over what is known of their quantities.

    Args:
        axioms: what always holds.
        tries: clauses that are tried in all.
        each: clauses that one question may try.
    """

    def __init__(self, axioms: Axioms, tries: int, each: int) -> None:
        self.axioms = axioms
        self._tries = tries
        self._each = each
        self._least = 0

    def excluded(self, conditions: Iterable[Alternatives]) -> bool:
        """Whether some conditions can't hold together.

        Raises:
            TooMany: there are too many combinations of alternatives to try.
            TooLarge: one of them is too large.
        """
        self._least = self._tries - self._each
        every = sorted(conditions, key=len)
        base = tuple(demand for each in every if len(each) == 1 for demand in each[0])
        return self._excluded(base, [each for each in every if len(each) != 1])

    def _excluded(self, base: Clause, rest: Sequence[Alternatives]) -> bool:
        if self._tries < self._least:
            raise TooMany
        if base and self.conflict(base) is not None:
            return True
        return bool(rest) and all(self._excluded((*base, *clause), rest[1:]) for clause in rest[0])

    def conflict(self, clause: Clause) -> frozenset[int] | None:
        """The demands of a clause that exclude each other, by their index in it; None where all can hold.

        Raises:
            TooMany: no tries are left.
            TooLarge: the elimination would make too many inequalities.
        """
        if self._tries <= 0:
            raise TooMany
        self._tries -= 1
        known = self.axioms.about({atom for demand in clause for atom in demand.sum.weights})
        numbers: dict[Term, int] = {}
        for each in (*(demand.sum for demand in clause), *(each for each, _ in known)):
            for atom in each.weights:
                numbers.setdefault(atom, len(numbers))

        def inequality(each: Sum, strict: bool, sources: frozenset[int]) -> Inequality:
            weights = {numbers[atom]: weight for atom, weight in each.weights.items()}
            return Inequality(weights, each.constant, strict, sources)

        stated = [inequality(d.sum, d.strict, frozenset([i])) for i, d in enumerate(clause)]
        return conflict([*stated, *(inequality(each, strict, frozenset()) for each, strict in known)])


_MOST_TRIED = 500
"""Clauses that are tried for each set of premises."""


def as_strict(new: Sequence[Term], old: Term, axioms: Axioms) -> bool:
    """Whether whatever all the new gates accept is accepted by an old one. True is a proof; False is none.

    That has to hold for a candidate that has a training batch, and for one of an epoch's end that has none: there a
    comparison that reads the batch is left out.

    Args:
        new: the terms of all gates that a candidate must pass.
        old: the term of one gate.
        axioms: what is known of the quantities in both.
    """
    if not _implies(new, old, axioms):
        return False
    rest = without_batch(old)
    return rest is None or _implies([kept for term in new if (kept := without_batch(term))], rest, axioms)


def _implies(new: Sequence[Term], old: Term, axioms: Axioms) -> bool:
    """Whether one condition is shown to hold wherever all of some others do."""
    parts = [part for term in new for part in conjuncts(normal_form(term))]
    return all(part in parts or _follows(parts, part, axioms) for part in conjuncts(normal_form(old)))


def _follows(new: Sequence[Term], old: Term, axioms: Axioms) -> bool:
    premises = _conditions(new)
    opposite = _conditions(conjuncts(normal_form(Operation("not", (old,)))))
    near = _related(premises, axioms.related(_atoms(opposite)), axioms)
    # Each alone first, for many together may be too large; one that can never hold implies everything.
    for chosen in (*([each] for each in premises), near):
        with suppress(TooMany, TooLarge):
            if Prover(axioms, _MOST_TRIED, _MOST_TRIED).excluded([*chosen, *opposite]):
                return True
    return False


def _conditions(terms: Iterable[Term]) -> list[Alternatives]:
    """Conditions by their alternatives; one that has too many is left out, which makes no wrong proof."""
    found: list[Alternatives] = []
    for term in terms:
        with suppress(TooMany):
            found.append(clauses(term))
    return found


def _related(conditions: Sequence[Alternatives], atoms: set[Term], axioms: Axioms) -> list[Alternatives]:
    """The conditions that depend on some atoms, directly or through each other."""
    near: list[Alternatives] = []
    rest = [(each, axioms.related(_atoms([each]))) for each in conditions]
    while linked := [pair for pair in rest if not atoms.isdisjoint(pair[1])]:
        near += [each for each, _ in linked]
        rest = [pair for pair in rest if pair not in linked]
        atoms = atoms.union(*(more for _, more in linked))
    return near


def _atoms(conditions: Sequence[Alternatives]) -> set[Term]:
    return {atom for each in conditions for clause in each for demand in clause for atom in demand.sum.weights}


# ---- axioms ---------------------------------------------------------------------------------------

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
