"""Tests that may be looked at after every observation: e-processes by betting, and confidence sequences.

A gambler bets against the claim that a mean is at most `bound`. Each factor is `1 - f + f * (x - low) / (bound - low)`,
whose expectation is at most 1 under the claim whatever came before, so the product is an e-process: it exceeds `1 / a`
at any time with a probability of at most `a` (Ville's inequality). The average over several shares `f` is one too, and
needs no guess of the effect (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting",
JRSS B 86, 2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, log, log1p

SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8)
"""The averaged shares of the stake; small ones win slowly on small differences, large ones soon on large ones."""
_HALVINGS = 40


def evidence_above(values: Sequence[float], bound: float, *, low: float, high: float) -> float:
    """Return the e-value against the claim that the mean of the values is at most `bound`.

    Args:
        values: in the order in which they were observed, each from `low` to `high`.
        bound: the largest mean of the claim.
        low: the least possible value.
        high: the greatest.
    """
    if not values or bound >= high:
        return 1.0
    if bound <= low:
        return inf if any(value > bound for value in values) else 1.0
    # Equal values have equal factors.
    counts: dict[float, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    width = bound - low
    logs = [
        sum(count * log1p(share * ((value - low) / width - 1)) for value, count in sorted(counts.items()))
        for share in SHARES
    ]
    top = max(logs)
    return _exp(top + log(sum(exp(each - top) for each in logs) / len(SHARES)))


def evidence_below(values: Sequence[float], bound: float, *, low: float, high: float) -> float:
    """Return the e-value against the claim that the mean of the values is at least `bound`; as `evidence_above`."""
    return evidence_above([-value for value in values], -bound, low=-high, high=-low)


def confidence_sequence(values: Sequence[float], *, low: float, high: float, error: float) -> tuple[float, float]:
    """Return an interval that contains the mean at all times together with a probability of at least `1 - error`.

    It has the means that neither bet has refuted at `error / 2`; the whole range without values.
    """
    threshold = 2 / error

    def end(inside: float, outside: float, *, above: bool) -> float:
        """Bisect between a mean that is in the interval and the end of the range."""
        test = evidence_above if above else evidence_below
        if test(values, outside, low=low, high=high) < threshold:
            return outside
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            if test(values, middle, low=low, high=high) < threshold:
                inside = middle
            else:
                outside = middle
        return outside

    if not values:
        return low, high
    mean = sum(values) / len(values)
    return end(mean, low, above=True), end(mean, high, above=False)


def _exp(value: float) -> float:
    """The exponential function; infinite where it is too large for a float."""
    return exp(value) if value < 700 else inf
