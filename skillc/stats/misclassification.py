"""A yes-or-no signal that errs at known rates: what is true of a mean and of a gain, and how sure that is.

With the sensitivity se, the share of right answers on which the signal says yes, and the specificity sp, the share of
wrong answers on which it says no, a share p of right answers gives the mean q = se p + (1 - sp) (1 - p). W. J. Rogan
and B. Gladen, "Estimating prevalence from the results of a screening test", American Journal of Epidemiology 107
(1978), solve that for p = (q + sp - 1) / J with Youden's J = se + sp - 1. Each rollout is corrected by this map, which
is 0 on average where the answer is wrong and 1 where it is right, so that means and differences of means are too.

Rates that were measured on a number of checked examples are uncertain themselves:

- a gain is the difference of the signal's means divided by J. Its interval is that of a ratio (R. G. Newcombe, "MOVER-R
  confidence intervals for ratios and products of two independently estimated quantities", Statistical Methods in
  Medical Research 25, 2016) with Wilson's intervals of both rates. It excludes 0 exactly if that of the difference
  does;
- a mean has the interval of Z. Lang and J. Reiczigel, "Confidence limits for prevalence of disease adjusted for
  estimated sensitivity and specificity", Preventive Veterinary Medicine 113 (2014).

All of it assumes that the rates are the same for all skills. A skill that learns to please the signal has a higher
mean without more right answers, and no correction by rates can see it; trusted labels can (`prediction_powered.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import hypot, sqrt
from statistics import NormalDist

from skillc.stats.error_rates import ErrorRates
from skillc.stats.power import DIFFERING, LEVEL, Ends, effective_size, mean_interval, wilson
from skillc.stats.sample_size import ErrorModel, two_valued

_ZERO, _ONE = Fraction(0), Fraction(1)


def error_model(rates: ErrorRates) -> ErrorModel:
    """Return the errors in the terms of `sample_size`, with half of the answers right."""
    return two_valued(float(1 - rates.specificity), float(1 - rates.sensitivity), 0.5)


def times_examples(rates: ErrorRates, differing: float = DIFFERING) -> float:
    """Return how many times the examples of an exact metric a gain takes, by the ratio of `sample_size`.

    Args:
        rates: of the signal.
        differing: the share of the examples on which two skills differ.
    """
    errors = error_model(rates)
    return 1 + 2 * errors.noise / (errors.slope**2 * differing)


def youden_interval(rates: ErrorRates, level: Fraction = LEVEL) -> Ends:
    """Return the interval of Youden's J, by Newcombe's combination of Wilson's intervals of both rates."""
    yes, no = rate_limits(rates, level)
    down = hypot(rates.sensitivity - yes[0], rates.specificity - no[0])
    up = hypot(yes[1] - rates.sensitivity, no[1] - rates.specificity)
    return rates.youden - Fraction(down), rates.youden + Fraction(up)


def rate_limits(rates: ErrorRates, level: Fraction = LEVEL) -> tuple[Ends, Ends]:
    """Return Wilson's intervals of the sensitivity and of the specificity; a known rate is both of its ends."""
    yes = _share_interval(rates.sensitivity, rates.positives, level)
    return yes, _share_interval(rates.specificity, rates.negatives, level)


def _share_interval(share: Fraction, count: int | None, level: Fraction) -> Ends:
    return (share, share) if count is None else wilson(share, count, low=_ZERO, high=_ONE, level=level)


def gain_interval(gain: Fraction, ends: Ends, rates: ErrorRates, level: Fraction) -> Ends:
    """Return the interval of a gain from that of its corrected differences, with the error of the rates.

    A gain of shares is within -1 and 1. It stays there where the rates are so uncertain that the signal may be a coin.

    Args:
        gain: the mean of the corrected differences.
        ends: its interval if the rates were exact.
        rates: of the signal.
        level: one minus that of the interval.
    """
    if rates.estimated:
        low, high = (end / rates.youden for end in youden_interval(rates, level))
        ends = _lower(gain, ends[0], low, high), -_lower(-gain, -ends[1], low, high)
    return max(-_ONE, ends[0]), min(_ONE, ends[1])


def shares_behind(seen: Ends, yes: Ends, no: Ends) -> Ends:
    """Return the least and the greatest share of right answers behind limits of the signal's mean and of both rates."""

    def share(mean: Fraction, sensitivity: Fraction, specificity: Fraction, coin: Fraction) -> Fraction:
        youden = sensitivity + specificity - 1
        return coin if youden <= 0 else as_share((mean + specificity - 1) / youden)

    return share(seen[0], yes[1], no[0], _ZERO), share(seen[1], yes[0], no[1], _ONE)


def ratio_interval(share: Fraction, ends: Ends, here: ErrorRates | None, there: ErrorRates | None) -> Ends | None:
    """Return the interval of the ratio of two gains by different signals, with the error of the rates of both.

    Args:
        share: gain there by gain here, each corrected by the rates of its signal.
        ends: its interval if the rates were exact.
        here: the rates of the divisor; None for a metric without errors.
        there: those of the other gain.

    Returns:
        None if the rates allow that a signal is a coin.
    """
    (low, high), (least, most) = ((_ONE, _ONE) if each is None else _true_by_declared(each) for each in (here, there))
    if low <= 0 or least <= 0:
        return None
    least, most = _lower(_ONE, least, low, high), -_lower(-_ONE, -most, low, high)
    return _lower(share, ends[0], least, most), -_lower(-share, -ends[1], least, most)


def _true_by_declared(rates: ErrorRates) -> Ends:
    low, high = youden_interval(rates)
    return low / rates.youden, high / rates.youden


def _lower(value: Fraction, least: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Return the least ratio of a value to a divisor of 1, by their limits; -1 if the divisor may be 0.

    It is the r for which the lower limit of `value - r * divisor` is 0.
    """
    away = value - least
    if least > 0:
        spread = high - 1
        root = Fraction(sqrt(max(_ZERO, value**2 * spread**2 + away**2 - away**2 * spread**2)))
        return least * (2 * value - least) / (value + root)
    if least == 0:
        return _ZERO
    spread = 1 - low
    if spread >= 1:
        return -_ONE
    root = Fraction(sqrt(value**2 * spread**2 + away**2 * (1 - spread**2)))
    return (value - root) / (1 - spread**2)


def share_interval(scores: Iterable[tuple[str, Fraction]], rates: ErrorRates) -> Ends | None:
    """Return the 95 % interval of the share of right answers by corrected scores; None below two groups.

    Args:
        scores: group and corrected score of each example.
        rates: of the signal.
    """
    found = list(scores)
    if not rates.estimated:
        ends = mean_interval(found, low=rates.low, high=rates.high)
        return None if ends is None else (as_share(ends[0]), as_share(ends[1]))
    size = effective_size(found, low=rates.low, high=rates.high)
    if size is None:
        return None
    mean, worth = size
    z = NormalDist().inv_cdf(1 - float(LEVEL) / 2)
    seen = float((mean - rates.low) / (rates.high - rates.low))
    yes, yes_spread = _shrunk(rates.sensitivity, rates.positives)
    no, no_spread = _shrunk(rates.specificity, rates.negatives)
    youden = yes + no - 1
    if youden <= 0:
        return _ZERO, _ONE
    seen = (worth * seen + z * z / 2) / (worth + z * z)
    share = (seen + no - 1) / youden
    shift = 2 * z * z * (share * yes_spread - (1 - share) * no_spread)
    variance = seen * (1 - seen) / (worth + z * z) + share**2 * yes_spread + (1 - share) ** 2 * no_spread
    reach = z * sqrt(variance) / youden
    return as_share(Fraction(share + shift - reach)), as_share(Fraction(share + shift + reach))


def _shrunk(share: Fraction, count: int | None) -> tuple[float, float]:
    """Return a rate with one right and one wrong answer more, and its variance."""
    if count is None:
        return float(share), 0.0
    middle = float((share * count + 1) / (count + 2))
    return middle, middle * (1 - middle) / count


def as_share(value: Fraction) -> Fraction:
    """Return the nearest share, from 0 to 1."""
    return max(_ZERO, min(_ONE, value))
