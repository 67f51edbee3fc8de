import hashlib
import math
from fractions import Fraction

import pytest
from gate_worlds import p_values
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.errors import SkillcError
from skillc.outcomes import MICRO
from skillc.stats.subsets import subset_sums
from skillc.stats.verdict import PairedScore, judge

SEED = hashlib.sha256(b"test").digest()
UNIT = {"low": Fraction(0), "high": Fraction(1), "seed": 7}


def pairs(values):
    """(initial, best) of 0 and 1, None where it was not measured, a group each."""
    return [
        PairedScore(f"g{i}", None if a is None else a * MICRO, None if b is None else b * MICRO)
        for i, (a, b) in enumerate(values)
    ]


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.data())
def test_p_never_rises_in_any_difference(differences, data):
    i = data.draw(st.integers(0, len(differences) - 1))
    raised = [d + (j == i) for j, d in enumerate(differences)]
    before, after = p_values([differences, raised], count=999, seed=SEED)
    assert after <= before


@settings(deadline=None, max_examples=example_count(40))
@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=40), st.integers(1, 300))
def test_subset_sums_are_exact_and_no_subset_is_empty(values, count):
    members = [[int(i == j) for i in range(len(values))] for j in range(len(values))]
    sums, *columns = subset_sums([values, *members], count, SEED).tolist()
    drawn = list(zip(*columns, strict=True))
    assert all(any(subset) for subset in drawn)
    assert sums == [sum(v for v, held in zip(values, subset, strict=True) if held) for subset in drawn]
    assert len(drawn) <= count
    if 2 ** len(values) - 1 <= count:
        assert len(set(drawn)) == len(drawn) == 2 ** len(values) - 1


def test_subsets_depend_on_the_seed_alone():
    """The digest fixes the subsets on every machine and with every version of numpy."""
    columns = [list(range(-20, 20))]
    drawn = subset_sums(columns, 1000, SEED).astype("<i8").tobytes()
    assert hashlib.sha256(drawn).hexdigest()[:16] == "7fe0ccd177eb3a6d"
    assert subset_sums(columns, 1000, hashlib.sha256(b"other").digest()).astype("<i8").tobytes() != drawn


def test_many_groups_are_drawn_in_pieces_with_the_same_result(monkeypatch):
    columns = [[i % 7 - 3 for i in range(60)]]
    kept = subset_sums(columns, 1000, SEED).tolist()
    monkeypatch.setattr("skillc.stats.subsets._MOST_KEPT", 0)
    assert subset_sums(columns, 1000, SEED).tolist() == kept


def test_sums_that_would_not_be_exact_are_refused():
    with pytest.raises(SkillcError, match="too large to be summed exactly"):
        subset_sums([[2**61, 2**61]], 5, SEED)


@pytest.mark.parametrize(("gains", "losses"), [(5, 0), (6, 1), (8, 3), (4, 4)])
def test_p_of_0_and_1_scores_is_the_exact_sign_test(gains, losses):
    """McNemar's exact test: the chance of that many gains or more among gains + losses fair coins.

    The random-subset p counts the subsets in which gains do not outnumber losses, ties included, which has the same
    distribution: gains inside plus losses outside a subset is such a sum of coins.
    """
    n = gains + losses
    (p,) = p_values([[1] * gains + [-1] * losses], count=9_999, seed=SEED)
    assert p == Fraction(sum(math.comb(n, k) for k in range(gains, n + 1)), 2**n)


def test_a_clear_gain_is_improved():
    verdict = judge(pairs([(0, 1)] * 20 + [(1, 1)] * 20), look=1, **UNIT)
    assert verdict.verdict == "improved"
    assert verdict.gain == Fraction(1, 2)
    assert 0 < verdict.interval[0] <= verdict.gain <= verdict.interval[1] <= 1
    assert verdict.p <= Fraction(1, 20)


def test_a_clear_loss_is_worse_and_a_tie_is_no_gain():
    assert judge(pairs([(1, 0)] * 20 + [(1, 1)] * 20), look=1, **UNIT).verdict == "worse"
    tie = judge(pairs([(1, 0)] * 9 + [(0, 1)] * 9), look=1, **UNIT)
    assert tie.verdict == "no significant gain"
    assert tie.interval[0] <= 0 <= tie.interval[1]


@settings(deadline=None, max_examples=example_count(40))
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=6, max_size=40), st.integers(1, 3))
def test_the_interval_and_p_agree_with_the_verdict(values, look):
    verdict = judge(pairs(values), look=look, **UNIT)
    low, high = verdict.interval
    assert (low > 0) == (verdict.verdict == "improved")
    assert (high < 0) == (verdict.verdict == "worse")
    assert (verdict.p <= verdict.alpha) == (verdict.verdict in ("improved", "worse"))


def test_unmeasured_cells_that_could_change_it_make_it_unverified():
    values = [(0, 1)] * 8 + [(1, 1)] * 20
    assert judge(pairs(values), look=1, **UNIT).verdict == "improved"
    assert judge(pairs([*values, *[(1, None)] * 8]), look=1, **UNIT).verdict == "unverified"
    assert judge(pairs([(0, 1)] * 20 + [(1, None)]), look=1, **UNIT).verdict == "improved"


def test_fewer_than_six_groups_are_unverified():
    verdict = judge(pairs([(0, 1)] * 5), look=1, **UNIT)
    assert verdict.verdict == "unverified"
    assert "fewer than 6" in verdict.reason


def test_six_groups_are_enough_at_the_first_look_and_too_few_at_the_second():
    """All of six groups gain by chance once in 64, which is under 2.5 %."""
    first = judge(pairs([(0, 1)] * 6), look=1, **UNIT)
    assert first.verdict == "improved"
    assert first.p == Fraction(2, 64)
    second = judge(pairs([(0, 1)] * 6), look=2, **UNIT)
    assert second.verdict == "no significant gain"
    assert second.interval == (-1, 1)


def test_nothing_measured_is_unverified():
    verdict = judge(pairs([(0, None)] * 10), look=1, **UNIT)
    assert (verdict.verdict, verdict.reason) == ("unverified", "no example was measured under both skills")


@settings(deadline=None, max_examples=example_count(40))
@given(st.lists(st.tuples(*[st.sampled_from([0, 1, 1, None])] * 2), min_size=6, max_size=12), st.data())
def test_a_word_with_unmeasured_cells_is_that_of_every_completion(values, data):
    verdict = judge(pairs(values), look=1, **UNIT)
    filled = [tuple(data.draw(st.integers(0, 1)) if v is None else v for v in pair) for pair in values]
    if verdict.verdict != "unverified":
        assert judge(pairs(filled), look=1, **UNIT).verdict == verdict.verdict


def test_the_smallest_gain_that_could_be_shown():
    """Of 100 pairs with differences 0 and 1 alike: (1.96 + 0.84) times 0.5 / 10, and one pair."""
    verdict = judge(pairs([(0, 0), (0, 1)] * 50), look=1, **UNIT)
    assert verdict.detectable == pytest.approx((1.959964 + 0.841621) * 0.05 + 0.01, abs=1e-6)


def test_a_customer_counts_once():
    same = [PairedScore("one customer", 0, MICRO)] * 30
    others = [PairedScore(f"g{i}", 0, 0) for i in range(20)]
    assert judge([*same, *others], look=1, **UNIT).verdict == "no significant gain"


def test_each_look_makes_it_harder():
    values = pairs([(0, 1)] * 7 + [(1, 1)] * 30)
    verdicts = [judge(values, look=look, **UNIT).verdict for look in (1, 2, 6)]
    assert verdicts[0] == "improved"
    assert verdicts[-1] == "no significant gain"


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_nothing_is_rarely_called_improved(rate):
    """60 compiles of nothing: at a level of 2.5 % more than 6 false alarms have odds under 1 in 1,000."""
    alarms = 0
    for run in range(60):
        draws = hashlib.shake_256(f"{rate} {run}".encode()).digest(120)
        scores = [int(byte < rate * 256) * MICRO for byte in draws]
        values = [PairedScore(f"g{i}", scores[2 * i], scores[2 * i + 1]) for i in range(60)]
        alarms += judge(values, look=1, **UNIT).verdict == "improved"
    assert alarms <= 6
