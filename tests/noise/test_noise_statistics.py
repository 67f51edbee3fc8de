"""Flips, deviations and margins against a truth that is planted: each example is right by a known chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import sqrt
from statistics import mean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thorough import THOROUGH

from skillc.outcomes import MICRO
from skillc.stats.noise import Noise, Repeats, difference_of, margin, noise_of

LOW, HIGH = Fraction(0), Fraction(1)
WORLDS = 300 if THOROUGH else 60
# A calibrated interval misses the truth in more worlds once in 30,000 tests.
LEAST = 0.95 - 4 * sqrt(0.05 * 0.95 / WORLDS)


def thrown(draw: random.Random, chances: list[float], repeats: int, per_group: int = 1) -> list[Repeats]:
    """Examples that are right by chance; those of a group share their coins."""
    rows = []
    for group, chance in enumerate(chances):
        coins = tuple(MICRO * (draw.random() < chance) for _ in range(repeats))
        rows += [Repeats(f"g{group}", coins)] * per_group
    return rows


def measured(rows: list[Repeats]) -> Noise:
    return noise_of(rows, low=LOW, high=HIGH)


CHANCES: dict[str, Callable[[random.Random], float]] = {
    "all between": lambda draw: draw.betavariate(0.5, 0.5),
    "a tenth are coins": lambda draw: 0.5 if draw.random() < 0.1 else float(draw.random() < 0.7),
    "all rarely wrong": lambda draw: 0.95,
}


@pytest.mark.parametrize("repeats", [2, 4] if THOROUGH else [3])
@pytest.mark.parametrize("name", CHANCES)
def test_the_intervals_hold_the_truth_in_95_of_100_worlds(name: str, repeats: int) -> None:
    draw, chance = random.Random(f"{name} {repeats}"), CHANCES[name]
    flips = mean(2 * p * (1 - p) for p in (chance(draw) for _ in range(100_000)))
    deviation = sqrt(flips / 2 / 60)
    held = [0, 0]
    for _ in range(WORLDS):
        found = measured(thrown(draw, [chance(draw) for _ in range(60)], repeats))
        assert found.flips_interval is not None
        assert found.deviation_interval is not None
        held[0] += found.flips_interval[0] <= flips <= found.flips_interval[1]
        held[1] += found.deviation_interval[0] <= deviation <= found.deviation_interval[1]
    assert min(held) >= LEAST * WORLDS


def test_deviation_and_margin_are_those_of_means_that_are_measured_again() -> None:
    """The deviation of 800 means, and the share of their differences above the margin, for three samples each."""
    draw = random.Random(7)
    chances = [draw.betavariate(0.6, 0.6) for _ in range(80)]
    found = measured(thrown(draw, chances, 40))
    means = [mean(draw.random() < p for p in chances) for _ in range(800)]
    assert found.deviation == pytest.approx(sqrt(variance(map(float, means))), rel=0.1)
    three = [mean(mean(draw.random() < p for _ in range(3)) for p in chances) for _ in range(800)]
    most = margin(found.deviation or 0.0, samples=3)
    above = mean(two - one > most for one, two in zip(three[::2], three[1::2], strict=True))
    assert above == pytest.approx(0.05, abs=0.04)


def test_examples_that_flip_together_count_as_a_group() -> None:
    draw = random.Random(3)
    chances = [draw.betavariate(0.5, 0.5) for _ in range(30)]
    rows = thrown(draw, chances, 30, per_group=5)
    truth = sqrt(sum(p * (1 - p) for p in chances)) / 30
    assert measured(rows).deviation == pytest.approx(truth, rel=0.12)
    alone = [Repeats(f"{row.group}/{i}", row.scores) for i, row in enumerate(rows)]
    assert measured(alone).deviation == pytest.approx(truth / sqrt(5), rel=0.12)


def test_repeats_that_shift_are_told_from_examples_that_flip() -> None:
    draw = random.Random(5)
    alike = [measured(thrown(draw, [0.7] * 50, 3)).drift or 0.0 for _ in range(WORLDS)]
    assert mean(p <= 0.05 for p in alike) <= 0.05 + 4 * sqrt(0.05 * 0.95 / WORLDS)
    shifted = [
        Repeats(f"g{i}", tuple(MICRO * (draw.random() < chance) for chance in (0.8, 0.8, 0.45))) for i in range(50)
    ]
    assert (measured(shifted).drift or 1.0) < 0.01


def test_the_difference_between_two_conditions_holds_the_truth() -> None:
    draw, held, flips = random.Random(11), 0, []
    for _ in range(WORLDS):
        chances = [draw.random() for _ in range(60)]
        one, other = thrown(draw, chances, 2), thrown(draw, [p * 0.8 for p in chances], 2)
        found = difference_of(one, other, low=LOW, high=HIGH)
        assert found.mean_interval is not None
        held += found.mean_interval[0] <= -0.1 <= found.mean_interval[1]
        flips.append(float(found.flips or 0))
    assert held >= LEAST * WORLDS
    # E[p (1 - 0.8 p) + 0.8 p (1 - p)] for p spread evenly from 0 to 1.
    assert mean(flips) == pytest.approx(0.5 - 0.8 / 3 + 0.4 - 0.8 / 3, abs=0.02)


SCORES = st.lists(
    st.lists(st.one_of(st.none(), st.integers(0, MICRO)), min_size=3, max_size=3).map(tuple), min_size=1, max_size=8
)


def test_examples_that_never_flip_bound_the_difference_of_the_means() -> None:
    rows = [Repeats(f"g{i}", (MICRO * (i % 3 > 0),) * 3) for i in range(42)]
    found = difference_of(rows, rows, low=LOW, high=HIGH)
    assert found.flips_interval is not None
    most = found.flips_interval[1]
    assert most < Fraction(1, 10)
    assert found.mean_interval == (-most, most)


@given(SCORES, st.integers(1, 4))
def test_it_equals_a_count_by_hand(scores: list[tuple[int | None, ...]], groups: int) -> None:
    rows = [Repeats(f"g{i % groups}", row) for i, row in enumerate(scores)]
    found = measured(rows)
    known = [[score for score in row if score is not None] for row in scores]
    again = [row for row in known if len(row) > 1]
    pairs = [list(combinations(row, 2)) for row in again]
    assert found.examples == len(again)
    assert found.changed == sum(any(a != b for a, b in each) for each in pairs)
    if pairs:
        assert float(found.flips or 0) == pytest.approx(mean(mean(a != b for a, b in each) for each in pairs))
        lost = mean(mean(abs(a - b) for a, b in each) for each in pairs) / 2 / MICRO
        assert float(found.loss or 0) == pytest.approx(lost)
    whole = [(row.group, row.scores) for row in rows if None not in row.scores]
    if whole:
        sums = {group: [0, 0, 0] for group, _ in whole}
        for group, row in whole:
            sums[group] = [total + (score or 0) for total, score in zip(sums[group], row, strict=True)]
        by_hand = sqrt(sum(variance(map(float, each)) for each in sums.values())) / len(whole) / MICRO
        assert found.deviation == pytest.approx(by_hand, abs=1e-9)
        means = [mean(float(row[i] or 0) for _, row in whole) / MICRO for i in range(3)]
        assert [float(each) for each in found.means] == pytest.approx(means)
        assert float(found.largest or 0) == pytest.approx(max(means) - min(means), abs=1e-9)
    else:
        assert (found.deviation, found.drift, found.means) == (None, None, ())


def test_without_repeats_nothing_is_known() -> None:
    found = measured([Repeats("g", (MICRO, None)), Repeats("h", (None, None))])
    assert (found.examples, found.flips, found.deviation, found.drift, found.largest) == (0, None, None, None, None)
