"""The e-value of `e_value(a > b)`: what a bet on the differences of paired scores multiplies its stake by.

The null hypothesis is that the mean difference is at most 0. A bet of a share `l` of the stake on each pair pays
`1 + l x`, where `x` is the difference divided by the largest possible one, so it gains nothing on average under the
null (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86, 2024). The average
over several `l` is an e-value too, and needs no guess of the effect (Gruenwald, de Heide and Koolen, "Safe testing",
JRSS B 86, 2024). On right and wrong answers only the discordant pairs count, as in McNemar's test.

Early stopping at the first large e-value needs examples in an order that does not depend on their scores. Gates see the
incumbent's failures first, so they read the e-value of the whole split and stop when no completion changes the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import gcd, prod, sqrt

BETS = tuple(range(1, 8))
"""The bets that are averaged, in eighths of the stake. All weigh the same."""
_WHOLE = 8


def e_value(differences: Mapping[int, int], width: int) -> Fraction:
    """The mean over the bets of the product of `1 + bet * difference / width`, exact.

    It never falls when a difference grows, and does not depend on the order of the pairs.

    Args:
        differences: how often each difference occurs; ties change nothing.
        width: the largest absolute value that a difference can have.
    """
    moved = {difference: count for difference, count in differences.items() if difference and count}
    unit = gcd(width, *moved)
    if not unit:
        return Fraction(1)
    scale = _WHOLE * (width // unit)
    paid = (prod((scale + bet * (each // unit)) ** count for each, count in moved.items()) for bet in BETS)
    return Fraction(sum(paid), len(BETS) * scale ** sum(moved.values()))


def wins_needed(discordant: int, threshold: Fraction) -> int | None:
    """How many discordant pairs must be better for the e-value to reach a threshold; None if all are too few."""
    low, high = -1, discordant
    if e_value({1: discordant}, 1) < threshold:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if e_value({1: middle, -1: discordant - middle}, 1) >= threshold:
            high = middle
        else:
            low = middle
    return high


def standard_errors(discordant: int, threshold: Fraction) -> float:
    """How far the mean difference must be above 0 for the e-value to reach a threshold, in its standard errors.

    Under the null the better ones of n discordant pairs are binomial, so the standard error of wins minus losses is the
    root of n. Where no number of wins reaches the threshold, one more than n counts.
    """
    wins = wins_needed(discordant, threshold)
    wins = discordant + 1 if wins is None else wins
    return (2 * wins - discordant) / max(1.0, sqrt(discordant))
