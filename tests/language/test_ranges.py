"""Interval arithmetic holds what can happen, and `decided` says so only when it is."""

from __future__ import annotations

import operator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.gates.ranges import OPEN, Range, clamped, decided, greatest, point, smallest

VALUES = st.fractions(min_value=-5, max_value=5, max_denominator=4)


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Range, Fraction]:
    """A range, perhaps open, and a value in it."""
    low, value, high = sorted(draw(st.tuples(VALUES, VALUES, VALUES)))
    kept_low, kept_high = draw(st.booleans()), draw(st.booleans())
    return Range(low if kept_low else None, high if kept_high else None), value


@given(ranges(), ranges())
def test_arithmetic_holds_what_can_happen(a: tuple[Range, Fraction], b: tuple[Range, Fraction]) -> None:
    (first, x), (second, y) = a, b
    assert (first + second).holds(x + y)
    assert (first - second).holds(x - y)
    assert (first * second).holds(x * y)
    assert (-first).holds(-x)
    assert smallest([first, second]).holds(min(x, y))
    assert greatest([first, second]).holds(max(x, y))
    if second.holds(Fraction(0)):
        with pytest.raises(ZeroDivisionError):
            first / second
    else:
        assert (first / second).holds(x / y)


@given(ranges(), ranges(), ranges())
def test_clamp_holds_what_can_happen(
    a: tuple[Range, Fraction], b: tuple[Range, Fraction], c: tuple[Range, Fraction]
) -> None:
    assert clamped(a[0], b[0], c[0]).holds(min(max(a[1], b[1]), c[1]))


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
@given(a=ranges(), b=ranges())
def test_a_decided_comparison_is_what_every_value_gives(
    sign: str, a: tuple[Range, Fraction], b: tuple[Range, Fraction]
) -> None:
    compare = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "==": operator.eq,
        "!=": operator.ne,
    }[sign]
    found = decided(sign, a[0], b[0])
    assert found is None or found == compare(a[1], b[1])


def test_ends_that_are_exact() -> None:
    zero, one = Fraction(0), Fraction(1)
    assert Range(zero, one) - Range(zero, one) == Range(-one, one)
    assert Range(zero, None) * Range(zero, None) == Range(zero, None)
    assert OPEN * point(zero) == point(zero)
    assert point(one) / Range(one, None) == Range(zero, one)
    assert decided("<=", Range(zero, one), point(Fraction(5))) is True
    assert decided(">", Range(zero, one), point(one)) is False
    assert decided(">=", Range(zero, one), point(one)) is None
