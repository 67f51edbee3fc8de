"""`confidence(a > b)`: how sure the paired differences make it that one skill is better (ENGINE section 3)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction

from skillc.optimize.intervals import Interval

SUBSETS = 9_999


def p_values(columns: Sequence[Sequence[int]], *, count: int, seed: bytes) -> list[Fraction]:
    """For each column P = (1 + #{F : its differences over F sum to at most 0}) / (subsets + 1).

    P never rises in any difference. The subsets F are `count` random ones, or all where there are no more.
    """
    from skillc.optimize.subsets import subset_sums

    if not columns[0]:
        return [Fraction(1)] * len(columns)
    sums = subset_sums(columns, count, seed)
    return [Fraction(1 + int((row <= 0).sum()), len(row) + 1) for row in sums]


def confidence(low: Sequence[int], high: Sequence[int], *, seed: int, tries: int = 1) -> Interval:
    """1 - p under every completion of what is not measured yet.

    Args:
        low: the least difference that each split group can have, in millionths.
        high: the greatest.
        seed: fixes the subsets.
        tries: decisions that share the error: p is multiplied by it (Bonferroni).
    """
    drawn = hashlib.sha256(f"confidence {seed}".encode()).digest()
    ends = (1 - min(Fraction(1), p * tries) for p in p_values([low, high], count=SUBSETS, seed=drawn))
    return Interval(*ends)
