"""The verdict: the best skill against the initial one on held-out examples, paired by group.

See docs/design/statistics.md.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from skillc.dataclass import dataclass
from skillc.outcomes import MICRO
from skillc.stats.error_rates import ErrorRates
from skillc.stats.misclassification import gain_interval
from skillc.stats.power import LEAST_GROUPS, LEVEL, detectable_gain
from skillc.text import counted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

SUBSETS = 99_999
SUBSETS_FOR_MANY = 9_999
MANY = 5_000

VerdictWord = Literal["improved", "no significant gain", "worse", "unverified"]


@dataclass(frozen=True, slots=True)
class PairedScore:
    """One sample of a test example under both skills, in millionths of the goal; None if not measured."""

    group: str
    initial: int | None
    best: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a compile.

    Attributes:
        reason: why it is not better, or empty.
        gain: mean difference over the measured pairs, in goal points.
        interval: at level 1 - alpha; it excludes 0 exactly if the verdict is `improved` or `worse`.
        p: two-sided.
        n: measured pairs divided by the samples of an example.
        groups: split groups among them.
        look: the number of looks at this test split.
        alpha: the level of this look, 0.05 / look².
        detectable: the smallest gain that this test detects with 80 % power.
    """

    verdict: VerdictWord
    reason: str = ""
    gain: Fraction | None = None
    interval: tuple[Fraction, Fraction] | None = None
    p: Fraction | None = None
    n: int = 0
    groups: int = 0
    look: int = 0
    alpha: Fraction = LEVEL
    detectable: float | None = None


def without_test(reason: str, *, same: bool = False, look: int = 0) -> Verdict:
    """The verdict without a test: `unverified`, or no gain if the best skill is the initial one."""
    if same:
        return Verdict("no significant gain", reason, gain=Fraction(0), look=max(0, look - 1))
    return Verdict("unverified", reason)


def judge(
    pairs: Sequence[PairedScore],
    *,
    low: Fraction,
    high: Fraction,
    look: int,
    seed: int,
    samples: int = 1,
    level: Fraction = LEVEL,
    rates: ErrorRates | None = None,
) -> Verdict:
    """The verdict on a whole test split.

    The difference of a group is the sum over its pairs, `samples` times the sum of the means over samples, which gives
    the same p-value, interval and gain.

    Args:
        pairs: one per test example and sample.
        low: the least possible goal, assumed for missing measurements.
        high: the greatest, likewise.
        look: the number of looks at this split, this one included.
        seed: of the plan; determines the subsets.
        samples: pairs of one example.
        level: of the first look.
        rates: the error rates of the goal, if it is a corrected signal: their uncertainty widens the interval.
    """
    alpha = level / (look * look)
    measured = [pair for pair in pairs if pair.initial is not None and pair.best is not None]
    gained = sum((pair.best or 0) - (pair.initial or 0) for pair in measured)
    names = sorted({pair.group for pair in pairs})
    seen = Verdict(
        "unverified",
        gain=Fraction(gained, len(measured) * MICRO) if measured else None,
        n=len(measured) // samples,
        groups=len({pair.group for pair in measured}),
        look=look,
        alpha=alpha,
    )
    if len(names) < LEAST_GROUPS:
        return replace(seen, reason=f"the test split has {counted(len(names), 'group')}, fewer than {LEAST_GROUPS}")
    if not measured:
        return replace(seen, reason="no example was measured under both skills")
    worst, best = _differences(pairs, names, low, high)
    exact, _ = _differences(measured, names, low, high)
    groups = Counter(pair.group for pair in measured)
    sizes = [groups[name] for name in names]
    sums = _Sums(worst, best, exact, sizes, alpha, seed)
    word, interval = sums.word, sums.interval(low - high, high - low)
    if rates is not None and seen.gain is not None:
        interval = gain_interval(seen.gain, interval, rates, alpha)
    return replace(
        seen,
        verdict=word,
        reason="examples that were not measured could change it" if word == "unverified" else "",
        interval=interval,
        p=sums.p,
        detectable=detectable_gain(exact, sizes, alpha),
    )


def largest_p(pairs: Sequence[PairedScore], *, low: Fraction, high: Fraction, seed: int) -> Fraction:
    """The two-sided p of `judge`, or the largest that a completion of the unmeasured pairs gives in one direction.

    It is 1 with fewer than six groups, and without a measured pair. `low`, `high` and `seed` as in `judge`.
    """
    names = sorted({pair.group for pair in pairs})
    if len(names) < LEAST_GROUPS or all(None in (pair.initial, pair.best) for pair in pairs):
        return Fraction(1)
    worst, best = _differences(pairs, names, low, high)
    return _Sums(worst, best, worst, [1] * len(names), LEVEL, seed).largest_p


def p_range(pairs: Sequence[PairedScore], *, low: Fraction, high: Fraction, seed: int) -> tuple[Fraction, Fraction]:
    """The smallest and the largest two-sided p of `judge` over every completion of the unmeasured pairs.

    Both are 1 with fewer than six groups. `low`, `high` and `seed` as in `judge`.
    """
    names = sorted({pair.group for pair in pairs})
    if len(names) < LEAST_GROUPS:
        return Fraction(1), Fraction(1)
    worst, best = _differences(pairs, names, low, high)
    sums = _Sums(worst, best, worst, [1] * len(names), LEVEL, seed)
    return sums.smallest_p, sums.largest_p


def least_p(groups: int) -> Fraction:
    """The smallest two-sided p that so many groups can give."""
    if groups < LEAST_GROUPS:
        return Fraction(1)
    most = SUBSETS_FOR_MANY if groups > MANY else SUBSETS
    return Fraction(2, min(2**groups - 1, most) + 1)


class _Sums:
    """Sums of differences over random subsets of the groups, with the p-values and the interval.

    `worst` and `best` are the differences with missing measurements at their worst and best, `exact` those over the
    `sizes` measured pairs of each group. p never rises with a difference, so the extremes bound every completion.
    """

    def __init__(
        self,
        worst: Sequence[int],
        best: Sequence[int],
        exact: Sequence[int],
        sizes: Sequence[int],
        alpha: Fraction,
        seed: int,
    ) -> None:
        from skillc.stats.subsets import subset_sums

        count = SUBSETS_FOR_MANY if len(sizes) > MANY else SUBSETS
        drawn = hashlib.sha256(f"verdict {seed}".encode()).digest()
        self._worst, self._best, self._exact, self._sizes = subset_sums([worst, best, exact, sizes], count, drawn)
        self._count, self._half = len(self._exact), alpha / 2

    def _up(self, sums: npt.NDArray[np.int64]) -> Fraction:
        return Fraction(1 + int((sums <= 0).sum()), self._count + 1)

    def _down(self, sums: npt.NDArray[np.int64]) -> Fraction:
        return Fraction(1 + int((sums >= 0).sum()), self._count + 1)

    @property
    def word(self) -> VerdictWord:
        """One-sided tests at alpha / 2 on either side; `unverified` if completions differ."""
        if self._up(self._worst) <= self._half:
            return "improved"
        if self._down(self._best) <= self._half:
            return "worse"
        open_ = self._up(self._best) <= self._half or self._down(self._worst) <= self._half
        return "unverified" if open_ else "no significant gain"

    @property
    def p(self) -> Fraction:
        """Two-sided, over the measured pairs."""
        return min(Fraction(1), 2 * min(self._up(self._exact), self._down(self._exact)))

    @property
    def largest_p(self) -> Fraction:
        """Two-sided, with missing measurements against the side that it supports."""
        return min(Fraction(1), 2 * min(self._up(self._worst), self._down(self._best)))

    @property
    def smallest_p(self) -> Fraction:
        """Two-sided, with missing measurements for the side that it supports."""
        return min(Fraction(1), 2 * min(self._up(self._best), self._down(self._worst)))

    def interval(self, least: Fraction, most: Fraction) -> tuple[Fraction, Fraction]:
        """Order statistics of the subsets' means; excludes 0 exactly if p is at most alpha.

        With too few subsets for this alpha it is the whole range from `least` to `most`.
        """
        import numpy as np

        rank = math.floor(self._half * (self._count + 1))
        if rank == 0:
            return least, most
        # A subset without a measured pair has the mean 0.
        sizes = np.maximum(self._sizes, 1)
        order = np.argsort(self._exact / sizes, kind="stable")
        ends = (order[rank - 1], order[self._count - rank])
        low, high = (Fraction(int(self._exact[i]), int(sizes[i]) * MICRO) for i in ends)
        return low, high


def _differences(
    pairs: Sequence[PairedScore], names: Sequence[str], low: Fraction, high: Fraction
) -> tuple[list[int], list[int]]:
    """Best minus initial by group, with missing measurements at their worst and at their best."""
    floor, ceiling = round(low * MICRO), round(high * MICRO)
    worst, best = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for pair in pairs:
        least = floor if pair.best is None else pair.best
        most = ceiling if pair.best is None else pair.best
        worst[pair.group] += least - (ceiling if pair.initial is None else pair.initial)
        best[pair.group] += most - (floor if pair.initial is None else pair.initial)
    return list(worst.values()), list(best.values())
