"""What a gate may read: cells of the skills on a split, and their texts. Built anew for each decision, read lazily."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from skillc.data.example import Example
from skillc.language.terms import State
from skillc.metrics.cells import MICRO, Cell, Scored
from skillc.optimize.intervals import EVERYTHING, Interval

SMALLEST_GROUP = 20
OTHER = "other"

# The cells of one rollout by metric, None where it was not run: (state, example, sample) -> cells.
Lookup = Callable[[State, Example, int], Mapping[str, Cell] | None]
# The price of one rollout in nano-dollars, None where it is unknown.
Prices = Callable[[State, Example, int], int | None]


@dataclass(frozen=True, slots=True)
class Range:
    """The finite range of a metric, in millionths."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Column:
    """A metric of one skill by example: the least and the greatest sum over the samples, in millionths."""

    low: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True)
class SplitEvidence:
    """What is known of each skill on one split.

    Attributes:
        examples: in a fixed order; their number is the fixed denominator of every mean.
        samples: rollouts per example.
        lookup: the cells; absent and unmeasured ones stand for the metric's whole range.
        ranges: by metric.
        prices: what rollouts cost.
    """

    examples: tuple[Example, ...]
    samples: int
    lookup: Lookup
    ranges: Mapping[str, Range]
    prices: Prices = lambda state, example, sample: None
    _columns: dict[tuple[State, str], Column] = field(default_factory=dict, repr=False, compare=False)

    def column(self, state: State, metric: str) -> Column:
        """The bounds of a metric for a skill, example by example."""
        key = (state, metric)
        if key not in self._columns:
            bounds = [self._bounds(state, metric, example) for example in self.examples]
            self._columns[key] = Column(tuple(low for low, _ in bounds), tuple(high for _, high in bounds))
        return self._columns[key]

    def _bounds(self, state: State, metric: str, example: Example) -> tuple[int, int]:
        whole, low, high = self.ranges[metric], 0, 0
        for sample in range(self.samples):
            cells = self.lookup(state, example, sample)
            cell = cells.get(metric) if cells is not None else None
            known = isinstance(cell, Scored)
            low += cell.value if isinstance(cell, Scored) and known else whole.low
            high += cell.value if isinstance(cell, Scored) and known else whole.high
        return low, high

    def named_groups(self, name: str) -> list[tuple[str, list[int]]]:
        """Indices of the examples by the value of a field; values with fewer than 20 examples are pooled as `other`."""
        by_value: dict[str, list[int]] = {}
        for i, example in enumerate(self.examples):
            by_value.setdefault(str(example.fields.get(name)), []).append(i)
        large = [(value, group) for value, group in by_value.items() if len(group) >= SMALLEST_GROUP]
        small = sorted(i for group in by_value.values() if len(group) < SMALLEST_GROUP for i in group)
        return [*large, (OTHER, small)] if small else large

    def groups(self, name: str) -> list[list[int]]:
        """Indices of the examples by group, as `named_groups`."""
        return [group for _, group in self.named_groups(name)]

    @cached_property
    def split_groups(self) -> list[list[int]]:
        """Indices of the examples by split group, in order of the groups' names."""
        by_group: dict[str, list[int]] = {}
        for i, example in enumerate(self.examples):
            by_group.setdefault(example.group, []).append(i)
        return [by_group[name] for name in sorted(by_group)]

    def mean(self, low: tuple[int, ...], high: tuple[int, ...], indices: list[int] | None = None) -> Interval:
        """The mean over examples of sums over samples, in the metric's unit; anything, where there is no example."""
        count = len(low) if indices is None else len(indices)
        if count == 0:
            return EVERYTHING
        ends = (sum(values if indices is None else [values[i] for i in indices]) for values in (low, high))
        return Interval(*(Fraction(end, count * self.samples * MICRO) for end in ends))

    def cost(self, state: State) -> Interval:
        """Dollars per rollout at list price; what is unknown lies anywhere above 0."""
        prices = [self.prices(state, example, s) for example in self.examples for s in range(self.samples)]
        known = Fraction(sum(price for price in prices if price is not None), max(1, len(prices)) * 10**9)
        return Interval(known, math.inf if None in prices else known)


@dataclass(frozen=True, slots=True)
class TextEvidence:
    """What is known of the skills' texts: their tokens, and the candidate's change as a share. None is unknown."""

    tokens: Mapping[State, int | None]
    change: Fraction | None


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
