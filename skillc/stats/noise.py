"""How much repeated measurements of one skill differ: flips, the deviation of a mean, and the margin against both.

Examples flip independently of each other, or by group where the split has groups: the answers to one customer may flip
together. All intervals are for examples from the same source, at 95 %.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import exp, sqrt
from statistics import NormalDist

from skillc.dataclass import dataclass
from skillc.outcomes import MICRO
from skillc.stats.power import mean_interval

_Z = NormalDist().inv_cdf(0.95)
_Z_TWO_SIDED = NormalDist().inv_cdf(0.975)
_PERMUTATIONS = 1_999
_MOST_DRAWN = 2**20
Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Repeats:
    """The scores of one example in millionths, one for each repeat; None where it was not measured."""

    group: str
    scores: tuple[int | None, ...]

    @property
    def measured(self) -> tuple[int, ...]:
        """The measured scores."""
        return tuple(score for score in self.scores if score is not None)


@dataclass(frozen=True, slots=True)
class Noise:
    """How much repeated measurements of one skill differ.

    Attributes:
        examples: those with at least two measured repeats.
        groups: split groups among them.
        changed: examples whose score is not the same in all repeats.
        flips: the share of pairs of repeats in which an example's score differs, averaged over the examples.
        flips_interval: None below two groups.
        loss: the mean loss of a repeat against another one, in points of the goal: half of the mean distance.
        means: of each repeat, over the examples measured in all of them; empty if there are none.
        deviation: the standard deviation of the mean of one repeat; None without such examples.
        deviation_interval: None below two groups.
        drift: p that the means differ only because examples flip, by permutation of the repeats; None without repeats.
    """

    examples: int
    groups: int
    changed: int
    flips: Fraction | None
    flips_interval: Interval | None
    loss: Fraction | None
    means: tuple[Fraction, ...]
    deviation: float | None
    deviation_interval: tuple[float, float] | None
    drift: float | None

    @property
    def largest(self) -> Fraction | None:
        """The largest difference of the means of two repeats."""
        return max(self.means) - min(self.means) if self.means else None


@dataclass(frozen=True, slots=True)
class Difference:
    """How two conditions of measurement differ, over the examples measured under both.

    Attributes:
        flips: the share of pairs of a repeat under the one and a repeat under the other in which a score differs.
        mean: of the second minus that of the first.
        flips_interval, mean_interval: None below two groups.
    """

    examples: int
    flips: Fraction | None
    flips_interval: Interval | None
    mean: Fraction | None
    mean_interval: Interval | None


def noise_of(rows: Sequence[Repeats], *, low: Fraction, high: Fraction, seed: int = 0) -> Noise:
    """Return how much repeats differ; the goal is between `low` and `high`, and `seed` draws the permutations."""
    again = [row for row in rows if len(row.measured) > 1]
    shares = [(row.group, _share(combinations(row.measured, 2))) for row in again]
    losses = [_distance(combinations(row.measured, 2)) / 2 for row in again]
    whole = [row for row in rows if len(row.scores) > 1 and None not in row.scores]
    columns = list(zip(*(row.measured for row in whole), strict=True))
    deviation, ends = _deviation(whole, high - low)
    return Noise(
        examples=len(again),
        groups=len({row.group for row in again}),
        changed=sum(len(set(row.measured)) > 1 for row in again),
        flips=_mean([share for _, share in shares]),
        flips_interval=mean_interval(shares, low=Fraction(0), high=Fraction(1)),
        loss=_mean(losses),
        means=tuple(Fraction(sum(column), len(whole) * MICRO) for column in columns),
        deviation=deviation,
        deviation_interval=ends,
        drift=_drift(whole, seed),
    )


def difference_of(first: Sequence[Repeats], second: Sequence[Repeats], *, low: Fraction, high: Fraction) -> Difference:
    """Return how the same examples, in the same order, differ under two conditions."""
    both = [(one, other) for one, other in zip(first, second, strict=True) if one.measured and other.measured]
    shares = [(one.group, _share(product(one.measured, other.measured))) for one, other in both]
    moved = [(one.group, _score(other) - _score(one)) for one, other in both]
    width = high - low
    flips = mean_interval(shares, low=Fraction(0), high=Fraction(1))
    means = mean_interval(moved, low=-width, high=width)
    if flips is not None and means is not None:
        # Examples that score alike move no mean.
        most = flips[1] * width
        means = max(means[0], -most), min(means[1], most)
    return Difference(
        examples=len(both),
        flips=_mean([share for _, share in shares]),
        flips_interval=flips,
        mean=_mean([change for _, change in moved]),
        mean_interval=means,
    )


def margin(deviation: float, samples: int = 1) -> float:
    """Return the gain that a skill exceeds against itself in 5 % of comparisons of two means.

    Each mean is over the same examples, each with `samples` rollouts; `deviation` is that of a mean with one rollout.
    """
    return _Z * sqrt(2 / samples) * deviation


def _share(pairs: Iterable[tuple[int, int]]) -> Fraction:
    """The share of pairs that differ."""
    found = [one != other for one, other in pairs]
    return Fraction(sum(found), len(found))


def _distance(pairs: Iterable[tuple[int, int]]) -> Fraction:
    """The mean distance of pairs, in the unit of the goal."""
    found = [abs(one - other) for one, other in pairs]
    return Fraction(sum(found), len(found) * MICRO)


def _score(row: Repeats) -> Fraction:
    return Fraction(sum(row.measured), len(row.measured) * MICRO)


def _mean(values: Sequence[Fraction]) -> Fraction | None:
    return sum(values, Fraction(0)) / len(values) if values else None


def _sums(rows: Sequence[Repeats]) -> list[tuple[int, list[int]]]:
    """The size of each group, and the sum of its scores in each repeat."""
    groups: dict[str, list[Repeats]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    return [
        (len(each), [sum(column) for column in zip(*(r.measured for r in each), strict=True)])
        for each in groups.values()
    ]


def _deviation(rows: Sequence[Repeats], width: Fraction) -> tuple[float | None, tuple[float, float] | None]:
    """The standard deviation of a repeat's mean, and its interval.

    The variance of a mean is the sum of the variances of the groups' sums, over the square of the number of examples. A
    variance is half of the mean squared difference of two repeats, so its interval is that of a mean over the groups.
    """
    if not rows:
        return None, None
    sums = _sums(rows)
    largest = max(size for size, _ in sums)
    scale = (largest * width * MICRO) ** 2
    squares = [
        (str(i), Fraction(sum((a - b) ** 2 for a, b in pairs), len(pairs)) / scale)
        for i, (_, totals) in enumerate(sums)
        for pairs in [list(combinations(totals, 2))]
    ]
    factor = largest**2 * width**2 * len(sums) / (2 * Fraction(len(rows)) ** 2)
    ends = mean_interval(squares, low=Fraction(0), high=Fraction(1))
    mean = float(_mean([square for _, square in squares]) or 0)
    if ends is None:
        return sqrt(mean * factor), None
    low, high = float(ends[0]), float(ends[1])
    if largest > 1 and mean:
        # Sums over groups are skewed: the interval of the logarithm reaches further up, by the delta method and about
        # Student's t.
        count = len(squares)
        error = sqrt(sum((float(square) - mean) ** 2 for _, square in squares) / (count - 1) / count) / mean
        reach = (_Z_TWO_SIDED + (_Z_TWO_SIDED**3 + _Z_TWO_SIDED) / (4 * (count - 1))) * error
        low, high = min(low, mean * exp(-reach)), max(high, mean * exp(reach))
    return sqrt(mean * factor), (sqrt(low * factor), sqrt(high * factor))


def _drift(rows: Sequence[Repeats], seed: int) -> float | None:
    """The share of permutations of the repeats within groups whose means vary at least as much as the measured ones.

    If all repeats are alike, their order within a group is arbitrary, so the test is exact for any kind of flips.
    """
    import numpy as np

    if not rows:
        return None
    sums = np.array([totals for _, totals in _sums(rows)], dtype=np.float64)
    draw = np.random.default_rng(seed)
    # Rounding must not tell equal spreads apart.
    seen = np.var(sums.sum(axis=0)) * (1 - 1e-9)
    passed, left = 0, _PERMUTATIONS
    while left:
        size = min(left, max(1, _MOST_DRAWN // sums.size))
        drawn = draw.permuted(np.broadcast_to(sums, (size, *sums.shape)), axis=2)
        passed += int((np.var(drawn.sum(axis=1), axis=1) >= seen).sum())
        left -= size
    return (1 + passed) / (_PERMUTATIONS + 1)
