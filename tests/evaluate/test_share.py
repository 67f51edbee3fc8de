"""The share of a gain that survives elsewhere, and its interval."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from skillc.outcomes import MICRO
from skillc.stats.share import NOT_SHOWN, share_of_gain
from skillc.stats.verdict import PairedScore, judge

ONE = Fraction(1)


def pairs(gains: list[float], size: int = 1) -> list[PairedScore]:
    """Groups of some size, with a gain each."""
    return [PairedScore(f"g{i}", 0, round(gain * MICRO)) for i, gain in enumerate(gains) for _ in range(size)]


def test_the_same_pairs_keep_all_of_the_gain_and_half_of_each_keeps_half() -> None:
    here = pairs([1, 0, 1, 1, 0.5, 1, 1, 1])
    same = share_of_gain(here, here, seed=1, same_examples=True)
    assert (same.value, same.interval) == (1, (1, 1))
    half = share_of_gain(here, pairs([0.5, 0, 0.5, 0.5, 0.25, 0.5, 0.5, 0.5]), seed=1, same_examples=True)
    assert (half.value, half.interval) == (Fraction(1, 2), (0.5, 0.5))


def test_a_loss_elsewhere_is_a_negative_share() -> None:
    found = share_of_gain(
        pairs([1, 1, 0, 1, 1, 1, 1, 1]), pairs([-1, 0, 0, -1, 0, 0, 0, 0]), seed=1, same_examples=True
    )
    assert found.value == Fraction(-2, 7)
    assert found.interval is not None
    assert found.interval[0] < found.value < found.interval[1] <= 0


@pytest.mark.parametrize("gains", [[0] * 8, [1, -1] * 4, [-1] * 8])
def test_no_share_of_a_gain_that_is_not_shown(gains: list[float]) -> None:
    for same_examples in (True, False):
        found = share_of_gain(pairs(gains), pairs([1] * 8), seed=1, same_examples=same_examples)
        assert (found.value, found.interval, found.reason) == (None, None, NOT_SHOWN)


def test_few_groups_and_unmeasured_arms_say_so() -> None:
    assert share_of_gain(pairs([1] * 5, size=9), pairs([1] * 9), seed=1, same_examples=False).reason == (
        "the original gain has 5 groups, fewer than 6"
    )
    lost = [PairedScore(f"g{i}", 0, None) for i in range(8)]
    assert share_of_gain(pairs([1] * 8), lost, seed=1, same_examples=True).reason == "this gain is not measured"
    assert share_of_gain(lost, pairs([1] * 8), seed=1, same_examples=True).reason == "the original gain is not measured"
    one = share_of_gain(pairs([1] * 8), pairs([1]), seed=1, same_examples=False)
    assert one.reason == "this gain has 1 group, fewer than 6"


def test_it_is_defined_exactly_where_the_verdict_is_improved() -> None:
    draw = random.Random(5)
    words = set()
    for _ in range(60):
        here = pairs([draw.choice([-1, 0, 1, 1]) for _ in range(9)])
        there = pairs([draw.choice([-1, 0, 1, 1]) for _ in range(9)])
        word = judge(here, low=Fraction(0), high=ONE, look=1, seed=2).verdict
        found = share_of_gain(here, there, seed=2, same_examples=True)
        words.add(word)
        assert (found.value is not None) == (word == "improved")
    assert words >= {"improved", "no significant gain"}


@pytest.mark.parametrize("same_examples", [True, False])
def test_nineteen_of_twenty_intervals_contain_the_true_share(same_examples: bool) -> None:
    draw, hits, defined = random.Random(7), 0, 0
    for i in range(150):
        common = [draw.gauss(0, 0.2) for _ in range(30)]
        here = pairs([0.3 + each + draw.gauss(0, 0.1) for each in common])
        other = common if same_examples else [draw.gauss(0, 0.2) for _ in range(30)]
        there = pairs([0.15 + each / 2 + draw.gauss(0, 0.1) for each in other])
        found = share_of_gain(here, there, seed=i, same_examples=same_examples, subsets=999)
        if found.interval is not None:
            defined += 1
            hits += found.interval[0] <= 0.5 <= found.interval[1]
    assert defined > 140
    assert 0.9 <= hits / defined <= 0.99


def test_data_sets_of_different_size_can_be_compared() -> None:
    found = share_of_gain(pairs([1, 0.5] * 4), pairs([0.5, 0.4] * 20), seed=1, same_examples=False)
    assert found.value == Fraction(3, 5)
    assert found.interval is not None
    assert 0.4 < found.interval[0] < 0.6 < found.interval[1] < 1
