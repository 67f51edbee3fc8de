"""The interval of a mean: what it holds, how wide it is, and how often it is right."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.stats.power import mean_interval

LOW, HIGH = Fraction(0), Fraction(1)
SCORES = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.fractions(0, 1, max_denominator=50)), max_size=60)


def of(scores: list[tuple[str, int | Fraction]]) -> tuple[float, float]:
    found = mean_interval([(group, Fraction(score)) for group, score in scores], low=LOW, high=HIGH)
    assert found is not None
    return float(found[0]), float(found[1])


@given(SCORES)
def test_it_lies_in_the_range_and_holds_the_mean(scores: list[tuple[str, Fraction]]) -> None:
    found = mean_interval(scores, low=LOW, high=HIGH)
    if len({group for group, _ in scores}) < 2:
        assert found is None
        return
    assert found is not None
    mean = sum((score for _, score in scores), Fraction(0)) / len(scores)
    assert 0 <= found[0] <= mean + Fraction(1, 10**9)
    assert mean - Fraction(1, 10**9) <= found[1] <= 1


@given(SCORES, st.integers(-5, 5), st.integers(1, 9))
def test_the_unit_does_not_matter(scores: list[tuple[str, Fraction]], start: int, width: int) -> None:
    plain = mean_interval(scores, low=LOW, high=HIGH)
    moved = mean_interval(
        [(group, start + score * width) for group, score in scores], low=Fraction(start), high=Fraction(start + width)
    )
    assert (plain is None) == (moved is None)
    if plain is not None and moved is not None:
        assert [float(start + end * width) for end in plain] == pytest.approx([float(end) for end in moved], abs=1e-6)


def test_it_is_wilsons_for_independent_answers() -> None:
    # 80 of 100 by Wilson, as tables have it: 0.711 to 0.867.
    scores: list[tuple[str, int | Fraction]] = [(str(i), int(i < 80)) for i in range(100)]
    assert of(scores) == pytest.approx((0.711, 0.867), abs=0.002)


def test_it_has_a_width_where_all_are_right() -> None:
    low, high = of([(str(i), 1) for i in range(50)])
    assert high == 1
    assert 0.9 < low < 0.95


def test_answers_that_go_together_make_it_wider() -> None:
    alone: list[tuple[str, int | Fraction]] = [(f"{i}-{j}", i % 2) for i in range(20) for j in range(10)]
    together: list[tuple[str, int | Fraction]] = [(f"{i}", i % 2) for i in range(20) for _ in range(10)]
    (low, high), (least, most) = of(alone), of(together)
    assert most - least > 2.5 * (high - low)


def test_it_holds_the_truth_nineteen_times_in_twenty() -> None:
    """Groups of four whose members share half of their luck: 40 of them, right six times in ten."""
    held, draws = 0, random.Random(7)
    for _ in range(400):
        scores: list[tuple[str, int | Fraction]] = []
        for group in range(40):
            luck = draws.random() < 0.6
            scores += [(str(group), int(luck if draws.random() < 0.5 else draws.random() < 0.6)) for _ in range(4)]
        low, high = of(scores)
        held += low <= 0.6 <= high
    assert 0.92 <= held / 400 <= 0.98
