"""Signals of sessions: each against made sessions, half of them held out, and where it misleads."""

from collections import Counter

import pytest
from labelled import agent, call, session, user
from signal_cases import CASES, F, W, edit, half, run, session_of

from skillc.sessions import signals
from skillc.sessions.exercised import like_skill, skill_of, skills_loaded
from skillc.sessions.labels import consensus
from skillc.sessions.session import Mark
from skillc.trajectories.trajectory import Observation, ToolCall


def measured(held_out):
    """How many labels of each signal and outcome are right, and how many there are."""
    right, number = Counter(), Counter()
    for i in half(held_out):
        for label in signals.signals_of(session_of(i)):
            if label.outcome != "unclear":
                place = (label.source.removeprefix("signal:"), label.outcome)
                number[place] += 1
                right[place] += label.outcome == CASES[i][0]
    return right, number


def test_declared_certainties_are_the_rates_on_the_held_out_half():
    right, number = measured(held_out=True)
    assert {place: round((right[place] + 1) / (number[place] + 2), 2) for place in number} == signals.CERTAINTY


def test_a_consensus_is_seldom_wrong_and_says_unclear_instead():
    said = Counter()
    for i in half(True):
        labels = signals.signals_of(session_of(i))
        outcome = consensus(labels).outcome if labels else "none"
        said["right" if outcome == CASES[i][0] else "unclear" if outcome in ("unclear", "none") else "wrong"] += 1
    assert len(list(half(True))) == 45
    assert said["wrong"] <= 2
    assert said["right"] >= 30


def reading(name, *parts, **more):
    from dataclasses import replace

    steps = [step for part in parts for step in (part if isinstance(part, list) else [part])]
    found = signals.SIGNALS[name](replace(session("openai:1", *steps), **more))
    return None if found is None else found.outcome


SUMMARIES = {
    "=== 1 failed, 2 passed, 1 error in 0.10s ===": (2, 2),
    "3 passed, 1 skipped in 1.2s": (3, 0),
    "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1)": (3, 2),
    "test result: ok. 5 passed; 0 failed; 0 ignored\ntest result: FAILED. 1 passed; 2 failed;": (6, 2),
    "Tests:       1 failed, 5 passed, 6 total": (5, 1),
    "      Tests  2 passed (2)": None,
    "  6 passing (20ms)\n  1 failing": (6, 1),
    "8 examples, 3 failures": (5, 3),
    "[ERROR] Tests run: 9, Failures: 1, Errors: 2, Skipped: 0": (6, 3),
    "ok  \tapp\t0.1s\n--- FAIL: TestA (0.0s)\nFAIL\tapp/b\t0.1s": (1, 1),
    "all good": None,
}


@pytest.mark.parametrize("output", SUMMARIES)
def test_summaries_of_test_runners_are_counted(output):
    assert signals.summary_of(output) == SUMMARIES[output]


def test_a_masked_exit_status_does_not_hide_failed_tests():
    assert reading("tests", "Fix it.", run("pytest | tail -1", "1 failed, 2 passed in 0.1s"), agent("Ok.")) == F
    assert reading("tests", "Fix it.", run("pytest | tail -1", "see the log"), agent("Ok.")) is None


def test_tests_before_the_last_edit_are_unclear():
    green = run("pytest", "2 passed in 0.1s")
    assert reading("tests", "Fix it.", edit(), green, agent("Ok.")) == W
    assert reading("tests", "Fix it.", green, edit(), agent("Ok.")) == "unclear"


def test_a_search_that_finds_nothing_is_no_failed_command():
    assert reading("exit_status", "Search.", run("grep foo a", "", 1), agent("None.")) is None
    assert reading("exit_status", "Build.", run("make", "error", 2), agent("Hm.")) == F
    assert reading("exit_status", "Build.", run("make", "error", 2), run("make"), agent("Built.")) == W


def test_results_of_calls_made_together_belong_to_them_in_order():
    together = [
        ToolCall("", {"command": "make a"}, "Bash"),
        ToolCall("", {"command": ["bash", "-lc", "make b"]}, "shell"),
        Observation("ok"),
        Observation("Exit code: 2\nbad", failed=True),
    ]
    found = signals.commands_of(session("openai:1", "Build.", *together, agent("Hm.")))
    assert [(each.text, each.failed, each.status) for each in found] == [("make a", False, None), ("make b", True, 2)]


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("thanks!", W),
        ("Thanks, but the footer?", "unclear"),
        ("Thanks in advance for the next one", None),
        ("no problem", None),
        ("not bad", None),
        ("great, now it's broken", F),
        ("It doesn't work", F),
        ("It doesn’t work", F),
        ("```\nit is wrong\n```\nlog it", None),
        ("Klappt, danke", W),
        ("Das stimmt nicht", F),
        ("不对", F),
        ("Add a comment.", None),
    ],
)
def test_the_users_next_words(said, outcome):
    assert reading("next_words", "Do it.", agent("Done."), user(said), agent("Ok.")) == outcome


def test_words_before_the_first_answer_and_no_as_an_answer_are_no_objection():
    assert reading("next_words", user("This is wrong: 1+1=3. Fix it."), agent("Fixed.")) is None
    asked = agent("Shall I keep the old name?")
    assert reading("next_words", "Rename it.", asked, user("no"), agent("Renamed.")) is None
    assert reading("next_words", "Rename it.", agent("Renamed."), user("no"), agent("Oh.")) == F


def test_an_undone_change_and_one_made_anew():
    undo = run("git checkout -- .")
    assert reading("changes", "Do it.", edit(), undo, agent("Undone.")) == F
    assert reading("changes", "Do it.", edit(), undo, edit(), agent("Done.")) == "unclear"
    assert reading("changes", "Undo my last change.", undo, agent("Undone.")) is None
    assert reading("changes", "Do it.", edit(), run("git checkout main", "", 0), agent("Done.")) is None


def test_marks_of_other_things_and_other_scales_are_ignored():
    for mark in (Mark("latency", 0.9), Mark("toxicity_score_fail", 1.0), Mark("rating", 4)):
        assert reading("marks", "Hi.", agent("Hi."), marks=(mark,)) is None
    assert reading("marks", "Hi.", agent("Hi."), marks=(Mark("score", 0.5),)) == "unclear"
    assert reading("marks", "Hi.", agent("Hi."), marks=(Mark("score", 1), Mark("rating", 0))) == "unclear"


def test_an_agent_that_says_it_is_done_is_no_evidence():
    assert reading("ending", "Do it.", agent("Done!")) is None
    assert reading("ending", "Do it.", agent("I was unable to do it.")) == F


# ---- which skill -----------------------------------------------------------------------------------

SKILLS = {
    "route_tickets": "Route a support ticket to the team that can resolve it.",
    "write-changelog": "Write the entry of a release in the changelog from its commits.",
    "sql": "Translate a question about orders into a query of the database.",
}


def test_a_loaded_skill_is_named_whatever_the_request_is_like():
    tool = [ToolCall("", {"skill": "plugin:write-changelog"}, "Skill"), Observation("ok")]
    reads = call("cat ~/.claude/skills/route-tickets/SKILL.md")
    for steps in (tool, ["Release notes please $write_changelog"]):
        one = session("openai:1", "Query the orders in the database.", agent("Yes."), *steps, agent("Done."))
        assert skill_of(one, "Query the orders in the database.", SKILLS) == "write-changelog"
    assert skills_loaded(session("openai:1", "Hi.", *reads, agent("Done."))) == ("route-tickets",)
    assert skill_of(session("openai:1", "Hi.", *reads, agent("Done.")), "Hi.", SKILLS) == "route_tickets"


def test_a_skill_that_could_not_be_read_or_is_not_known_is_not_loaded():
    failed = call("cat skills/sql/SKILL.md", "No such file", failed=True)
    assert skills_loaded(session("openai:1", "Hi.", *failed, agent("Hm."))) == ()
    assert skill_of(session("openai:1", "Pay $HOME and $50, $other", agent("Ok.")), "Pay", SKILLS) == ""


@pytest.mark.parametrize(
    ("request_", "skill"),
    [
        ("Which team should resolve this support ticket? 'My parcel is late'", "route_tickets"),
        ("Please write the changelog entry for release 2.4 from the commits", "write-changelog"),
        ("translate this question into a database query: how many orders last week?", "sql"),
        ("Fix the failing date parser", ""),
        ("Write a poem about the sea", ""),
        ("How do I resolve a merge conflict?", ""),
        ("What is the release date of Python 4?", ""),
        ("Translate this letter into French", ""),
        ("order a pizza for the team", ""),
        ("", ""),
    ],
)
def test_a_request_is_like_one_skill_or_none(request_, skill):
    assert like_skill(request_, SKILLS) == skill


def test_two_skills_that_are_equally_like_a_request_are_none():
    about = "Route a support ticket to its team."
    assert like_skill("route this support ticket", {"x": about, "y": about}) == ""
