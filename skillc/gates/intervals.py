"""Numbers and truths that are known only in part: the arithmetic of gates (ENGINE section 3)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction

End = Fraction | float  # a float only as plus or minus infinity


class Truth(IntEnum):
    """Kleene's three values; `and` is the least, `or` the greatest."""

    FALSE = 0
    UNKNOWN = 1
    TRUE = 2

    def negated(self) -> Truth:
        """TRUE and FALSE exchanged."""
        return Truth(2 - self)


@dataclass(frozen=True, slots=True)
class Interval:
    """All values from `lo` to `hi`, both included; the value itself is one of them."""

    lo: End
    hi: End

    @classmethod
    def point(cls, value: Fraction | int) -> Interval:
        """A value that is known."""
        return cls(Fraction(value), Fraction(value))

    def __add__(self, other: Interval) -> Interval:
        return Interval(_sum(self.lo, other.lo), _sum(self.hi, other.hi))

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        ends = [_product(a, b) for a in (self.lo, self.hi) for b in (other.lo, other.hi)]
        return Interval(min(ends), max(ends))

    def __truediv__(self, other: Interval) -> Interval:
        """The quotient; everything, where the divisor may be 0."""
        if other.lo <= 0 <= other.hi:
            return EVERYTHING
        return self * Interval(_inverse(other.hi), _inverse(other.lo))

    def above(self, other: Interval) -> Truth:
        """Whether this is greater than the other."""
        if self.lo > other.hi:
            return Truth.TRUE
        return Truth.FALSE if self.hi <= other.lo else Truth.UNKNOWN

    def at_least(self, other: Interval) -> Truth:
        """Whether this is greater than the other or equal to it."""
        if self.lo >= other.hi:
            return Truth.TRUE
        return Truth.FALSE if self.hi < other.lo else Truth.UNKNOWN

    def equals(self, other: Interval) -> Truth:
        """Whether both are the same number."""
        if self.lo == self.hi == other.lo == other.hi:
            return Truth.TRUE
        return Truth.FALSE if self.hi < other.lo or other.hi < self.lo else Truth.UNKNOWN


EVERYTHING = Interval(-math.inf, math.inf)


def least(intervals: Iterable[Interval]) -> Interval:
    """The smallest of several values."""
    parts = list(intervals)
    return Interval(min(i.lo for i in parts), min(i.hi for i in parts))


def greatest(intervals: Iterable[Interval]) -> Interval:
    """The largest of several values."""
    parts = list(intervals)
    return Interval(max(i.lo for i in parts), max(i.hi for i in parts))


def _sum(a: End, b: End) -> End:
    return a if isinstance(a, float) else a + b


def _product(a: End, b: End) -> End:
    return Fraction(0) if a == 0 or b == 0 else a * b


def _inverse(end: End) -> End:
    return Fraction(0) if isinstance(end, float) else 1 / end
