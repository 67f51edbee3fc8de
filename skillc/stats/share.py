"""The share of a gain that survives elsewhere, with an interval for the ratio of two means.

The share r solves `gain there = r * gain here`. As in E. C. Fieller, "Some problems in interval estimation", JRSS B 16
(1954), its interval contains each r for which the mean of `there - r * here` is not shown to differ from 0, and is
bounded exactly if the gain here differs from 0 at the same level. The test is that of the verdict: over random subsets
of the groups (Hartigan 1969). On the same examples both gains use the same subsets, so that what they have in common
cancels; on other examples each has its own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from skillc.dataclass import dataclass
from skillc.stats.error_rates import ErrorRates
from skillc.stats.misclassification import ratio_interval
from skillc.stats.power import LEAST_GROUPS, LEVEL
from skillc.stats.verdict import SUBSETS, PairedScore
from skillc.text import counted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

NOT_SHOWN = "the original gain is not distinguishable from 0"
COIN = "by the examples behind its error rates a signal may be a coin"


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a gain that survives.

    Attributes:
        value: gain there by gain here; None if it is not defined.
        interval: at 95 %; None if it is not defined.
        reason: why it is not defined, or empty.
    """

    value: Fraction | None = None
    interval: tuple[float, float] | None = None
    reason: str = ""


def share_of_gain(
    here: Sequence[PairedScore],
    there: Sequence[PairedScore],
    *,
    seed: int,
    same_examples: bool,
    rates: tuple[ErrorRates | None, ErrorRates | None] | None = None,
    level: Fraction = LEVEL,
    subsets: int = SUBSETS,
) -> Share:
    """Return the share of the gain `here` that there is `there`, over the measured pairs.

    Args:
        here: the pairs of the original gain.
        there: the pairs of the other one.
        seed: of the plan; determines the subsets.
        same_examples: whether both are measured on the same examples.
        rates: error rates of the signals of both gains, if they are different signals. Those of one signal cancel.
        level: one minus that of the interval.
        subsets: the number of subsets.
    """
    sums = [_by_group(pairs) for pairs in (here, there)]
    for found, what in zip(sums, ("the original gain", "this gain"), strict=True):
        if not found:
            return Share(reason=f"{what} is not measured")
        if len(found) < LEAST_GROUPS:
            return Share(reason=f"{what} has {counted(len(found), 'group')}, fewer than {LEAST_GROUPS}")
    base, other = (_drawn_means(*_columns(sums, i, same_examples), subsets, seed) for i in (0, 1))
    count = len(base)
    rank = math.floor(level / 2 * (count + 1))
    below = int((base <= 0).sum())
    if rank == 0 or below >= rank:
        return Share(reason=NOT_SHOWN)
    value = _mean(sums[1]) / _mean(sums[0])
    low, high = _ends(base, other, rank)
    if rates is None or not any(each is not None and each.estimated for each in rates):
        return Share(value, (low, high))
    ends = min(value, Fraction(low)), max(value, Fraction(high))
    wider = ratio_interval(value, ends, *rates)
    return Share(reason=COIN) if wider is None else Share(value, (float(wider[0]), float(wider[1])))


_Sums = dict[str, tuple[int, int]]


def _by_group(pairs: Sequence[PairedScore]) -> _Sums:
    """Return the sum of the differences and the number of measured pairs of each group."""
    found: _Sums = {}
    for pair in pairs:
        if pair.initial is not None and pair.best is not None:
            total, count = found.get(pair.group, (0, 0))
            found[pair.group] = total + pair.best - pair.initial, count + 1
    return found


def _mean(sums: _Sums) -> Fraction:
    return Fraction(sum(total for total, _ in sums.values()), sum(count for _, count in sums.values()))


def _columns(sums: Sequence[_Sums], i: int, same_examples: bool) -> tuple[list[int], list[int], str]:
    """Return sums and sizes by group, in one order for the same examples, and the name of their subsets."""
    names = sorted({*sums[0], *sums[1]} if same_examples else sums[i])
    found = [sums[i].get(name, (0, 0)) for name in names]
    return [total for total, _ in found], [count for _, count in found], "both" if same_examples else str(i)


def _drawn_means(totals: list[int], sizes: list[int], name: str, subsets: int, seed: int) -> npt.NDArray[np.float64]:
    """Return the mean of each of some random subsets of the groups; as many for every number of groups."""
    import numpy as np

    from skillc.stats.subsets import subset_sums

    drawn = hashlib.sha256(f"share {seed} {name}".encode()).digest()
    sums, counts = subset_sums([totals, sizes], subsets, drawn)
    means = sums / np.maximum(counts, 1)
    if len(means) == subsets or name == "both":
        return np.asarray(means)
    # Few groups have fewer subsets, all of them: draw from these, so that those of two data sets can be combined.
    stream = hashlib.shake_256(drawn + b"drawn").digest(4 * subsets)
    return np.asarray(means[np.frombuffer(stream, dtype="<u4") % len(means)])


def _ends(base: npt.NDArray[np.float64], other: npt.NDArray[np.float64], rank: int) -> tuple[float, float]:
    """Return order statistics of the ratios; where the original gain is not above 0, a ratio could be anything."""
    import numpy as np

    count = min(len(base), len(other))
    base, other = base[:count], other[:count]
    positive = base > 0
    ratios = other[positive] / base[positive]
    open_ = count - len(ratios)
    ratios = np.sort(ratios)
    return float(ratios[rank - 1 - open_]), float(ratios[count - rank])
