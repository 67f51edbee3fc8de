"""The share of a gain that survives elsewhere, and its interval."""

from __future__ import annotations

import random
from fractions import Fraction
from types import SimpleNamespace

import pytest

from skillc.evaluate import transfer
from skillc.evaluate.skills import COMPILED
from skillc.outcomes import MICRO
from skillc.stats.error_rates import ErrorRates
from skillc.stats.share import COIN, NOT_SHOWN, Share, share_of_gain
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


# ---- noisy signals --------------------------------------------------------------------------------

TRUE = (0.92, 0.85)


def measured(draw: random.Random, count: int) -> ErrorRates:
    yes, no = (Fraction(sum(draw.random() < rate for _ in range(count)), count) for rate in TRUE)
    return ErrorRates(yes, no, count, count)


def signal_pairs(draw: random.Random, rates: ErrorRates, gain: float, count: int) -> list[PairedScore]:
    """Corrected values of the signal on two sets of answers, of which the second has more right ones."""

    def value(right: float) -> int:
        says = right * TRUE[0] + (1 - right) * (1 - TRUE[1])
        return round((rates.high if draw.random() < says else rates.low) * MICRO)

    return [PairedScore(f"g{i}", value(0.3), value(0.3 + gain)) for i in range(count)]


@pytest.mark.parametrize("corrected", [True, False])
def test_the_share_between_two_signals_has_the_error_of_their_rates(corrected: bool) -> None:
    """Half of the gain survives. Rates of few answers, taken as exact, leave the true share out too often."""
    draw, hits, defined = random.Random(3), 0, 0
    for i in range(120):
        here, there = measured(draw, 15), measured(draw, 15)
        one, other = signal_pairs(draw, here, 0.6, 1200), signal_pairs(draw, there, 0.3, 1200)
        rates = (here, there) if corrected else None
        found = share_of_gain(one, other, seed=i, same_examples=False, rates=rates, subsets=499)
        if found.interval is not None:
            defined += 1
            hits += found.interval[0] <= 0.5 <= found.interval[1]
        else:
            assert found.reason == COIN
    assert defined > 80 and (hits >= 0.93 * defined) == corrected


def test_known_rates_change_no_share_and_uncertain_ones_widen_it() -> None:
    here, there = pairs([1, 0, 1, 1, 0.5, 1, 1, 1] * 4), pairs([0.5, 0, 0.5, 1, 0.25, 0.5, 0.5, 0.5] * 4)
    exact = ErrorRates(Fraction(92, 100), Fraction(85, 100))
    few = ErrorRates(exact.sensitivity, exact.specificity, 50, 40)
    plain = share_of_gain(here, there, seed=1, same_examples=False)
    assert share_of_gain(here, there, seed=1, same_examples=False, rates=(exact, None)) == plain
    assert plain.interval is not None
    for rates in ((few, None), (None, few), (few, few)):
        found = share_of_gain(here, there, seed=1, same_examples=False, rates=rates)
        assert found.value == plain.value and found.interval is not None
        assert found.interval[0] < plain.interval[0] and found.interval[1] > plain.interval[1]


def test_transfer_compares_shares_of_right_answers_and_passes_the_rates_of_different_signals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = ErrorRates(Fraction(92, 100), Fraction(85, 100), 50, 40)
    goals = {
        "noisy": SimpleNamespace(name="worked", unit="", low=few.low, high=few.high, rates=few),
        "exact": SimpleNamespace(name="right", unit="", low=Fraction(0), high=Fraction(1), rates=None),
        "grade": SimpleNamespace(name="grade", unit="", low=Fraction(1), high=Fraction(5), rates=None),
    }
    asked = []

    def remember(*pairs: object, **options: object) -> Share:
        asked.append(options["rates"])
        return Share(Fraction(1))

    def place(goal: str, where: str) -> tuple[SimpleNamespace, SimpleNamespace]:
        plan = SimpleNamespace(goal=goals[goal], data=SimpleNamespace(seed=1))
        pair = SimpleNamespace(arm=SimpleNamespace(name=COMPILED), scores=())
        return SimpleNamespace(job=SimpleNamespace(plan=plan, place=where)), SimpleNamespace(pairs=[pair])

    monkeypatch.setattr(transfer, "share_of_gain", remember)
    first = place("noisy", "own")
    transfer._share(first, *place("noisy", "rollout"))
    transfer._share(first, *place("exact", "data"))
    assert asked == [None, (few, None)]
    assert "another range" in transfer._share(first, *place("grade", "data")).reason
