"""How far two ratings of the same items agree: a judge with a label, or a judge with itself.

The weighted kappa is that of J. Cohen, "Weighted kappa: nominal scale agreement with provision for scaled disagreement
or partial credit", Psychological Bulletin 70 (1968), with the squared distance of the scores as the weight: 1 is full
agreement, 0 what two independent raters with the same scores reach by chance. Its interval is that of the jackknife
over groups (B. Efron, "The jackknife, the bootstrap and other resampling plans", SIAM 1982). All intervals are at 95 %.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

from skillc.dataclass import dataclass
from skillc.stats.power import mean_interval

_Z = NormalDist().inv_cdf(0.975)
_PERMUTATIONS = 999
LEAST_GROUPS_FOR_SPREAD = 6
Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Rated:
    """Two ratings of one item, each from 0 to 1; `group` is its split group."""

    group: str
    one: Fraction
    other: Fraction


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two ratings agree.

    Attributes:
        n: rated items.
        groups: split groups among them.
        exact: the share with the same score twice; None without items.
        near: the share with the same or a neighbouring level; None without a scale of three levels or more.
        kappa: None if it is not defined: every score is the same.
        kappa_interval: None with fewer than six groups.
        difference: the mean of the first rating minus that of the second.
        exact_interval, near_interval, difference_interval: None below two groups.
    """

    n: int
    groups: int
    exact: Fraction | None = None
    exact_interval: Interval | None = None
    near: Fraction | None = None
    near_interval: Interval | None = None
    kappa: float | None = None
    kappa_interval: tuple[float, float] | None = None
    difference: Fraction | None = None
    difference_interval: Interval | None = None


def agreement(rated: Sequence[Rated], scale: Sequence[Fraction] = ()) -> Agreement:
    """Return how far two ratings of some items agree.

    Args:
        rated: the items.
        scale: the scores of all levels, in order; empty if there are none, as for a mean over criteria.
    """
    groups = {each.group for each in rated}
    if not rated:
        return Agreement(0, 0)
    zero, one = Fraction(0), Fraction(1)
    same = [(each.group, Fraction(each.one == each.other)) for each in rated]
    moved = [(each.group, each.one - each.other) for each in rated]
    place = {score: i for i, score in enumerate(scale)}
    near = None
    if len(scale) > 2 and all({each.one, each.other} <= place.keys() for each in rated):
        near = [(each.group, Fraction(abs(place[each.one] - place[each.other]) <= 1)) for each in rated]
    kappa, ends = weighted_kappa(rated)
    return Agreement(
        n=len(rated),
        groups=len(groups),
        exact=_mean(same),
        exact_interval=mean_interval(same, low=zero, high=one),
        near=None if near is None else _mean(near),
        near_interval=None if near is None else mean_interval(near, low=zero, high=one),
        kappa=kappa,
        kappa_interval=ends,
        difference=_mean(moved),
        difference_interval=mean_interval(moved, low=-one, high=one),
    )


@dataclass(frozen=True, slots=True)
class PairSums:
    """Sums over items of a first rating x and a second one y, and of their squared distance."""

    n: float = 0
    x: float = 0
    y: float = 0
    xx: float = 0
    yy: float = 0
    distance: float = 0

    @classmethod
    def of(cls, x: float, y: float) -> PairSums:
        """Return the sums of one item."""
        return cls(1, x, y, x * x, y * y, (x - y) ** 2)

    def plus(self, other: PairSums, sign: int = 1) -> PairSums:
        """Return the sums with other items, or without them."""
        return PairSums(
            self.n + sign * other.n,
            self.x + sign * other.x,
            self.y + sign * other.y,
            self.xx + sign * other.xx,
            self.yy + sign * other.yy,
            self.distance + sign * other.distance,
        )

    @property
    def correlation(self) -> float | None:
        """Pearson's; None if either side never varies."""
        own, other = self.n * self.xx - self.x**2, self.n * self.yy - self.y**2
        product = self.n * (self.xx + self.yy - self.distance) / 2 - self.x * self.y
        return product / sqrt(own * other) if min(own, other) > 1e-9 else None

    @property
    def kappa(self) -> float | None:
        """The weighted kappa; None if all ratings are equal."""
        # By chance, each first rating meets each second one.
        chance = self.xx / self.n + self.yy / self.n - 2 * self.x * self.y / self.n**2 if self.n else 0.0
        return 1 - self.distance / self.n / chance if chance > 1e-12 else None


def group_sums(rated: Sequence[Rated]) -> tuple[PairSums, list[PairSums]]:
    """Return the sums over all items, and those of each group."""
    by_group: dict[str, PairSums] = defaultdict(PairSums)
    whole = PairSums()
    for each in rated:
        one = PairSums.of(float(each.one), float(each.other))
        by_group[each.group], whole = by_group[each.group].plus(one), whole.plus(one)
    return whole, list(by_group.values())


def weighted_kappa(rated: Sequence[Rated]) -> tuple[float | None, tuple[float, float] | None]:
    """Return the kappa of two ratings with quadratic weights, and its interval."""
    return _with_interval(rated, lambda sums: sums.kappa)


def correlation(rated: Sequence[Rated]) -> tuple[float | None, tuple[float, float] | None]:
    """Return Pearson's correlation of two ratings, and its interval; for two levels that is the phi coefficient."""
    return _with_interval(rated, lambda sums: sums.correlation)


def _with_interval(
    rated: Sequence[Rated], figure: Callable[[PairSums], float | None]
) -> tuple[float | None, tuple[float, float] | None]:
    """Return a figure of sums over items, from -1 to 1, and its interval by the jackknife over groups."""
    whole, by_group = group_sums(rated)
    value, count = figure(whole), len(by_group)
    if value is None or count < LEAST_GROUPS_FOR_SPREAD:
        return value, None
    # Without a group on which all variation rests, the figure is not defined, and neither is its spread.
    without = [figure(whole.plus(sums, -1)) for sums in by_group]
    if any(each is None for each in without):
        return value, None
    left = [each for each in without if each is not None]
    middle = sum(left) / count
    reach = _Z * sqrt((count - 1) / count * sum((each - middle) ** 2 for each in left))
    return value, (max(-1.0, value - reach), min(1.0, value + reach))


def pairs_of_repeats(rows: Sequence[tuple[str, Sequence[Fraction]]]) -> list[Rated]:
    """Return each pair of repeated ratings of an item in both orders, as neither is the first; rows have a group."""
    return [
        Rated(group, one, other)
        for group, scores in rows
        for i, one in enumerate(scores)
        for j, other in enumerate(scores)
        if i != j
    ]


@dataclass(frozen=True, slots=True)
class Correlation:
    """A rank correlation.

    Attributes:
        value: from -1 to 1; None if either side never varies.
        p: two-sided, by permutation; None likewise.
        n: items.
    """

    value: float | None
    p: float | None
    n: int


def correlation_within(rows: Sequence[tuple[Fraction, Fraction, float]], seed: int = 0) -> Correlation:
    """Return the rank correlation of score and length among items of equal label, pooled over the labels.

    Ranks are centred within each label, and permuted within each for p: what the label explains does not count.

    Args:
        rows: label, score and length of each item.
        seed: of the permutations.
    """
    strata: dict[Fraction, list[tuple[Fraction, float]]] = defaultdict(list)
    for label, score, length in rows:
        strata[label].append((score, length))
    parts = [
        (_centred([float(score) for score, _ in each]), _centred([length for _, length in each]))
        for each in strata.values()
    ]
    spread = sum(x * x for xs, _ in parts for x in xs) * sum(y * y for _, ys in parts for y in ys)
    if spread <= 0:
        return Correlation(None, None, len(rows))
    products = [sum(x * y for x, y in zip(xs, ys, strict=True)) for xs, ys in parts]
    seen = abs(sum(products)) * (1 - 1e-9)
    draw, passed = random.Random(seed), 0
    for _ in range(_PERMUTATIONS):
        total = 0.0
        for xs, ys in parts:
            shuffled = draw.sample(ys, len(ys))
            total += sum(x * y for x, y in zip(xs, shuffled, strict=True))
        passed += abs(total) >= seen
    return Correlation(sum(products) / sqrt(spread), (1 + passed) / (_PERMUTATIONS + 1), len(rows))


def _centred(values: Sequence[float]) -> list[float]:
    """Return ranks, the mean rank for equal values, minus their mean."""
    ordered = sorted(values)
    first: dict[float, int] = {}
    count: dict[float, int] = defaultdict(int)
    for i, value in enumerate(ordered):
        first.setdefault(value, i)
        count[value] += 1
    middle = (len(values) - 1) / 2
    return [first[value] + (count[value] - 1) / 2 - middle for value in values]


def _mean(values: Sequence[tuple[str, Fraction]]) -> Fraction:
    return sum((value for _, value in values), Fraction(0)) / len(values)
