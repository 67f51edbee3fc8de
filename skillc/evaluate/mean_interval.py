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
    width = float(high - low)
    groups: dict[str, list[float]] = defaultdict(list)
    for group, score in scores:
        groups[group].append(float(score - low) / width)
    if len(groups) < 2 or not width:
        return None
    every = [score for group in groups.values() for score in group]
    count, clusters = len(every), len(groups)
    mean = math.fsum(every) / count
    between = math.fsum((math.fsum(group) - mean * len(group)) ** 2 for group in groups.values())
    between *= clusters / (clusters - 1) / count**2
    single = math.fsum((score - mean) ** 2 for score in every) / (count - 1) / count
    variance = max(between, single)
    worth = mean * (1 - mean) / variance if variance > 0 and 0 < mean < 1 else clusters
    middle = (mean + _Z**2 / (2 * worth)) / (1 + _Z**2 / worth)
    reach = _Z / (1 + _Z**2 / worth) * math.sqrt(mean * (1 - mean) / worth + (_Z / (2 * worth)) ** 2)
    ends = (max(0.0, middle - reach), min(1.0, middle + reach))
    least, most = (low + Fraction(end) * (high - low) for end in ends)
    return least, most
