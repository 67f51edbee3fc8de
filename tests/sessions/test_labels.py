"""One outcome of the labels of several sources."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from skillc.sessions.agreement import agreements_of
from skillc.sessions.labels import Label, Outcome, consensus
from skillc.stats.error_rates import ErrorRates


def label(source: str, outcome: Outcome, certainty: float = 0.8, note: str = "") -> Label:
    return Label("s", "skill", source, outcome, certainty, note)


def test_independent_sources_add_their_log_odds() -> None:
    found = consensus([label("signal:tests", "worked", 0.8), label("signal:next_words", "worked", 0.7)])
    odds = 0.8 / 0.2 * 0.7 / 0.3
    assert found.outcome == "worked" and found.source == "consensus"
    assert math.isclose(found.certainty, odds / (1 + odds))


def test_sources_that_read_the_same_evidence_count_once() -> None:
    found = consensus([label("signal:tests", "worked", 0.8), label("signal:exit_status", "worked", 0.75)])
    assert math.isclose(found.certainty, 0.8)
    judges = consensus([label("judge:a", "failed", 0.8), label("judge:b", "failed", 0.8)])
    assert judges.outcome == "failed" and math.isclose(judges.certainty, 0.8)


def test_contradiction_is_unclear_within_a_family_and_between_families() -> None:
    for other in ("signal:exit_status", "signal:next_words"):
        found = consensus([label("signal:tests", "worked", 0.8), label(other, "failed", 0.75)])
        assert found.outcome == "unclear"
        assert found.note.startswith("sources disagree: ") and f"{other} failed" in found.note


def test_strong_evidence_wins_over_weak() -> None:
    found = consensus([label("judge:a", "failed", 0.95, "wrong file"), label("signal:tests", "worked", 0.6)])
    assert found.outcome == "failed" and found.note == "wrong file"


def test_one_weak_source_is_not_enough() -> None:
    assert consensus([label("signal:ending", "worked", 0.6)]).outcome == "unclear"


def test_a_person_wins_over_all_others() -> None:
    given = [
        label("judge:a", "worked", 0.99),
        label("signal:tests", "worked"),
        label("person:eva", "failed", 1.0, "no"),
    ]
    found = consensus(given)
    assert (found.outcome, found.certainty, found.note) == ("failed", 1.0, "no")


def test_persons_who_disagree_are_counted() -> None:
    given = [label("person:a", "worked", 1.0), label("person:b", "failed", 1.0)]
    assert consensus(given).outcome == "unclear"
    assert consensus([*given, label("person:c", "failed", 1.0)]).outcome == "failed"


def test_its_own_earlier_result_is_no_evidence() -> None:
    weak = label("signal:ending", "worked", 0.6)
    assert consensus([weak, label("consensus", "worked", 0.9)]).outcome == "unclear"


def test_labels_of_several_sessions_or_none_are_refused() -> None:
    for given in ([], [label("signal:tests", "worked"), Label("t", "skill", "signal:tests", "worked", 0.8)]):
        with pytest.raises(ValueError, match="one session and one skill"):
            consensus(given)


def test_a_source_that_met_ten_sessions_of_either_outcome_has_error_rates():
    def label(i, source, outcome):
        return Label(f"s{i}", "route", source, outcome, 0.9)

    truth = ["worked"] * 20 + ["failed"] * 10
    said = ["worked"] * 17 + ["failed"] * 2 + ["unclear"] + ["failed"] * 8 + ["worked"] * 2
    labels = [label(i, "person:ada", each) for i, each in enumerate(truth)]
    labels += [label(i, "signal:tests", each) for i, each in enumerate(said)]
    found = agreements_of(labels).errors
    assert found == {"signal:tests": ErrorRates(Fraction(17, 19), Fraction(8, 10), 19, 10)}
    fewer = [each for each in labels if each.session != "s29"]
    assert agreements_of(fewer).errors == {}
