"""Judges of statements: what code checks, what is asked, and what becomes of it."""

import json

import pytest
from judged_programs import by_model, judged, parts_of, planned, verdict
from model_plans import reply

from skillc.metrics.judging.statements import check_by_code
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import Example, Scored, Unmeasured
from skillc.trajectories.trajectory import Trajectory

ANSWER = "Your  refund left on Monday.\nRegards, Ann"


@pytest.mark.parametrize(
    ("statement", "holds"),
    [
        ('The output contains "REFUND left"', True),
        ("The answer mentions “refund”.", True),
        ('The output does not contain "sorry"', True),
        ('the output doesn\'t mention "Monday"', False),
        ('The output is exactly "Your refund"', False),
        ('The reply starts with "your refund"', True),
        ('The output ends with "ann"', True),
        ("The output is valid JSON", False),
        ("The output has at most 7 words", True),
        ("The output has fewer than 7 words", False),
        ("The output has exactly 2 lines", True),
        ("The output has more than 1,000 characters", False),
        ('The output contains "refund" and is kind', None),
        ("The chart has labeled axes", None),
        ("The output has at most many words", None),
    ],
)
def test_a_statement_of_a_fixed_form_is_checked_by_code(statement, holds):
    found = check_by_code(statement, ANSWER)
    assert (found.holds if found is not None else None) is holds


def example(*statements):
    return Example("1", {"mail": "Where is it?"}, {}, {"facts": list(statements)}, "1")


@pytest.fixture
def plan(tmp_path):
    return planned(
        tmp_path,
        "goal score = judge(reply, met, model = referee)",
        rubrics="rubric met { each = facts }",
        data="field facts: list[text]",
    )


def test_only_what_code_cannot_check_is_asked(plan, tmp_path):
    asked = []

    def say(sent):
        asked.append(sent["messages"][0]["content"])
        return reply(verdict(parts_of(sent)[0], "no", names=("2",), reasons=("it is curt",)))

    case = example('The output contains "monday"', "It is kind", 'The output contains "Friday"')
    found = judged(plan, by_model(claude=say), example=case, folder=tmp_path)
    assert found.cells["score"] == Scored(333_333)
    assert len(asked) == 1
    assert "It is kind" in asked[0]
    assert "monday" not in asked[0]
    assert found.feedback.splitlines() == [
        'score, `The output contains "monday"`: yes',
        "score, `It is kind`: no: it is curt",
        'score, `The output contains "Friday"`: no',
    ]


def test_no_model_is_asked_where_code_checks_everything(plan, tmp_path):
    def say(sent):
        raise AssertionError("asked")

    found = judged(plan, by_model(claude=say), example=example('The output contains "monday"'), folder=tmp_path)
    assert found.cells["score"] == Scored(1_000_000)


def test_a_judge_that_fails_leaves_all_statements_unmeasured(plan, tmp_path):
    case = example('The output contains "monday"', "It is kind")
    found = judged(plan, by_model(claude=lambda sent: reply("no idea")), example=case, folder=tmp_path)
    assert found.cells["score"] == Unmeasured("judge")


def test_statements_are_not_quoted_where_the_optimizer_may_not_see_right_answers(tmp_path):
    plan = planned(
        tmp_path,
        "goal score = judge(reply, met, model = referee)",
        rubrics="rubric met { each = facts }",
        data="field facts: list[text]",
        optimize="optimize { sees = [feedback] }",
    )
    found = judged(
        plan, by_model(claude=lambda sent: reply("")), example=example('The output contains "x"'), folder=tmp_path
    )
    assert found.feedback == "score, statement 1: no"


def test_evidence_is_recorded_beside_the_cells():
    outcome = Outcome({"score": Scored(500_000)}, Trajectory(), "", statements=(((1_000_000, "yes"), (0, "no")),))
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome
    assert "statements" not in Outcome({}, Trajectory(), "").to_json()
