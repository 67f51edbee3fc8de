"""Evidence for gates: bounds of scores on a split, and measurements of the skills' texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from skillc.dataclass import dataclass
from skillc.gates.intervals import EVERYTHING, Interval
from skillc.gates.stages import OTHER, SMALLEST_GROUP
from skillc.gates.terms import SkillState, Term
from skillc.outcomes import MICRO, Cell, Example, Scored
from skillc.stats.power import e_value
from skillc.stats.subsets import Confidence, Groups

# Import numpy lazily: the first evidence is needed long after the first call of a run.
if TYPE_CHECKING:
    import numpy as np

    from skillc.stats.subsets import Ints

_NANO = 10**9
_MOST_EXACT = 2**62

CellLookup = Callable[[SkillState, Example, int], Mapping[str, Cell] | None]
"""(state, example, sample) → the cells of a rollout by metric; None if it was not run."""
ConditionLookup = Callable[[Term, Example], bool]
"""(condition, example) → whether a condition on the data holds."""
PriceLookup = Callable[[SkillState, Example, int], int | None]
"""(state, example, sample) → nano-dollars of a rollout; None if unknown."""


@dataclass(frozen=True, slots=True)
class MetricRange:
    """The finite range of a metric in millionths, its unit, and whether its mean is a share although its range is not.

    The mean of a corrected signal is such a share.
    """

    low: int
    high: int
    unit: str = ""
    share: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBounds:
    """Least and greatest sum of a metric over the samples of each example, in millionths."""

    low: Ints
    high: Ints


_Costs: TypeAlias = "tuple[Ints, Ints]"
"""Known cost by example, and the number of samples whose cost is unknown."""


@dataclass(frozen=True)
class SplitEvidence:
    """Measurements of each skill on one split.

    Attributes:
        examples: in a fixed order. Their number is the denominator of every mean.
        samples: rollouts per example.
        lookup: the cells; a missing or unmeasured one counts as the whole range of its metric.
        ranges: by metric.
        prices: costs of rollouts, in nano-dollars.
        dearest: the maximum cost of a rollout, an upper bound for unknown costs; None if unknown.
        holds: decides a condition on the data of an example; None without such conditions.
    """

    examples: tuple[Example, ...]
    samples: int
    lookup: CellLookup
    ranges: Mapping[str, MetricRange]
    prices: PriceLookup = lambda *_: None
    dearest: int | None = None
    holds: ConditionLookup | None = None
    _conditions: dict[Term, Ints] = field(default_factory=dict, repr=False, compare=False)
    _columns: dict[tuple[SkillState, str], ScoreBounds] = field(default_factory=dict, repr=False, compare=False)
    _costs: dict[SkillState, _Costs] = field(default_factory=dict, repr=False, compare=False)
    _groups: dict[str, Groups] = field(default_factory=dict, repr=False, compare=False)

    # ---- cells ----

    def column(self, state: SkillState, metric: str) -> ScoreBounds:
        """The bounds of a metric for a skill, by example; `refresh` updates them."""
        key = (state, metric)
        if key not in self._columns:
            import numpy as np

            bounds = [self._bounds(state, metric, example) for example in self.examples]
            exact = self._exact(metric)
            low, high = (np.array([pair[end] for pair in bounds], dtype=exact) for end in (0, 1))
            self._columns[key] = ScoreBounds(low, high)
        return self._columns[key]

    def keep(self, state: SkillState, metric: str, bounds: ScoreBounds) -> None:
        """Set the bounds of a metric for a skill, so that they are not looked up."""
        self._columns[state, metric] = bounds

    def refresh(self, state: SkillState, examples: Iterable[Example]) -> None:
        """Update the bounds of a skill after some examples were measured."""
        places = [(self._places[example.id], example) for example in examples]
        for (of, metric), column in self._columns.items():
            if of == state:
                for i, example in places:
                    column.low[i], column.high[i] = self._bounds(state, metric, example)
        spent = self._costs.get(state)
        if spent is not None:
            for i, example in places:
                spent[0][i], spent[1][i] = self._price(state, example)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {example.id: i for i, example in enumerate(self.examples)}

    def _exact(self, metric: str) -> type[np.int64] | type[object]:
        import numpy as np

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

    # ---- conditions ----

    def positives(self, condition: Term) -> Ints:
        """1 for each example on which a condition on the data holds, else 0."""
        if condition not in self._conditions:
            import numpy as np

            assert self.holds is not None
            found = [int(self.holds(condition, example)) for example in self.examples]
            self._conditions[condition] = np.array(found, dtype=np.int64)
        return self._conditions[condition]

    def precision(self, state: SkillState, metric: str, condition: Term) -> Interval:
        """The share of a metric's sum that is on examples where a condition holds; 0 if the sum is 0.

        Unbounded if the condition holds for all examples or for none, because it would be 100 % or 0 % for every skill.
        """
        (low, high), (other_low, other_high) = self._sums(state, metric, condition)
        if not self._decides(condition):
            return EVERYTHING
        return Interval(_part(low, other_high), _part(high, other_low))

    def recall(self, state: SkillState, metric: str, condition: Term) -> Interval:
        """The mean of a metric over the examples where a condition holds; unbounded as `precision`."""
        (low, high), _ = self._sums(state, metric, condition)
        if not self._decides(condition):
            return EVERYTHING
        return self._interval(low, high, int(self.positives(condition).sum()))

    def _decides(self, condition: Term) -> bool:
        """Whether a condition holds for some examples, and not for all."""
        return 0 < int(self.positives(condition).sum()) < len(self.examples)

    def _sums(self, state: SkillState, metric: str, condition: Term) -> tuple[tuple[int, int], tuple[int, int]]:
        """The least and the greatest sum of a metric where a condition holds, and where it does not."""
        column, inside = self.column(state, metric), self.positives(condition)
        low, high = int((column.low * inside).sum()), int((column.high * inside).sum())
        return (low, high), (int(column.low.sum()) - low, int(column.high.sum()) - high)

    # ---- means ----

    def mean(self, low: Ints, high: Ints) -> Interval:
        """The mean over examples of sums over samples, in the metric's unit; unbounded without examples."""
        return self._interval(int(low.sum()), int(high.sum()), len(low)) if len(low) else EVERYTHING

    def means(self, low: Ints, high: Ints, by: str) -> list[Interval]:
        """The mean of each group of a field."""
        groups = self.groups(by)
        sums = zip(groups.sums(low), groups.sums(high), groups.sizes, strict=True)
        return [self._interval(int(least), int(most), size) for least, most, size in sums]

    def _interval(self, low: int, high: int, count: int) -> Interval:
        whole = count * self.samples * MICRO
        least = Fraction(low, whole)
        return Interval(least, least if low == high else Fraction(high, whole))

    # ---- groups ----

    def named_groups(self, name: str) -> list[tuple[str, list[int]]]:
        """Indices of examples by the value of a field; values with fewer than 20 examples are pooled as `other`."""
        by_value: dict[str, list[int]] = {}
        for i, example in enumerate(self.examples):
            by_value.setdefault(str(example.fields.get(name)), []).append(i)
        large = [(value, group) for value, group in by_value.items() if len(group) >= SMALLEST_GROUP]
        small = sorted(i for group in by_value.values() if len(group) < SMALLEST_GROUP for i in group)
        return [*large, (OTHER, small)] if small else large

    def groups(self, name: str) -> Groups:
        """The partition of the examples by `named_groups`."""
        if name not in self._groups:
            self._groups[name] = Groups.of(group for _, group in self.named_groups(name))
        return self._groups[name]

    @cached_property
    def split_groups(self) -> Groups:
        """The partition of the examples by split group, in the order of names."""
        by_group: dict[str, list[int]] = {}
        for i, example in enumerate(self.examples):
            by_group.setdefault(example.group, []).append(i)
        return Groups.of(by_group[name] for name in sorted(by_group))

    # ---- cost ----

    def cost(self, state: SkillState) -> Interval:
        """Mean dollars per rollout at list price; an unknown price is between 0 and `dearest`."""
        if not self.examples:
            return EVERYTHING
        if state not in self._costs:
            import numpy as np

            read = [self._price(state, example) for example in self.examples]
            known, unknown = (np.array([pair[i] for pair in read], dtype=object) for i in (0, 1))
            self._costs[state] = known, unknown
        spent, missing = (int(each.sum()) for each in self._costs[state])
        whole = len(self.examples) * self.samples * _NANO
        low = Fraction(spent, whole)
        if self.dearest is None:
            return Interval(low, math.inf if missing else low)
        return Interval(low, low + Fraction(missing * self.dearest, whole))

    def _price(self, state: SkillState, example: Example) -> tuple[int, int]:
        """The known cost of the samples of an example, and the number of samples whose cost is unknown."""
        prices = [self.prices(state, example, sample) for sample in range(self.samples)]
        known = [price for price in prices if price is not None]
        if self.dearest is not None:
            known = [min(price, self.dearest) for price in known]
        return sum(known), len(prices) - len(known)


def _part(one: int, other: int) -> Fraction:
    return Fraction(one, one + other) if one else Fraction(0)


@dataclass(frozen=True, slots=True)
class TextEvidence:
    """Measurements of the skills' texts; an unknown value is None.

    Attributes:
        tokens: of each skill.
        change: of the candidate, as a share of `base`.
        overlap: of each skill with the training examples, as a share; only if a gate reads it.
        base: tokens that `change` is a share of; None without a candidate.
    """

    tokens: Mapping[SkillState, int | None]
    change: Fraction | None
    overlap: Mapping[SkillState, Fraction | None] = field(default_factory=dict)
    base: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All evidence that a decision may read.

    Attributes:
        validation: the split of all quantities without `on = batch`.
        batch: the training batch; without examples, comparisons that read it do not apply.
        planned: the most decisions that the run may take.
        seed: of the plan.
        flips: by metric, the share of examples on which a second measurement differs.
    """

    validation: SplitEvidence
    batch: SplitEvidence
    texts: TextEvidence
    planned: int = 1
    seed: int = 0
    flips: Mapping[str, Interval] = field(default_factory=dict)
    _paired: dict[tuple[SkillState, SkillState, str], Confidence] = field(
        default_factory=dict, repr=False, compare=False
    )

    def confidence(self, over: SkillState, under: SkillState, metric: str, *, multiplicity: int) -> Interval:
        """The confidence of a paired test by split group that one skill's mean is above another's."""
        key = (over, under, metric)
        if key not in self._paired:
            self._paired[key] = Confidence(len(self.validation.split_groups.sizes), self.seed)
        low, high = self._differences(over, under, metric)
        return Interval(*self._paired[key].bounds(low, high, multiplicity=multiplicity))

    def e_value(self, over: SkillState, under: SkillState, metric: str, *, multiplicity: int) -> Interval:
        """The e-value, by split group, for the claim that one skill's mean is above another's.

        It is monotone in every difference, so the smallest and the largest differences bound it. It is divided by
        `multiplicity`, the number of decisions that share the error.
        """
        split, whole = self.validation, self.validation.ranges[metric]
        width = (whole.high - whole.low) * split.samples * max(split.split_groups.sizes, default=0)
        low, high = self._differences(over, under, metric)
        return Interval(*(e_value(Counter(each.tolist()), width) / multiplicity for each in (low, high)))

    def _differences(self, over: SkillState, under: SkillState, metric: str) -> tuple[Ints, Ints]:
        """The least and the greatest difference that each split group can have, in millionths."""
        split = self.validation
        above, below = split.column(over, metric), split.column(under, metric)
        sums = split.split_groups.sums
        return sums(above.low - below.high), sums(above.high - below.low)
