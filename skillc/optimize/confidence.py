"""`confidence(a > b)`: how sure the paired differences make it that one skill is better (ENGINE section 3)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction

from skillc.gates.intervals import Interval
from skillc.optimize.groups import Ints
from skillc.optimize.subsets import RunningSums, subset_sums

SUBSETS = 9_999


def p_values(columns: Sequence[Sequence[int]], *, count: int, seed: bytes) -> list[Fraction]:
    """For each column P = (1 + #{F : its differences over F sum to at most 0}) / (subsets + 1).

    P never rises in any difference. The subsets F are `count` random ones, or all where there are no more.
    """
    if not columns[0]:
        return [Fraction(1)] * len(columns)
    return _p_values(subset_sums(columns, count, seed))


def _p_values(sums: Ints) -> list[Fraction]:
    return [Fraction(1 + int((row <= 0).sum()), len(row) + 1) for row in sums]


class Confidence:
    """1 - p under every completion of what is not measured yet, as differences become known.

    Args:
        groups: split groups that are compared.
        seed: fixes the subsets.
    """

    def __init__(self, groups: int, seed: int) -> None:
        drawn = hashlib.sha256(f"confidence {seed}".encode()).digest()
        self._sums = RunningSums(2, groups, SUBSETS, drawn) if groups else None

    def interval(self, low: Ints, high: Ints, *, tries: int = 1) -> Interval:
        """The confidence by what is known.

        Args:
            low: the least difference that each split group can have, in millionths.
            high: the greatest.
            tries: decisions that share the error: p is multiplied by it (Bonferroni).
        """
        least, most = _p_values(self._sums.at((low, high))) if self._sums else (Fraction(1), Fraction(1))
        return Interval(*(1 - min(Fraction(1), p * tries) for p in (least, most)))
