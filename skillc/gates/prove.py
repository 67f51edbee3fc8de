"""Prove that gates exclude or imply each other.

A condition is a choice of clauses, each of linear constraints (`normal.py`). Whether the constraints of a clause and
the axioms can hold together is decided by Fourier-Motzkin elimination: each variable in turn is eliminated by adding
every inequality that bounds it from below to every one that bounds it from above (Schrijver, "Theory of Linear and
Integer Programming", 1986, section 12.2). The system has no rational solution if and only if an inequality without
variables is false. The sources of that inequality are in conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from math import gcd, lcm

from skillc.dataclass import dataclass
from skillc.gates.functions import RUN_FUNCTIONS, interval_of, without_option
from skillc.gates.intervals import EVERYTHING, Interval
from skillc.gates.normal import Clause, Sum, TooMany, clauses, linear, normal_form
from skillc.gates.stages import without_batch
from skillc.gates.terms import CallTerm, MeanTerm, MetricTerm, Operation, Term, conjuncts

Variable = int
_MOST_INEQUALITIES = 400
_MOST_TRIED = 500
"""The most clauses to try for each set of premises."""
_ONE = Fraction(1)
_ROUNDING = Fraction(1, 10**6)
"""Scores are stored in millionths, so a sum of rounded scores can differ from a rounded sum by this much."""


class TooLarge(Exception):  # noqa: N818
    """The elimination exceeds the limit on inequalities, so nothing is proved."""


# ---- axioms ---------------------------------------------------------------------------------------


class Axioms:
    """Linear facts about the quantities of a program, each a sum that is at least 0.

    Args:
        metrics: the range of each.
        sums: the expression of each metric; the mean of a sum is the sum of the means.
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
        self._known: dict[Term, tuple[Sum, ...]] = {}

    def about(self, atoms: Iterable[Term]) -> list[Sum]:
        """Return the facts about some atoms and the atoms that they depend on."""
        waiting = list(atoms)
        seen: set[Term] = set()
        found: list[Sum] = []
        while waiting:
            atom = waiting.pop()
            if atom in seen:
                continue
            seen.add(atom)
            if atom not in self._known:
                self._known[atom] = tuple(self._facts(atom))
            for fact in self._known[atom]:
                found.append(fact)
                waiting += fact.weights
        return found

    def related(self, atoms: Iterable[Term]) -> set[Term]:
        """Return some atoms and the atoms that they depend on."""
        every = set(atoms)
        return every.union(*(fact.weights for fact in self.about(every)))

    def _facts(self, atom: Term) -> Iterator[Sum]:
        low, high = interval_of(atom, self._range).bounds
        if low is not None:
            yield Sum({atom: _ONE}, -low)
        if high is not None:
            yield Sum({atom: -_ONE}, high)
        if isinstance(atom, MeanTerm):
            yield from self._mean_of_sum(atom)
        elif isinstance(atom, CallTerm) and atom.function in RUN_FUNCTIONS:
            yield from _effects_of_options(atom)
            if RUN_FUNCTIONS[atom.function].direction:
                yield from self._gain_and_loss(atom)

    def _range(self, term: Term) -> Interval:
        match term:
            case MeanTerm(_, metric) | MetricTerm(metric):
                return self._metrics.get(metric, EVERYTHING)
            case CallTerm(function) if function in self._functions:
                return self._functions[function]
            case CallTerm(function, arguments) if function in RUN_FUNCTIONS:
                return RUN_FUNCTIONS[function].range_of([self._range(each) for each in arguments])
        return EVERYTHING

    def _mean_of_sum(self, mean: MeanTerm) -> Iterator[Sum]:
        metric = self._sums.get(mean.metric)
        found = linear(metric) if metric is not None else Sum({})
        weights: dict[Term, Fraction] = {
            MeanTerm(mean.state, term.name): weight
            for term, weight in found.weights.items()
            if isinstance(term, MetricTerm)
        }
        if not weights or len(weights) < len(found.weights):
            return
        difference = Sum(weights, found.constant) - Sum({mean: _ONE})
        for each in (difference, -difference):
            yield each + Sum({}, _ROUNDING)

    def _gain_and_loss(self, call: CallTerm) -> Iterator[Sum]:
        """Relate gain and loss: the mean grows by gain minus loss, and their sum is at most the width of the metric."""
        metric = call.arguments[0]
        if not isinstance(metric, MetricTerm) or call.option("by") is not None:
            return
        names = {builtin.direction: name for name, builtin in RUN_FUNCTIONS.items()}
        gain, loss = (CallTerm(names[direction], call.arguments, call.options) for direction in (1, -1))
        width = interval_of(gain, self._range).bounds[1]
        if width is not None:
            yield Sum({gain: -_ONE, loss: -_ONE}, width)
        if not call.options:
            after, before = MeanTerm("candidate", metric.name), MeanTerm("incumbent", metric.name)
            growth = Sum({gain: _ONE, loss: -_ONE, after: -_ONE, before: _ONE})
            yield growth
            yield -growth


def _effects_of_options(call: CallTerm) -> Iterator[Sum]:
    """Compare a call with the call without an option that lowers or raises the result."""
    builtin = RUN_FUNCTIONS[call.function]
    for name, _ in call.options:
        plain = without_option(call, name)
        if name in builtin.lowered_by:
            yield Sum({call: -_ONE, plain: _ONE})
        elif name in builtin.raised_by:
            yield Sum({call: _ONE, plain: -_ONE})


# ---- elimination ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Inequality:
    """`sum of weights[x] * x + constant >= 0`, or `> 0` if strict, in whole numbers.

    Attributes:
        weights: by variable, none of them 0.
        sources: the caller's names of the inequalities that it follows from.
    """

    weights: Mapping[Variable, int]
    constant: int
    strict: bool
    sources: frozenset[int]

    @classmethod
    def of(
        cls, weights: Mapping[Variable, Fraction], constant: Fraction, strict: bool, sources: frozenset[int]
    ) -> Inequality:
        """Scale rational weights to whole numbers."""
        scale = lcm(constant.denominator, *(weight.denominator for weight in weights.values()))
        return cls({x: int(weight * scale) for x, weight in weights.items()}, int(constant * scale), strict, sources)

    @property
    def false(self) -> bool:
        """Whether it has no variables and does not hold."""
        return not self.weights and (self.constant < 0 or (self.strict and self.constant == 0))


_System = dict[frozenset[tuple[Variable, int]], tuple[Inequality, int]]
"""Inequalities by their weights divided by a common factor, each with that factor."""


def conflict(inequalities: Iterable[Inequality]) -> frozenset[int] | None:
    """Return the sources of inequalities that exclude each other; None if all can hold together.

    Raises:
        TooLarge: the elimination would make too many inequalities.
    """
    system: _System = {}
    for each in inequalities:
        if each.false:
            return each.sources
        _add(system, each)
    while system:
        chosen = _cheapest(each for each, _ in system.values())
        below = [each for each, _ in system.values() if each.weights.get(chosen, 0) > 0]
        above = [each for each, _ in system.values() if each.weights.get(chosen, 0) < 0]
        system = {key: kept for key, kept in system.items() if chosen not in kept[0].weights}
        for low in below:
            for high in above:
                combined = _eliminate(low, high, chosen)
                if combined.false:
                    return combined.sources
                _add(system, combined)
        if len(system) > _MOST_INEQUALITIES:
            raise TooLarge
    return None


def _add(system: _System, each: Inequality) -> None:
    """Add an inequality; keep only the tightest of those with proportional weights."""
    if not each.weights:
        return
    factor = gcd(*each.weights.values())
    key = frozenset((variable, weight // factor) for variable, weight in each.weights.items())
    if key in system:
        other, others_factor = system[key]
        if (other.constant * factor, not other.strict) <= (each.constant * others_factor, not each.strict):
            return
    system[key] = each, factor


def _cheapest(inequalities: Iterable[Inequality]) -> Variable:
    """Return the variable whose elimination adds the fewest inequalities."""
    low: dict[Variable, int] = {}
    high: dict[Variable, int] = {}
    for each in inequalities:
        for variable, weight in each.weights.items():
            counts = low if weight > 0 else high
            counts[variable] = counts.get(variable, 0) + 1
    both = [*low, *(each for each in high if each not in low)]
    return min(both, key=lambda v: low.get(v, 0) * high.get(v, 0) - low.get(v, 0) - high.get(v, 0))


def _eliminate(low: Inequality, high: Inequality, variable: Variable) -> Inequality:
    """Eliminate a variable by adding one of its lower bounds to one of its upper bounds."""
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
    return Inequality(kept, constant, low.strict or high.strict, low.sources | high.sources)


# ---- proofs ---------------------------------------------------------------------------------------

Alternatives = Sequence[Clause]
"""Clauses of which at least one holds."""


class Prover:
    """Proves that conditions exclude each other; tries at most `tries` clauses in all, and `each` for one proof."""

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
        base = tuple(constraint for each in every if len(each) == 1 for constraint in each[0])
        return self._excluded(base, [each for each in every if len(each) != 1])

    def _excluded(self, base: Clause, rest: Sequence[Alternatives]) -> bool:
        if self._tries < self._least:
            raise TooMany
        if base and self.conflict(base) is not None:
            return True
        return bool(rest) and all(self._excluded((*base, *clause), rest[1:]) for clause in rest[0])

    def conflict(self, clause: Clause) -> frozenset[int] | None:
        """The constraints of a clause that exclude each other, by index; None if all can hold.

        Raises:
            TooMany: no tries are left.
            TooLarge: the elimination would make too many inequalities.
        """
        if self._tries <= 0:
            raise TooMany
        self._tries -= 1
        facts = self.axioms.about({atom for constraint in clause for atom in constraint.sum.weights})
        stated = [(each.sum, each.strict, frozenset([i])) for i, each in enumerate(clause)]
        every = [*stated, *((fact, False, frozenset[int]()) for fact in facts)]
        numbers: dict[Term, Variable] = {}
        for each, _, _ in every:
            for atom in each.weights:
                numbers.setdefault(atom, len(numbers))
        return conflict(
            Inequality.of({numbers[x]: weight for x, weight in each.weights.items()}, each.constant, strict, sources)
            for each, strict, sources in every
        )


def as_strict(new: Sequence[Term], old: Term, axioms: Axioms) -> bool:
    """Return whether the old gate provably accepts everything that the new gates accept. False proves nothing.

    It must hold with a training batch and without one. At the end of an epoch there is no batch, and comparisons that
    read it are left out.
    """
    if not _implies(new, old, axioms):
        return False
    rest = without_batch(old)
    return rest is None or _implies([kept for term in new if (kept := without_batch(term))], rest, axioms)


def _implies(new: Sequence[Term], old: Term, axioms: Axioms) -> bool:
    parts = [part for term in new for part in conjuncts(normal_form(term))]
    return all(part in parts or _follows(parts, part, axioms) for part in conjuncts(normal_form(old)))


def _follows(new: Sequence[Term], old: Term, axioms: Axioms) -> bool:
    premises = _alternatives(new)
    opposite = _alternatives(conjuncts(normal_form(Operation("not", (old,)))))
    near = _related(premises, axioms.related(_atoms(opposite)), axioms)
    # Try each gate alone first, because many together may be too large. A gate that can never hold implies everything.
    for chosen in (*([each] for each in premises), near):
        with suppress(TooMany, TooLarge):
            if Prover(axioms, _MOST_TRIED, _MOST_TRIED).excluded([*chosen, *opposite]):
                return True
    return False


def _alternatives(terms: Iterable[Term]) -> list[Alternatives]:
    """Return the alternatives of each condition. Conditions with too many are dropped, which is still sound."""
    found: list[Alternatives] = []
    for term in terms:
        with suppress(TooMany):
            found.append(clauses(term))
    return found


def _related(conditions: Sequence[Alternatives], atoms: set[Term], axioms: Axioms) -> list[Alternatives]:
    """Return the conditions that depend on some atoms, directly or through each other."""
    near: list[Alternatives] = []
    rest = [(each, axioms.related(_atoms([each]))) for each in conditions]
    while linked := [pair for pair in rest if not atoms.isdisjoint(pair[1])]:
        near += [each for each, _ in linked]
        rest = [pair for pair in rest if pair not in linked]
        atoms = atoms.union(*(more for _, more in linked))
    return near


def _atoms(conditions: Sequence[Alternatives]) -> set[Term]:
    return {atom for each in conditions for clause in each for constraint in clause for atom in constraint.sum.weights}
