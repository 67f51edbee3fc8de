"""The e-value as a number: exact, fair under the null, and never lower for a greater difference."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.stats.power import BETS, e_value, standard_errors, wins_needed

moves = st.lists(st.integers(-6, 6), max_size=12)


def plain(differences, width):
    paid = Fraction(0)
    for bet in BETS:
        stake = Fraction(1)
        for each in differences:
            stake *= 1 + Fraction(bet * each, 8 * width)
        paid += stake
    return paid / len(BETS)


@given(moves, st.integers(6, 9))
def test_it_is_the_mean_of_what_the_bets_pay(differences, width):
    assert e_value(Counter(differences), width) == plain(differences, width)


@given(moves.filter(bool), st.data())
def test_it_never_falls_when_a_difference_grows(differences, data):
    place = data.draw(st.integers(0, len(differences) - 1))
    greater = [*differences]
    greater[place] = data.draw(st.integers(differences[place], 6))
    assert e_value(Counter(greater), 6) >= e_value(Counter(differences), 6)


@pytest.mark.parametrize("values", [(-1, 1), (-1, 0, 1), (-6, -2, 3, 5), (-2, -2, 4)])
def test_it_is_1_on_average_if_the_mean_difference_is_0(values):
    drawn = list(product(values, repeat=4))
    assert sum(e_value(Counter(each), 6) for each in drawn) / len(drawn) == 1


def test_a_false_claim_reaches_20_in_at_most_1_of_20_tests():
    for pairs in (10, 40, 200):
        reached = sum(comb(pairs, k) for k in range(wins_needed(pairs, Fraction(20)), pairs + 1))
        assert Fraction(reached, 2**pairs) <= Fraction(1, 20)


def test_ties_and_scores_without_a_width_change_nothing():
    assert e_value({0: 50, 1: 9, -1: 1}, 1) == e_value({1: 9, -1: 1}, 1)
    assert e_value({0: 3}, 0) == e_value({}, 0) == 1


def test_what_a_threshold_needs():
    assert wins_needed(4, Fraction(20)) is None
    wins = wins_needed(30, Fraction(20))
    assert e_value({1: wins, -1: 30 - wins}, 1) >= 20 > e_value({1: wins - 1, -1: 31 - wins}, 1)
    assert standard_errors(30, Fraction(20)) == pytest.approx((2 * wins - 30) / 30**0.5)
    assert standard_errors(4, Fraction(20)) > standard_errors(30, Fraction(20))
