"""Intervals hold what their values give, and a comparison is definite only where every value decides it alike."""

import operator as operators
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.gates.intervals import EVERYTHING, POSITIVE, UNIT, Interval, Truth, clamp, maximum, minimum

numbers = st.fractions(min_value=-5, max_value=5, max_denominator=20)


@st.composite
def known(draw):
    """An interval, perhaps without an end, and a value in it."""
    low, value, high = sorted(draw(st.tuples(numbers, numbers, numbers)))
    return Interval.of(low if draw(st.booleans()) else None, high if draw(st.booleans()) else None), value


@given(known(), known(), st.sampled_from("+-*/"))
def test_the_result_of_values_lies_in_the_result_of_intervals(left, right, operator):
    (i, a), (j, b) = left, right
    if operator == "/" and Fraction(0) in j:
        assert i / j == EVERYTHING
        return
    calculate = {"+": operators.add, "-": operators.sub, "*": operators.mul, "/": operators.truediv}[operator]
    assert calculate(a, b) in calculate(i, j)
    assert -a in -i


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
@given(left=known(), right=known())
def test_a_definite_comparison_holds_for_the_values(sign, left, right):
    (i, a), (j, b) = left, right
    compare = {
        "<": operators.lt,
        "<=": operators.le,
        ">": operators.gt,
        ">=": operators.ge,
        "==": operators.eq,
        "!=": operators.ne,
    }[sign]
    assert i.compared(sign, j).definite in (None, compare(a, b))


@given(st.lists(known(), min_size=1, max_size=4))
def test_least_and_greatest(parts):
    intervals, values = [i for i, _ in parts], [v for _, v in parts]
    assert min(values) in minimum(intervals)
    assert max(values) in maximum(intervals)


@given(known(), known(), known())
def test_clamp_holds_what_can_happen(x, low, high):
    assert max(low[1], min(x[1], high[1])) in clamp(x[0], low[0], high[0])


def test_ends_that_are_exact():
    zero, one = Fraction(0), Fraction(1)
    assert Interval(-one, one) == UNIT - UNIT
    assert POSITIVE * POSITIVE == POSITIVE
    assert EVERYTHING * Interval.point(0) == Interval.point(0)
    assert Interval.point(1) / Interval.of(one, None) == UNIT
    assert UNIT.compared("<=", Interval.point(5)) is Truth.TRUE
    assert UNIT.compared(">", Interval.point(1)) is Truth.FALSE
    assert UNIT.compared(">=", Interval.point(1)) is Truth.UNKNOWN
    assert Interval.of(None, one).bounds == (None, one)
    assert not POSITIVE.finite
    assert Interval.point(zero).known


def test_a_number_that_no_float_holds_is_added_and_multiplied():
    huge = Interval.point(10**400)
    assert huge + POSITIVE == Interval.of(Fraction(10**400), None)
    assert -huge * POSITIVE == -POSITIVE


def test_points_compare_exactly():
    half = Interval.point(Fraction(1, 2))
    assert half.compared(">", half) is Truth.FALSE
    assert half.compared(">=", half) is Truth.TRUE
    assert Truth.UNKNOWN.negated() is Truth.UNKNOWN


@pytest.mark.parametrize(("a", "b", "both", "either"), [(2, 1, 1, 2), (0, 1, 0, 1), (2, 0, 0, 2), (1, 1, 1, 1)])
def test_kleene(a, b, both, either):
    assert (min(Truth(a), Truth(b)), max(Truth(a), Truth(b))) == (
        Truth(both),
        Truth(either),
    )
