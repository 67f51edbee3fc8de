"""Interval arithmetic over exact numbers. An end that is None is open: no bound is known on that side."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Range:
    """All values from `low` to `high`, both included."""

    low: Fraction | None = None
    high: Fraction | None = None

    @property
    def finite(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    def holds(self, value: Fraction) -> bool:
        """Whether a value may be in it."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    def __neg__(self) -> Range:
        return Range(_minus(self.high), _minus(self.low))

    def __add__(self, other: Range) -> Range:
        return Range(_plus(self.low, other.low), _plus(self.high, other.high))

    def __sub__(self, other: Range) -> Range:
        return self + -other

    def __mul__(self, other: Range) -> Range:
        if self == _NOTHING or other == _NOTHING:
            return _NOTHING
        corners = [_times(a, b) for a in _ends(self) for b in _ends(other)]
        return Range(_least(corners), _greatest(corners))

    def __truediv__(self, other: Range) -> Range:
        """The quotient; the divisor must not hold 0.

        Raises:
            ZeroDivisionError: the divisor holds 0.
        """
        if other.holds(_ZERO):
            raise ZeroDivisionError
        low = 1 / other.high if other.high is not None else _ZERO
        high = 1 / other.low if other.low is not None else _ZERO
        return self * Range(low, high)


_NOTHING = Range(_ZERO, _ZERO)

OPEN = Range()
UNIT = Range(_ZERO, Fraction(1))
POSITIVE = Range(_ZERO, None)


def point(value: Fraction) -> Range:
    """The range of one value."""
    return Range(value, value)


def smallest(ranges: list[Range]) -> Range:
    """Range of `min(...)`: an open upper end of one operand does not matter beside a closed one."""
    highs = [r.high for r in ranges if r.high is not None]
    lows = [r.low for r in ranges]
    return Range(_all_least(lows), min(highs) if highs else None)


def greatest(ranges: list[Range]) -> Range:
    """Range of `max(...)`."""
    return -smallest([-r for r in ranges])


def clamped(value: Range, low: Range, high: Range) -> Range:
    """Range of `clamp(value, low, high)`, which is `min(max(value, low), high)`."""
    return smallest([greatest([value, low]), high])


def decided(operator: Literal["<", "<=", ">", ">=", "==", "!="], left: Range, right: Range) -> bool | None:
    """What a comparison is for all values of its sides; None where it depends on them."""
    if operator in (">", ">="):
        flipped: Literal["<", "<="] = "<" if operator == ">" else "<="
        return decided(flipped, right, left)
    if operator in ("==", "!="):
        apart = _below(left.high, right.low, strict=True) or _below(right.high, left.low, strict=True)
        same = left.finite and left == right and left.low == left.high
        equal = True if same else False if apart else None
        return equal if operator == "==" or equal is None else not equal
    strict = operator == "<"
    if _below(left.high, right.low, strict=strict):
        return True
    return False if _below(right.high, left.low, strict=not strict) else None


def _below(a: Fraction | None, b: Fraction | None, *, strict: bool) -> bool:
    return a is not None and b is not None and (a < b if strict else a <= b)


def _minus(a: Fraction | None) -> Fraction | None:
    return None if a is None else -a


def _plus(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else a + b


# A corner of a product: a number, or +1 or -1 for infinity on that side.
_Corner = tuple[int, Fraction]


def _ends(r: Range) -> tuple[_Corner, _Corner]:
    low = (-1, _ZERO) if r.low is None else (0, r.low)
    high = (1, _ZERO) if r.high is None else (0, r.high)
    return low, high


def _times(a: _Corner, b: _Corner) -> _Corner:
    if a[0] == 0 and b[0] == 0:
        return 0, a[1] * b[1]
    sign = _sign(a) * _sign(b)
    return sign, _ZERO


def _sign(a: _Corner) -> int:
    return a[0] or (a[1] > 0) - (a[1] < 0)


def _least(corners: list[_Corner]) -> Fraction | None:
    return None if any(c[0] < 0 for c in corners) else min(c[1] for c in corners if c[0] == 0)


def _greatest(corners: list[_Corner]) -> Fraction | None:
    return None if any(c[0] > 0 for c in corners) else max(c[1] for c in corners if c[0] == 0)


def _all_least(values: list[Fraction | None]) -> Fraction | None:
    known = [v for v in values if v is not None]
    return min(known) if len(known) == len(values) else None
