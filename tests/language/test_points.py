"""Errors and notes of the language, one by one."""

from __future__ import annotations

import pytest
from checking import program, run

from skillc.diagnostics.diagnostic import Severity

_COUNTED = '"tickets.jsonl"; split = 80 examples : 40 examples : 20 examples'


def counted(text: str) -> str:
    return text.replace('"tickets.jsonl"', _COUNTED)


ERRORS = {
    "a comparison that ranges decide": (program("gate g = regressed(correct) <= 5"), "SK303", "did you mean `5%`?"),
    "no goal": (
        program().replace("goal correct", "metric correct"),
        "SK206",
        "add `goal correct = exact_match(answer)`",
    ),
    "two goals": (
        program("goal other = f1(reply)"),
        "SK222",
        "make one a metric, and combine them: `goal score = 0.8 * a + 0.2 * b`",
    ),
    "two settings of one name": (
        program("optimize { batch = 4; batch = 5 }"),
        "SK203",
        "keep one of them",
    ),
    "an unknown word": (program("metrik m = f1(reply)"), "SK201", "did you mean `metric`?"),
    "an unknown setting": (program("optimize { bach = 4 }"), "SK202", "did you mean `batch`?"),
    "an unknown unit": (program("gate g = tokens(candidate) < 9 tokns"), "SK301", "did you mean `tokens`?"),
    "a section without a word in front": (
        program().replace("trainable section rules", "section rules"),
        "SK214",
        "valid options: `frozen`, `trainable`, `slow`, before `section`",
    ),
    "a parameter without a type": (
        program("gate most(m) = candidate.m > 50%"),
        "SK215",
        "write `m: metric`, or `m: share`",
    ),
    "an example function in a gate": (
        program("gate g = exact_match(team) > 50%"),
        "SK306",
        "make it a metric: `metric m = exact_match(team)`, and write `candidate.m`",
    ),
    "a gate's function in a metric": (program("metric m = regressed(correct)"), "SK306", "call it in a gate"),
    "an unbounded goal": (
        program(goal="tokens(reply)"),
        "SK304",
        "bound it: `clamp(..., 0 tokens, 300 tokens)`",
    ),
    "a gate without a candidate": (
        program("gate g = best.correct > initial.correct"),
        "SK502",
        "compare `candidate.metric`, or write `require g = ...`",
    ),
    "a bare metric in a gate": (program("gate g = correct > 50%"), "SK217", "write `candidate.correct`"),
}

NOTES = {
    "a gate over an unbounded quantity": (
        program("gate g = latency(candidate) <= 2 * latency(incumbent)"),
        "SK504",
        "each decision takes the whole validation split",
    ),
    "a metric that no gate or goal reads": (
        program("metric m = f1(reply)"),
        "SK409",
        "it is still measured and reported",
    ),
    "a limit that texts and limits keep": (
        program("gate g = tokens(candidate) <= 2k tokens"),
        "SK506",
        "with full sections, the skill has at most 508 tokens",
    ),
    "patience above the steps there are": (
        counted(program()).replace("epochs = 4", "epochs = 4; patience = 9 steps"),
        "SK507",
        "lower it, or allow more epochs",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_the_list(name: str) -> None:
    text, code, hint = ERRORS[name]
    found = [each for each in run(text).diagnostics if each.severity is Severity.ERROR]
    assert (code, hint) in [(each.code, each.hint) for each in found]
    assert {each.code for each in found} <= {code, "SK206"}


@pytest.mark.parametrize("name", NOTES)
def test_a_note_of_the_list(name: str) -> None:
    text, code, hint = NOTES[name]
    found = [each for each in run(text).diagnostics if each.code != "SK605"]
    assert [(each.code, each.hint, each.severity) for each in found] == [(code, hint, Severity.NOTE)]


@pytest.mark.parametrize("wrong", ["f1(rply)", "missing", "f2(reply)", "tokens(reply)"])
def test_what_depends_on_a_broken_name_stays_silent(wrong: str) -> None:
    more = f"metric a = {wrong}\nmetric b = 0.5 * a\n"
    more += "gate g = candidate.b > incumbent.a\ngate h = improved(a) > incumbent.b"
    found = [each for each in run(program(more)).diagnostics if each.severity is Severity.ERROR]
    assert len(found) == 1
