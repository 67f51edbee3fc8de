"""The error budget over the nights and the test of drift, on series whose truth is known."""

import random
from fractions import Fraction

import pytest

from skillc.evolve.drift import judge_drift, lower_bound
from skillc.evolve.spending import PATIENCE, judge_challenger, share
from skillc.stats.betting import confidence_sequence, evidence_above, evidence_below

SERIES = 60


def differences(rng, rows, gain):
    """Paired differences of right and wrong answers, of which 16 % differ."""
    return rng.choices((1.0, -1.0, 0.0), (0.08 + gain / 2, 0.08 - gain / 2, 0.84), k=rows)


def first_accept(seed, gain, nights=90, rows=16):
    """The night of the first accept of a series in which each challenger has the same true gain; None without one."""
    rng, number, seen = random.Random(seed), 1, []
    for night in range(1, nights + 1):
        seen.append(differences(rng, rows, gain))
        found = judge_challenger(seen, number=number, error=0.05, width=1.0)
        if found.word == "accepted":
            return night
        if found.word == "dropped":
            number, seen = number + 1, []
    return None


def test_the_shares_of_all_challengers_add_up_to_the_declared_error():
    whole = sum(share(number, 0.05) for number in range(1, 20_000))
    assert 0.0499 < whole < 0.05


@pytest.mark.thorough
def test_ninety_nights_without_a_gain_accept_in_at_most_five_per_cent_of_series():
    assert sum(first_accept(seed, 0.0) is not None for seed in range(SERIES)) <= 0.05 * SERIES


def test_a_gain_of_eight_points_is_accepted_within_a_month_in_most_series():
    found = [first_accept(seed, 0.08, nights=30) for seed in range(12)]
    assert sum(night is not None for night in found) >= 8


def test_a_challenger_that_is_worse_is_dropped_and_an_undecided_one_gives_way():
    worse = judge_challenger([[-1.0, -1.0, -1.0, 0.0, -1.0]] * 3, number=1, error=0.05, width=1.0)
    assert worse.word == "dropped" and worse.gain < 0
    quiet = judge_challenger([[0.0]] * PATIENCE, number=1, error=0.05, width=1.0)
    assert quiet.word == "dropped" and quiet.evidence == 1.0


def test_a_night_without_new_rows_is_no_look():
    found = judge_challenger([[1.0, 0.0], [], []], number=2, error=0.05, width=1.0)
    assert (found.nights, found.rows, found.word) == (1, 2, "open")
    assert judge_challenger([], number=1, error=0.05, width=1.0).evidence == 1.0


def test_the_interval_of_an_accepted_challenger_excludes_no_gain():
    found = judge_challenger([[1.0] * 12], number=1, error=0.05, width=1.0)
    assert found.word == "accepted" and found.interval[0] > 0
    short = judge_challenger([[1.0] * 3], number=1, error=0.05, width=1.0)
    assert short.word == "open" and short.interval[0] <= 0


def test_more_evidence_is_needed_of_later_challengers():
    rows = [[1.0] * 12]
    assert judge_challenger(rows, number=1, error=0.05, width=1.0).word == "accepted"
    assert judge_challenger(rows, number=40, error=0.05, width=1.0).word == "open"


# ---- drift ----------------------------------------------------------------------------------------


def first_fall(seed, now, then=0.8, count=400, nights=90, rows=20):
    """The night on which a skill that scored `then` in truth and scores `now` is found to have fallen."""
    rng = random.Random(seed)
    locked = Fraction(sum(rng.random() < then for _ in range(count)), count)
    seen = []
    for night in range(1, nights + 1):
        seen.append([float(rng.random() < now) for _ in range(rows)])
        found = judge_drift(seen, locked=(locked, count), limit=Fraction(1, 20), low=Fraction(0), high=Fraction(1))
        if found.word == "fallen":
            return night
    return None


@pytest.mark.thorough
def test_a_skill_that_has_not_fallen_is_rolled_back_in_at_most_five_per_cent_of_series():
    assert sum(first_fall(seed, 0.8) is not None for seed in range(SERIES)) <= 0.05 * SERIES


def test_a_fall_of_twenty_five_points_is_found_within_two_weeks():
    found = [first_fall(seed, 0.55, nights=14) for seed in range(10)]
    assert all(night is not None for night in found)


def test_drift_needs_a_reference_and_reports_a_suspicion_before_a_fall():
    half = {"limit": Fraction(1, 20), "low": Fraction(0), "high": Fraction(1)}
    assert judge_drift([[0.0] * 9], locked=None, **half).word == "no reference"
    assert judge_drift([], locked=(Fraction(1, 2), 50), **half).word == "no drift"
    words = [judge_drift([[0.0] * n], locked=(Fraction(4, 5), 400), **half).word for n in range(1, 8)]
    assert words[0] == "no drift" and "suspected" in words and words[-1] == "fallen"
    assert sorted(words, key=["no drift", "suspected", "fallen"].index) == words


def test_a_fall_that_was_shown_stays_shown():
    nights = [[0.0] * 8, [1.0] * 200]
    found = judge_drift(nights, locked=(Fraction(4, 5), 400), limit=Fraction(0), low=Fraction(0), high=Fraction(1))
    assert found.word == "fallen"


def test_the_reference_is_the_lower_bound_of_the_locks_mean():
    assert lower_bound(0.8, 100, low=0.0, high=1.0) == pytest.approx(0.721, abs=0.003)
    assert lower_bound(0.8, 10_000, low=0.0, high=1.0) == pytest.approx(0.793, abs=0.001)
    assert lower_bound(0.0, 20, low=0.0, high=1.0) == 0.0


# ---- betting --------------------------------------------------------------------------------------


def test_the_confidence_sequence_contains_the_mean_at_all_times():
    missed = 0
    for seed in range(40):
        rng, values = random.Random(seed), []
        for _ in range(6):
            values += [float(rng.random() < 0.3) for _ in range(20)]
            low, high = confidence_sequence(values, low=0.0, high=1.0, error=0.05)
            if not low <= 0.3 <= high:
                missed += 1
                break
    assert missed <= 3


def test_evidence_is_symmetric_and_grows_with_the_distance():
    values = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    mirrored = [1 - value for value in values]
    above = evidence_above(values, 0.4, low=0.0, high=1.0)
    assert above == pytest.approx(evidence_below(mirrored, 0.6, low=0.0, high=1.0))
    assert evidence_above(values, 0.2, low=0.0, high=1.0) > above > 1
    assert evidence_above([], 0.5, low=0.0, high=1.0) == 1.0
    assert evidence_above(values, 1.0, low=0.0, high=1.0) == 1.0
