"""Drift: test whether the delivered skill has fallen below the score in its lock. The test may be read every night.

The null hypothesis is that the skill still scores at least the lock's mean less the declared limit. The lock's mean is
itself measured on few examples, so its lower confidence bound is used. That bound and the e-process on the new rows
share the declared error. Both hold at any time, so many nights do not add up to a false alarm.

If the goal is a noisy signal, the hypothesis is about right answers. Lock and new rows are compared in the mean of the
signal, where an error of the rates cannot look like a fall: a fall of d in right answers is a fall of J d there, with
Youden's J. If the rates were measured, the upper bound of J is used. A lock that was not measured by the signal is
compared in right answers: the hypothesis is then the least mean of the signal that they give within the bounds of both
rates.
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
from skillc.stats.error_rates import ErrorRates
from skillc.stats.misclassification import as_share, rate_limits, shares_behind, youden_interval

ERROR = 0.05
"""The probability of a rollback without a fall, over all nights of one version."""
FOR_LOCK = 0.04
"""The part of it that covers the sampling error of the lock's mean."""
FOR_RATES = Fraction(1, 50)
"""The part of `FOR_LOCK` that covers the error of measured rates, for a noisy signal."""
SUSPECTED = 5.0
"""The e-value from which drift is suspected."""

Word = Literal["no reference", "no drift", "suspected", "fallen"]


@dataclass(frozen=True, slots=True)
class DriftFound:
    """Result of the drift test.

    Attributes:
        locked: the lock's mean, by the present error rates of a noisy signal; None without one.
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
    rates: ErrorRates | None = None,
    locked_rates: ErrorRates | None = None,
) -> DriftFound:
    """Return whether the skill has fallen.

    Args:
        nights: since the version was adopted, for each night the mean goal by new cluster.
        locked: the lock's mean on test and the number of examples behind it.
        limit: the declared fall, as a share of the goal's range.
        low: the least possible goal.
        high: the greatest.
        rates: error rates of the goal, if it is a noisy signal.
        locked_rates: the rates that corrected the lock's mean.
    """
    values = [value for night in nights for value in night]
    if locked is None or not locked[1]:
        return DriftFound("no reference", rows=len(values))
    if rates is None and locked_rates is None:
        mean, count = float(locked[0]), locked[1]
        floor = lower_bound(mean, count, low=float(low), high=float(high)) - float(limit * (high - low))
    else:
        mean, floor = _by_signal(*locked, limit, rates, locked_rates)
    found = DriftFound("no drift", mean, floor, rows=len(values))
    if not values:
        return found
    evidence = max(_at_ends(nights, floor, float(low), float(high)))
    word: Word = "fallen" if evidence >= found.needed else "suspected" if evidence >= SUSPECTED else "no drift"
    interval = _interval(values, float(low), float(high), rates)
    return replace(found, word=word, mean=sum(values) / len(values), interval=interval, evidence=evidence)


def lower_bound(mean: float, count: int, *, low: float, high: float, error: float = FOR_LOCK) -> float:
    """Return Wilson's one-sided lower bound of the lock's mean."""
    z = NormalDist().inv_cdf(1 - error)
    scaled = (mean - low) / (high - low)
    root = z * sqrt(scaled * (1 - scaled) / count + z * z / (4 * count * count))
    least = (scaled + z * z / (2 * count) - root) / (1 + z * z / count)
    return low + max(0.0, least) * (high - low)


def _by_signal(
    mean: Fraction, count: int, limit: Fraction, rates: ErrorRates | None, locked_rates: ErrorRates | None
) -> tuple[float, float]:
    """Return the lock's mean and its lower bound less the limit, in the units of the goal."""
    uncertain = any(each is not None and each.estimated for each in (rates, locked_rates))
    error = FOR_LOCK - float(FOR_RATES) if uncertain else FOR_LOCK

    def bound(share: Fraction) -> Fraction:
        return Fraction(lower_bound(float(share), count, low=0.0, high=1.0, error=error))

    if locked_rates is None:
        assert rates is not None
        share = as_share(mean)
        least = max(Fraction(0), bound(share) - limit)
        (yes, _), (_, no) = rate_limits(rates, FOR_RATES)
        return float(share), float(rates.corrected(least * yes + (1 - least) * (1 - no)))
    seen = as_share((mean - locked_rates.low) / (locked_rates.high - locked_rates.low))
    if rates is None:
        yes_ends, no_ends = rate_limits(locked_rates, FOR_RATES)
        least, _ = shares_behind((bound(seen), Fraction(1)), yes_ends, no_ends)
        return float(as_share(mean)), float(least - limit)
    most = min(Fraction(1), youden_interval(rates, 2 * FOR_RATES)[1])
    return float(rates.corrected(seen)), float(rates.corrected(bound(seen) - limit * most))


def _interval(values: Sequence[float], low: float, high: float, rates: ErrorRates | None) -> tuple[float, float]:
    """Return the confidence sequence of the mean at 95 %, of right answers if a noisy signal measured it."""
    uncertain = rates is not None and rates.estimated
    ends = confidence_sequence(values, low=low, high=high, error=0.03 if uncertain else 0.05)
    if rates is None:
        return ends
    seen = tuple((Fraction(end) - rates.low) / (rates.high - rates.low) for end in ends)
    shares = shares_behind((seen[0], seen[1]), *rate_limits(rates, FOR_RATES / 2))
    return float(shares[0]), float(shares[1])


def _at_ends(nights: Sequence[Sequence[float]], floor: float, low: float, high: float) -> list[float]:
    """Return the e-value at the end of each night: what was refuted once stays refuted."""
    until, found = list[float](), list[float]()
    for night in nights:
        until += night
        found.append(evidence_below(until, floor, low=low, high=high))
    # Only the last value can be `suspected`; an earlier one counts if it refuted.
    refuted = [each for each in found if each >= 1 / (ERROR - FOR_LOCK)]
    return refuted or found[-1:]
