"""Honest results: what is claimed in worlds whose truth is known. The full figures are made by benchmarks/honest.

A fair compiler fails one of these bounds less than once in a million; and the coins fall by hash, so never by chance.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from math import sqrt
from pathlib import Path
from statistics import mean

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "honest"))

from binomial import at_least, at_most, interval, most_in
from compiles import CONFIDENT, STRICT, Result, Size, compile_in, in_a_row
from thorough import THOROUGH
from worlds import World, proposer

from skillc.stats.power import chance_of_accept, inflation, null_run

DOUBT = 1e-6
LEVEL = 0.05
RUNS = 40
SMALL = Size(train=36, validation=40, test=60, steps=6)


def compiles(world: World, count: int, size: Size = SMALL, *, helpful: float = 0.0, gate: str = STRICT) -> list[Result]:
    return [compile_in(world, proposer(n, helpful=helpful), name=n, size=size, gate=gate) for n in range(count)]


def improved(results: list[Result]) -> int:
    return sum(found.verdict.verdict == "improved" for found in results)


@pytest.fixture(scope="module")
def coins() -> list[Result]:
    return compiles(World(), RUNS)


@pytest.fixture(scope="module")
def some_coins() -> list[Result]:
    return compiles(World(), 12)


@pytest.mark.thorough
def test_a_world_without_signal_is_not_said_to_improve(coins: list[Result]) -> None:
    most = most_in(RUNS, LEVEL, DOUBT)
    assert improved(coins) <= most
    # The bound bites: going by validation, most of these runs have something to boast of.
    assert sum(found.accepted > 0 for found in coins) > most
    assert mean(found.inflation for found in coins if found.inflation is not None) > 0.05


@pytest.mark.thorough
def test_without_signal_the_mean_gain_reported_is_nil(coins: list[Result]) -> None:
    # Two coins an example differ with a variance of 1/2.
    error = sqrt(0.5 / SMALL.test / RUNS)
    assert abs(mean(found.gain for found in coins)) <= 4.9 * error


def test_an_unchanged_skill_is_neither_tested_nor_counted_as_a_look(some_coins: list[Result]) -> None:
    unchanged = [found for found in some_coins if not found.accepted]
    assert unchanged
    for found in unchanged:
        assert found.verdict.verdict == "no significant gain"
        assert found.verdict.n == 0
        assert found.gain == 0


def test_the_interval_and_the_verdict_say_the_same(some_coins: list[Result]) -> None:
    tested = [found for found in some_coins if found.verdict.interval is not None]
    assert tested
    for found in tested:
        low, high = found.verdict.interval  # type: ignore[misc]
        assert (low > 0) == (found.verdict.verdict == "improved")
        assert (high < 0) == (found.verdict.verdict == "worse")
        assert low <= Fraction(str(found.verdict.gain)) <= high


@pytest.mark.thorough
def test_customers_who_repeat_make_no_gain() -> None:
    """All tickets of a customer share a coin: sixty tickets are twelve, and the test has to know it."""
    world = World(per_group=True, per_customer=5)
    found = compiles(world, RUNS, Size(train=40, validation=40, test=60, steps=4))
    assert improved(found) <= most_in(RUNS, LEVEL, DOUBT)
    assert {each.verdict.groups for each in found if each.verdict.n} == {12}


@pytest.mark.thorough
def test_a_noisy_target_makes_no_gain() -> None:
    found = [
        compile_in(World(noisy=True), proposer(n), name=n, size=Size(36, 30, 60, 4), samples=2)
        for n in range(RUNS // 2)
    ]
    assert improved(found) <= most_in(RUNS // 2, LEVEL, DOUBT)


def test_ten_compiles_in_a_row_are_ten_looks() -> None:
    rows = [in_a_row(World(), name=("row", n), count=10, size=Size(24, 24, 40, 2)) for n in range(4 if THOROUGH else 2)]
    for row in rows:
        looks = [found.verdict.look for found in row if found.verdict.n]
        assert looks == list(range(1, len(looks) + 1))
        alphas = [found.verdict.alpha for found in row if found.verdict.n]
        assert alphas == [Fraction(1, 20 * look * look) for look in looks]
    claims = sum(any(found.verdict.verdict == "improved" for found in row) for row in rows)
    assert claims <= most_in(len(rows), LEVEL, DOUBT)


@pytest.mark.thorough
def test_ten_points_are_shown() -> None:
    runs = 12
    world = World(share=0.75, worth=0.1, stable=0.5)
    found = compiles(world, runs, Size(train=24, validation=80, test=400, steps=4), helpful=0.7)
    least = runs - most_in(runs, 0.2, DOUBT)
    assert sum(each.helpful for each in found) >= least
    assert improved(found) >= max(least, 1)
    assert mean(each.gain for each in found) == pytest.approx(0.1, abs=0.05)


@pytest.mark.parametrize(("gate", "margin"), [(STRICT, 0.0), (CONFIDENT, 1.645)])
@pytest.mark.thorough
def test_worthless_candidates_pass_as_often_as_the_plan_expects(coins: list[Result], gate: str, margin: float) -> None:
    found = coins if gate == STRICT else compiles(World(), RUNS, gate=gate)
    expected, run = chance_of_accept(SMALL.steps, margin), null_run(SMALL.steps, margin)
    seen = sum(each.accepted > 0 for each in found)
    # An exact gate on whole counts lets a little less through than the plan's normal approximation.
    assert at_least(seen, RUNS, expected) > DOUBT
    assert at_most(seen, RUNS, expected * 0.75) > DOUBT
    assert mean(each.accepted for each in found) <= run.accepts * 1.5
    lucky = [each.inflation for each in found if each.inflation is not None]
    wanted = inflation(run, SMALL.validation)
    # The fewer runs accept anything, the more their mean scatters.
    assert mean(lucky) == pytest.approx(wanted, abs=0.35 * wanted + 0.15 / len(lucky) ** 0.5)


def test_tails_are_exact() -> None:
    assert at_least(0, 5, 0.3) == pytest.approx(1)
    assert at_least(2, 3, 0.5) == pytest.approx(0.5)
    assert at_most(1, 3, 0.5) == pytest.approx(0.5)
    assert interval(0, 10) == (0.0, pytest.approx(0.3085, abs=1e-4))
    assert interval(10, 20) == (pytest.approx(0.2720, abs=1e-4), pytest.approx(0.7280, abs=1e-4))
    assert at_least(most_in(40, 0.05, DOUBT) + 1, 40, 0.05) <= DOUBT < at_least(most_in(40, 0.05, DOUBT), 40, 0.05)
