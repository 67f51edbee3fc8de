"""The evidence that gates are decided on: bounds of scores on a split, and facts about the texts of skills."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from skillc.gates.intervals import EVERYTHING, Interval
from skillc.gates.terms import SkillState
from skillc.outcomes import MICRO, Cell, Example, Scored
from skillc.stats.betting import e_value
from skillc.stats.subsets import Confidence, Groups, Ints

SMALLEST_GROUP = 20
OTHER = "other"
_NANO = 10**9
_MOST_EXACT = 2**62

# The cells of one rollout by metric, None where it was not run: (state, example, sample) -> cells.
CellLookup = Callable[[SkillState, Example, int], Mapping[str, Cell] | None]
# What one rollout took (nano-dollars, nanoseconds), None where it is unknown.
Amounts = Callable[[SkillState, Example, int], int | None]


@dataclass(frozen=True, slots=True)
class MetricRange:
    """The finite range of a metric, in millionths, and the unit of the metric."""

    low: int
    high: int
    unit: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBounds:
    """A metric of one skill by example: the least and the greatest sum over the samples, in millionths."""

    low: Ints
    high: Ints


@dataclass(frozen=True, slots=True, eq=False)
class _Spent:
    """The known cost of a skill's rollouts by example, and the number of samples whose cost is unknown."""

    known: Ints
    missing: Ints


def _unknown(state: SkillState, example: Example, sample: int) -> None:
    return None


@dataclass(frozen=True)
class SplitEvidence:
    """What is known of each skill on one split.

    Attributes:
        examples: in a fixed order; their number is the fixed denominator of every mean.
        samples: rollouts per example.
        lookup: the cells; absent and unmeasured ones stand for the metric's whole range.
        ranges: by metric.
        prices: what rollouts cost, in nano-dollars.
        dearest: the most that one may cost; what is known to have cost more counts as this. None where nothing is
            known of it.
        times: how long the attempt took that gave the reply, in nanoseconds.
    """

    examples: tuple[Example, ...]
    samples: int
    lookup: CellLookup
    ranges: Mapping[str, MetricRange]
    prices: Amounts = _unknown
    dearest: int | None = None
    times: Amounts = _unknown
    _columns: dict[tuple[SkillState, str], ScoreBounds] = field(default_factory=dict, repr=False, compare=False)
    _costs: dict[SkillState, _Spent] = field(default_factory=dict, repr=False, compare=False)
    _groups: dict[str, Groups] = field(default_factory=dict, repr=False, compare=False)

    # ---- cells ----

    def column(self, state: SkillState, metric: str) -> ScoreBounds:
        """The bounds of a metric for a skill, example by example; `learn` keeps them up to date."""
        key = (state, metric)
        if key not in self._columns:
            bounds = [self._bounds(state, metric, example) for example in self.examples]
            exact = self._exact(metric)
            low, high = (np.array([pair[end] for pair in bounds], dtype=exact) for end in (0, 1))
            self._columns[key] = ScoreBounds(low, high)
        return self._columns[key]

    def learn(self, state: SkillState, examples: Iterable[Example]) -> None:
        """Refresh the bounds of a skill on some examples after they were measured."""
        places = [(self._places[example.id], example) for example in examples]
        for (of, metric), column in self._columns.items():
            if of == state:
                for i, example in places:
                    column.low[i], column.high[i] = self._bounds(state, metric, example)
        spent = self._costs.get(state)
        if spent is not None:
            for i, example in places:
                spent.known[i], spent.missing[i] = self._price(state, example)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {example.id: i for i, example in enumerate(self.examples)}

    def _exact(self, metric: str) -> type[np.int64] | type[object]:
        whole = self.ranges[metric]
        most = 2 * max(abs(whole.low), abs(whole.high)) * self.samples * max(1, len(self.examples))
        return np.int64 if most < _MOST_EXACT else object

    def _bounds(self, state: SkillState, metric: str, example: Example) -> tuple[int, int]:
        whole, low, high = self.ranges[metric], 0, 0
        for sample in range(self.samples):
            cells = self.lookup(state, example, sample)
            cell = cells.get(metric) if cells is not None else None
            if isinstance(cell, Scored):
                low += cell.value
                high += cell.value
            else:
                low += whole.low
                high += whole.high
        return low, high

    def mean(self, low: Ints, high: Ints) -> Interval:
        """The mean over examples of sums over samples, in the metric's unit; everything if there is no example."""
        return self._interval(int(low.sum()), int(high.sum()), len(low)) if len(low) else EVERYTHING

    def means(self, low: Ints, high: Ints, by: str) -> list[Interval]:
        """As `mean`, of each group of a field."""
        groups = self.groups(by)
        sums = zip(groups.sums(low), groups.sums(high), groups.sizes, strict=True)
        return [self._interval(int(least), int(most), size) for least, most, size in sums]

    def _interval(self, low: int, high: int, count: int) -> Interval:
        whole = count * self.samples * MICRO
        least = Fraction(low, whole)
        return Interval(least, least if low == high else Fraction(high, whole))

    # ---- groups ----

    def named_groups(self, name: str) -> list[tuple[str, list[int]]]:
        """Indices of the examples by the value of a field; values with fewer than 20 examples are pooled as `other`."""
        by_value: dict[str, list[int]] = {}
        for i, example in enumerate(self.examples):
            by_value.setdefault(str(example.fields.get(name)), []).append(i)
        large = [(value, group) for value, group in by_value.items() if len(group) >= SMALLEST_GROUP]
        small = sorted(i for group in by_value.values() if len(group) < SMALLEST_GROUP for i in group)
        return [*large, (OTHER, small)] if small else large

    def groups(self, name: str) -> Groups:
        """The examples by the value of a field, as `named_groups`."""
        if name not in self._groups:
            self._groups[name] = Groups.of(group for _, group in self.named_groups(name))
        return self._groups[name]

    @cached_property
    def split_groups(self) -> Groups:
        """The examples by split group, in order of the groups' names."""
        by_group: dict[str, list[int]] = {}
        for i, example in enumerate(self.examples):
            by_group.setdefault(example.group, []).append(i)
        return Groups.of(by_group[name] for name in sorted(by_group))

    # ---- money and time ----

    def cost(self, state: SkillState) -> Interval:
        """Dollars per rollout at list price; an unknown price is between 0 and the most that a rollout may cost."""
        if not self.examples:
            return EVERYTHING
        spent = self._spent(state)
        whole = len(self.examples) * self.samples * _NANO
        low, missing = Fraction(int(spent.known.sum()), whole), int(spent.missing.sum())
        if self.dearest is None:
            return Interval(low, math.inf if missing else low)
        return Interval(low, low + Fraction(missing * self.dearest, whole))

    def latency(self, state: SkillState) -> Interval:
        """Seconds per rollout, of the attempt that returned the reply; unknown until every rollout was run."""
        times = [self.times(state, example, s) for example in self.examples for s in range(self.samples)]
        known = [time for time in times if time is not None]
        if not times or len(known) < len(times):
            return Interval(Fraction(0), math.inf)
        return Interval.point(Fraction(sum(known), len(times) * _NANO))

    def _spent(self, state: SkillState) -> _Spent:
        if state not in self._costs:
            read = [self._price(state, example) for example in self.examples]
            known, missing = (np.array([pair[i] for pair in read], dtype=object) for i in (0, 1))
            self._costs[state] = _Spent(known, missing)
        return self._costs[state]

    def _price(self, state: SkillState, example: Example) -> tuple[int, int]:
        """The known cost of the samples of an example, and the number of samples whose cost is unknown."""
        prices = [self.prices(state, example, sample) for sample in range(self.samples)]
        known = [price for price in prices if price is not None]
        if self.dearest is not None:
            known = [min(price, self.dearest) for price in known]
        return sum(known), len(prices) - len(known)


@dataclass(frozen=True, slots=True)
class TextEvidence:
    """What is known of the skills' texts; None is unknown.

    Attributes:
        tokens: of each skill.
        change: the candidate's, as a share of `base`.
        base: tokens that `change` is a share of; None where there is no candidate.
        overlap: of each skill with the training examples, as a share; only where a gate asks for it.
    """

    tokens: Mapping[SkillState, int | None]
    change: Fraction | None
    overlap: Mapping[SkillState, Fraction | None] = field(default_factory=dict)
    base: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a decision may read.

    Attributes:
        validation: what quantities are measured on, unless they say `on = batch`.
        batch: without examples where there is none, as for a merge; then what reads it does not apply.
        planned: the decisions that the run may take.
        seed: the plan's.
    """

    validation: SplitEvidence
    batch: SplitEvidence
    texts: TextEvidence
    planned: int = 1
    seed: int = 0
    _paired: dict[tuple[SkillState, SkillState, str], Confidence] = field(
        default_factory=dict, repr=False, compare=False
    )

    def learn(self, state: SkillState, examples: Sequence[Example]) -> None:
        """Refresh the bounds of a skill on some validation examples after they were measured."""
        self.validation.learn(state, examples)

    def confidence(self, over: SkillState, under: SkillState, metric: str, *, tries: int) -> Interval:
        """The confidence of a paired test by split group that one skill's mean is above another's."""
        key = (over, under, metric)
        if key not in self._paired:
            self._paired[key] = Confidence(len(self.validation.split_groups.sizes), self.seed)
        low, high = self._differences(over, under, metric)
        return Interval(*self._paired[key].bounds(low, high, tries=tries))

    def e_value(self, over: SkillState, under: SkillState, metric: str, *, tries: int) -> Interval:
        """The e-value, by split group, for the claim that one skill's mean is above another's.

        It never falls when a difference grows, so the least and the greatest differences bound it. It is divided by
        `tries`, the decisions that share the error.
        """
        split, whole = self.validation, self.validation.ranges[metric]
        width = (whole.high - whole.low) * split.samples * max(split.split_groups.sizes, default=0)
        ends = (e_value(Counter(each.tolist()), width) / tries for each in self._differences(over, under, metric))
        return Interval(*ends)

    def _differences(self, over: SkillState, under: SkillState, metric: str) -> tuple[Ints, Ints]:
        """The least and the greatest difference that each split group can have, in millionths."""
        split = self.validation
        above, below = split.column(over, metric), split.column(under, metric)
        sums = split.split_groups.sums
        return sums(above.low - below.high), sums(above.high - below.low)
