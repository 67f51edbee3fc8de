"""Exact interval arithmetic, and comparisons with three outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.gates.terms import Comparison

Endpoint = Fraction | float
"""A bound; a float is plus or minus infinity."""

_ZERO = Fraction(0)


class Truth(IntEnum):
    """Kleene's three values; `and` is the minimum, `or` the maximum."""

    FALSE = 0
    UNKNOWN = 1
    TRUE = 2

    def negated(self) -> Truth:
        """Kleene's negation."""
        return Truth(2 - self)

    @property
    def definite(self) -> bool | None:
        """True or False; None if unknown."""
        return None if self is Truth.UNKNOWN else self is Truth.TRUE


@dataclass(frozen=True, slots=True)
class Interval:
    """All values from `low` to `high`, both included."""

    low: Endpoint
    high: Endpoint

    @classmethod
    def of(cls, low: Fraction | None, high: Fraction | None) -> Interval:
        """The interval between two bounds; None is unbounded."""
        return cls(-math.inf if low is None else low, math.inf if high is None else high)

    @classmethod
    def point(cls, value: Fraction | int) -> Interval:
        """The interval of one value."""
        return cls(Fraction(value), Fraction(value))

    @property
    def bounds(self) -> tuple[Fraction | None, Fraction | None]:
        """Both ends; None for an infinite one."""
        return _finite(self.low), _finite(self.high)

    @property
    def finite(self) -> bool:
        """Whether both ends are finite."""
        return None not in self.bounds

    @property
    def known(self) -> bool:
        """Whether it is a single value."""
        return self.low == self.high

    def __contains__(self, value: Fraction) -> bool:
        return self.low <= value <= self.high

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return Interval(_sum(self.low, other.low), _sum(self.high, other.high))

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        ends = [_product(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def __truediv__(self, other: Interval) -> Interval:
        """The quotient; unbounded if the divisor may be 0."""
        if _ZERO in other:
            return EVERYTHING
        return self * Interval(_inverse(other.high), _inverse(other.low))

    def compared(self, operator: Comparison, other: Interval) -> Truth:
        """TRUE if a comparison holds for all values of both intervals, FALSE if for none."""
        match operator:
            case ">":
                return other.compared("<", self)
            case ">=":
                return other.compared("<=", self)
            case "!=":
                return self.compared("==", other).negated()
            case "<":
                holds, fails = self.high < other.low, self.low >= other.high
            case "<=":
                holds, fails = self.high <= other.low, self.low > other.high
            case "==":
                holds = self.low == self.high == other.low == other.high
                fails = self.high < other.low or other.high < self.low
        return Truth.TRUE if holds else Truth.FALSE if fails else Truth.UNKNOWN


EVERYTHING = Interval(-math.inf, math.inf)
UNIT = Interval(_ZERO, Fraction(1))
POSITIVE = Interval(_ZERO, math.inf)


def minimum(intervals: Iterable[Interval]) -> Interval:
    """The interval of the smallest value."""
    parts = list(intervals)
    return Interval(min(i.low for i in parts), min(i.high for i in parts))


def maximum(intervals: Iterable[Interval]) -> Interval:
    """The interval of the largest value."""
    parts = list(intervals)
    return Interval(max(i.low for i in parts), max(i.high for i in parts))


def clamp(value: Interval, low: Interval, high: Interval) -> Interval:
    """`clamp(value, low, high)`; if the bounds cross, the lower one wins."""
    return maximum([low, minimum([value, high])])


def _finite(end: Endpoint) -> Fraction | None:
    return None if isinstance(end, float) else end


# A fraction that is too large for a float can't be added to an infinity, or multiplied by it.
def _sum(a: Endpoint, b: Endpoint) -> Endpoint:
    if isinstance(a, float):
        return a
    return b if isinstance(b, float) else a + b


def _product(a: Endpoint, b: Endpoint) -> Endpoint:
    if a == 0 or b == 0:
        return _ZERO
    if isinstance(a, float) or isinstance(b, float):
        return math.inf if (a > 0) == (b > 0) else -math.inf
    return a * b


def _inverse(end: Endpoint) -> Endpoint:
    return _ZERO if isinstance(end, float) else 1 / end
