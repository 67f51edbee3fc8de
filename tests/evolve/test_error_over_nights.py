"""The error budget over the nights and the test of drift, on series whose truth is known."""

import random
from fractions import Fraction

import pytest

from skillc.evolve.drift import judge_drift, lower_bound
from skillc.evolve.spending import PATIENCE, judge_challenger, share
from skillc.stats.betting import confidence_sequence, evidence_above, evidence_below
from skillc.stats.error_rates import ErrorRates

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


# ---- drift by a noisy signal -----------------------------------------------------------------------

TRUE = ErrorRates(Fraction(92, 100), Fraction(85, 100))
LIMIT = Fraction(1, 20)


def measured_rates(rng, count):
    """Rates as a person measures them: on so many right and so many wrong answers."""
    yes, no = (sum(rng.random() < float(rate) for _ in range(count)) for rate in (TRUE.sensitivity, TRUE.specificity))
    return ErrorRates(Fraction(yes, count), Fraction(no, count), count, count)


def signalled(rng, right, rates, count):
    """Corrected values of the signal on answers of which a share is right."""
    yes, no = float(TRUE.sensitivity), float(TRUE.specificity)
    says = right * yes + (1 - right) * (1 - no)
    return [float(rates.high if rng.random() < says else rates.low) for _ in range(count)]


def noisy_word(seed, now, *, then=0.8, by="same", checked=20, nights=12, rows=20, corrected=True):
    """What is found of a skill with `then` right answers in its lock and `now` since.

    The rates are measured on few answers. The lock's score is by the same rates, by others that were measured
    earlier, or by right answers themselves.
    """
    rng = random.Random(f"{seed} {by}")
    rates = measured_rates(rng, checked)
    locked_rates = {"same": rates, "earlier": measured_rates(rng, checked), "truth": None}[by]
    if locked_rates is None:
        locked = [float(rng.random() < then) for _ in range(400)]
    else:
        locked = signalled(rng, then, locked_rates, 400)
    seen = [signalled(rng, now, rates, rows) for _ in range(nights)]
    mean = Fraction(sum(locked) / len(locked)).limit_denominator(10**6)
    known = {"rates": rates, "locked_rates": locked_rates} if corrected else {}
    return judge_drift(seen, locked=(mean, 400), limit=LIMIT, low=rates.low, high=rates.high, **known)


@pytest.mark.parametrize("by", ["same", "earlier", "truth"])
def test_the_error_of_measured_rates_is_no_drift_and_a_fall_is_found(by):
    series = 40
    found = [noisy_word(seed, 0.8 - float(LIMIT), by=by) for seed in range(series)]
    assert sum(each.word == "fallen" for each in found) <= 0.05 * series
    # The shown interval has the error of the rates too, and is one of right answers.
    assert sum(each.interval[0] <= 0.75 <= each.interval[1] for each in found) >= 0.95 * series
    assert all(0 <= end <= 1 for each in found for end in each.interval)
    # A lock by right answers needs the rates themselves, which are known to some ten points only.
    least = 0.5 if by == "truth" else 0.95
    assert sum(noisy_word(seed, 0.3, by=by).word == "fallen" for seed in range(series)) >= least * series


def test_scores_that_are_taken_as_exact_report_a_drift_that_is_none():
    """The counter-case: two measurements of the rates of one signal differ, and so do the scores that they correct."""
    words = [noisy_word(seed, 0.8, by="earlier", corrected=False).word for seed in range(40)]
    assert words.count("fallen") > 0.05 * len(words)


def test_the_limit_of_drift_is_one_of_right_answers():
    """A fall of 20 points moves the signal by 15, and the limit of 5 by less than 5."""
    known = {"low": TRUE.low, "high": TRUE.high, "rates": TRUE, "locked_rates": TRUE}
    found = judge_drift([], locked=(Fraction(4, 5), 10**9), limit=LIMIT, **known)
    assert (found.locked, found.floor) == (pytest.approx(0.8), pytest.approx(0.75, abs=1e-4))
    few = ErrorRates(TRUE.sensitivity, TRUE.specificity, 20, 20)
    found = judge_drift([], locked=(Fraction(4, 5), 10**9), limit=LIMIT, **{**known, "rates": few})
    assert found.floor < 0.745
    # A lock by right answers, or by a signal where the goal is exact now.
    found = judge_drift([], locked=(Fraction(4, 5), 10**9), limit=LIMIT, **{**known, "locked_rates": None})
    assert found.floor == pytest.approx(0.75, abs=1e-4)
    exact = {"low": Fraction(0), "high": Fraction(1), "locked_rates": TRUE}
    found = judge_drift([], locked=(Fraction(13, 10), 10**9), limit=LIMIT, **exact)
    assert (found.locked, found.floor) == (1.0, pytest.approx(0.95, abs=1e-4))


def test_a_challengers_interval_has_the_error_of_the_rates_and_its_word_has_not():
    few = ErrorRates(TRUE.sensitivity, TRUE.specificity, 20, 20)
    rows, width = [[1.3] * 6 + [0.0] * 10] * 2, float(TRUE.high - TRUE.low)
    plain = judge_challenger(rows, number=1, error=0.2, width=width, rates=TRUE)
    wider = judge_challenger(rows, number=1, error=0.2, width=width, rates=few)
    assert (plain.word, plain.evidence, plain.gain) == (wider.word, wider.evidence, wider.gain)
    assert wider.interval[0] < plain.interval[0] and wider.interval[1] >= plain.interval[1]
    assert (plain.interval[0] > 0) == (wider.interval[0] > 0)


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
