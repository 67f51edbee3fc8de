from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.gates.intervals import EVERYTHING, Interval, Truth, greatest, least

numbers = st.fractions(min_value=-5, max_value=5, max_denominator=20)


@st.composite
def known(draw):
    """An interval and a value in it."""
    a, b, inside = sorted(draw(st.tuples(numbers, numbers, numbers)))[:3]
    return Interval(a, inside), b


@given(known(), known(), st.sampled_from("+-*/"))
def test_the_result_of_values_lies_in_the_result_of_intervals(left, right, operator):
    (i, a), (j, b) = left, right
    if operator == "/" and b == 0:
        assert i / j == EVERYTHING
        return
    exact = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[operator]()
    result = {"+": lambda: i + j, "-": lambda: i - j, "*": lambda: i * j, "/": lambda: i / j}[operator]()
    assert result.lo <= exact <= result.hi


@given(known(), known())
def test_a_definite_comparison_holds_for_the_values(left, right):
    (i, a), (j, b) = left, right
    for truth, exact in ((i.above(j), a > b), (i.at_least(j), a >= b), (i.equals(j), a == b)):
        assert truth is Truth.UNKNOWN or (truth is Truth.TRUE) == exact


@given(st.lists(known(), min_size=1, max_size=4))
def test_least_and_greatest(parts):
    intervals, values = [i for i, _ in parts], [v for _, v in parts]
    assert least(intervals).lo <= min(values) <= least(intervals).hi
    assert greatest(intervals).lo <= max(values) <= greatest(intervals).hi


def test_points_compare_exactly():
    half = Interval.point(Fraction(1, 2))
    assert half.above(half) is Truth.FALSE
    assert half.at_least(half) is Truth.TRUE
    assert Truth.UNKNOWN.negated() is Truth.UNKNOWN


@pytest.mark.parametrize(("a", "b", "both", "either"), [(2, 1, 1, 2), (0, 1, 0, 1), (2, 0, 0, 2), (1, 1, 1, 1)])
def test_kleene(a, b, both, either):
    assert (min(Truth(a), Truth(b)), max(Truth(a), Truth(b))) == (Truth(both), Truth(either))
