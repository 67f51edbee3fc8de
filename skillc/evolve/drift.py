"""Drift: whether the delivered skill has fallen below the score in its lock, by a test that may be read every night.

The claim to refute is that the skill still scores at least the lock's mean less the declared limit. The lock's mean is
itself measured on few examples, so its lower confidence bound takes its place; that and the e-process on the new rows
share the declared error. Both hold at any time, so many nights do not add up to a false alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import Literal

from skillc.dataclass import dataclass
from skillc.stats.betting import confidence_sequence, evidence_below

ERROR = 0.05
"""The probability of a roll back without a fall, over all nights of one version."""
FOR_LOCK = 0.04
"""The part of it that covers the sampling error of the lock's mean."""
SUSPECTED = 5.0
"""The e-value from which drift is suspected."""

Word = Literal["no reference", "no drift", "suspected", "fallen"]


@dataclass(frozen=True, slots=True)
class DriftFound:
    """What the new rows say of the delivered skill.

    Attributes:
        locked: the lock's mean; None without one.
        floor: the lower bound of that mean less the limit.
        mean: of the new rows, by cluster; None without rows.
        interval: their confidence sequence at 95 %.
        evidence: the e-value against "still at least `floor`".
        needed: the e-value that rolls back.
        rows: clusters of rows.
    """

    word: Word
    locked: float | None = None
    floor: float | None = None
    mean: float | None = None
    interval: tuple[float, float] | None = None
    evidence: float = 1.0
    needed: float = 1 / (ERROR - FOR_LOCK)
    rows: int = 0

    @property
    def fallen_by(self) -> float | None:
        """The lock's mean minus that of the new rows."""
        return None if self.locked is None or self.mean is None else self.locked - self.mean


def judge_drift(
    nights: Sequence[Sequence[float]],
    *,
    locked: tuple[Fraction, int] | None,
    limit: Fraction,
    low: Fraction,
    high: Fraction,
) -> DriftFound:
    """Return whether the skill has fallen.

    Args:
        nights: since the version was adopted, for each night the mean goal by new cluster.
        locked: the lock's mean on test and the number of examples behind it.
        limit: the declared fall, as a share of the goal's range.
        low: the least possible goal.
        high: the greatest.
    """
    values = [value for night in nights for value in night]
    if locked is None or not locked[1]:
        return DriftFound("no reference", rows=len(values))
    mean, count = locked
    floor = lower_bound(float(mean), count, low=float(low), high=float(high)) - float(limit * (high - low))
    found = DriftFound("no drift", float(mean), floor, rows=len(values))
    if not values:
        return found
    evidence = max(_at_ends(nights, floor, float(low), float(high)))
    word: Word = "fallen" if evidence >= found.needed else "suspected" if evidence >= SUSPECTED else "no drift"
    interval = confidence_sequence(values, low=float(low), high=float(high), error=0.05)
    return replace(found, word=word, mean=sum(values) / len(values), interval=interval, evidence=evidence)


def lower_bound(mean: float, count: int, *, low: float, high: float) -> float:
    """Return Wilson's one-sided lower bound of the lock's mean at the error `FOR_LOCK`."""
    z = NormalDist().inv_cdf(1 - FOR_LOCK)
    scaled = (mean - low) / (high - low)
    root = z * sqrt(scaled * (1 - scaled) / count + z * z / (4 * count * count))
    least = (scaled + z * z / (2 * count) - root) / (1 + z * z / count)
    return low + max(0.0, least) * (high - low)


def _at_ends(nights: Sequence[Sequence[float]], floor: float, low: float, high: float) -> list[float]:
    """Return the e-value at the end of each night: what was refuted once stays refuted."""
    until, found = list[float](), list[float]()
    for night in nights:
        until += night
        found.append(evidence_below(until, floor, low=low, high=high))
    # Only the last one can be suspected; an earlier one counts if it refuted.
    refuted = [each for each in found if each >= 1 / (ERROR - FOR_LOCK)]
    return refuted or found[-1:]
