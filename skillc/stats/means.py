"""How sure a mean over groups of examples is."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from statistics import NormalDist

_Z = NormalDist().inv_cdf(0.975)


def mean_interval(
    scores: Iterable[tuple[str, Fraction]], *, low: Fraction, high: Fraction
) -> tuple[Fraction, Fraction] | None:
    """The 95 % interval of a mean, by Wilson's score with as many examples as the groups are worth.

    The variance of the mean is that between groups, or that of independent examples where it is larger; the effective
    number of examples is what a share of this mean would need for it (Korn and Graubard, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24,
    1998; Wilson, "Probable inference", JASA 22, 1927). Where all scores are the same, each group counts as one.
    So it stays inside the range, and has a width where all examples are right.

    Args:
        scores: group and score of each example that was measured.
        low: the least that a score can be.
        high: the most.

    Returns:
        None with fewer than two groups.
    """
    width = high - low
    # Exact up to the variance: a rounding error in place of 0 would make the interval a point.
    groups: dict[str, list[Fraction]] = defaultdict(list)
    for group, score in scores:
        groups[group].append((score - low) / width if width else score - low)
    if len(groups) < 2 or not width:
        return None
    count, clusters = sum(map(len, groups.values())), len(groups)
    sums = {name: sum(group, Fraction(0)) for name, group in groups.items()}
    exact = sum(sums.values(), Fraction(0)) / count
    between = sum((sums[name] - exact * len(group)) ** 2 for name, group in groups.items())
    squares = sum(score * score for group in groups.values() for score in group) - count * exact**2
    variance = max(between * clusters / Fraction((clusters - 1) * count**2), squares / Fraction((count - 1) * count))
    mean, worth = float(exact), float(clusters)
    if variance and 0 < exact < 1:
        worth = float(exact * (1 - exact) / variance)
    middle = (mean + _Z**2 / (2 * worth)) / (1 + _Z**2 / worth)
    reach = _Z / (1 + _Z**2 / worth) * math.sqrt(mean * (1 - mean) / worth + (_Z / (2 * worth)) ** 2)
    ends = (max(0.0, middle - reach), min(1.0, middle + reach))
    least, most = (low + Fraction(end) * width for end in ends)
    return least, most
