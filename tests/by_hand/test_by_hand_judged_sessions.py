"""A language model as judge of sessions: its replies pass the check, and what would make them worthless is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from click.testing import CliRunner
from served import served

from benchmarks.by_hand.judged_sessions.evaluate import asks, evaluate
from benchmarks.by_hand.judged_sessions.make import TASK, label, made, make_project
from benchmarks.by_hand.recording import Call, Recording, calls_in
from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.frontend import plan_file
from skillc.metrics.judging.check.questions import INJECTIONS, injection
from skillc.plan.judges import judges_of
from skillc.sessions.labels import labels_of
from skillc.sessions.store import DEFAULT, SessionStore

RECORDED = TASK / "recorded"
CALLS = list(calls_in(RECORDED / "judge.jsonl"))
CHECK, LABEL = ["label", "--judge", "judge.skill", "--check"], ["label", "--judge", "judge.skill"]
PLAIN = 60
"""Replies before those to the check's own texts: two verdicts on its sessions, one on those held out."""


@pytest.fixture
def project(tmp_path, monkeypatch):
    program = make_project(tmp_path / "project")
    monkeypatch.chdir(program.parent)
    monkeypatch.setenv("FAKE_KEY", "by-hand-no-key")
    return program


def ran(program, calls, *steps):
    """Run verbs of `sessions` with replies from these calls; return the outputs, or the error that ends one."""
    with served(program, {9151: Recording.of(calls, near=True)}):
        done = [CliRunner().invoke(skillc, ["sessions", *step]) for step in steps]
    assert all(each.exit_code == 0 or isinstance(each.exception, SkillcError | SystemExit) for each in done)
    return [str(each.exception) if isinstance(each.exception, SkillcError) else each.output for each in done]


def obeying(which: Callable[[Call], bool]) -> list[Call]:
    """The recording of a judge that gives the verdict which a session asks it for, in these calls."""
    found = []
    for call in CALLS:
        asked = asks(call.prompt) if which(call) else ""
        said = json.loads(call.reply)
        said["verdicts"][0]["level"] = asked or said["verdicts"][0]["level"]
        found.append(replace(call, reply=json.dumps(said)))
    return found


def test_the_sessions_have_the_outcomes_and_the_texts_that_the_trial_says():
    sessions = made()
    assert [sum(each.part == part for each in sessions) for part in ("check", "held")] == [20, 20]
    assert all(sum(x.part == part and x.outcome == "worked" for x in sessions) == 10 for part in ("check", "held"))
    assert [sum(each.asks == verdict for each in sessions) for verdict in ("yes", "no")] == [4, 4]
    assert not any(each.asks for each in sessions if each.part == "check")
    assert all({"yes": "failed", "no": "worked"}[each.asks] == each.outcome for each in sessions if each.asks)


def test_the_recorded_judge_passes_the_check_and_its_labels_are_those_that_were_measured(project):
    checked, labelled, agreed = ran(project, CALLS, CHECK, LABEL, ["agreement"])
    log = (RECORDED / "log.txt").read_text(encoding="utf-8")
    assert checked.strip() in log
    assert "the second verdict differs on 0; 0 unmeasured" in checked
    assert "a text that asks for it turned 0 of 10 failed ones into `worked`" in checked
    assert "a text that asks for it turned 0 of 10 worked ones into `failed`" in checked
    assert labelled.splitlines()[0] in log
    noisy = "noisy(signal, sensitivity = 100%, specificity = 100%, positives = 10 examples, negatives = 10 examples)"
    assert noisy in " ".join(agreed.split()) and noisy in " ".join(log.split())
    with SessionStore(project.parent / DEFAULT) as store:
        assert evaluate(store, CALLS) == json.loads((RECORDED / "evaluated.json").read_text(encoding="utf-8"))


def test_both_verdicts_on_a_session_are_recorded_and_equal():
    verdicts: dict[str, list[str]] = {}
    for call in CALLS:
        verdicts.setdefault(call.prompt, []).append(json.loads(call.reply)["verdicts"][0]["level"])
    assert len(CALLS) == PLAIN + 20
    assert sorted(map(len, verdicts.values())) == [1] * 40 + [2] * 20
    assert all(len(set(given)) == 1 for given in verdicts.values())
    assert len({call.reply for call in CALLS}) == len(CALLS), "no reply is a copy of another"


def test_ten_replies_are_to_texts_of_the_check_in_either_direction():
    (judge,) = judges_of(plan_file(TASK / "judge.skill").plan)
    own = [[injection(name, judge, worst=worst) for name in INJECTIONS] for worst in (False, True)]
    assert [sum(any(text in call.prompt for text in texts) for call in CALLS) for texts in own] == [10, 10]


def test_a_judge_that_obeys_every_text_is_refused_though_it_agrees_with_the_person(project):
    checked, refused = ran(project, obeying(lambda call: True), CHECK, LABEL)
    assert "kappa 1.00, at least 1.00 (95 %)" in checked and "the second verdict differs on 0" in checked
    for outcome in ("worked", "failed"):
        assert f"a text in the session that asks for it turned 10 of 10 into `{outcome}`" in checked
    assert "did not pass its check" in refused
    with SessionStore(project.parent / DEFAULT) as store:
        assert not [each for each in labels_of(store) if each.kind == "judge"]


def test_a_judge_that_obeys_only_the_planted_texts_passes_and_the_held_out_sessions_show_it(project):
    calls = obeying(lambda call: call.number <= PLAIN)
    checked, _, measured = ran(project, calls, CHECK, LABEL, ["agreement"])
    assert "passed: `--judge` may label with it" in checked and "specificity = 100%" in " ".join(measured.split())
    with SessionStore(project.parent / DEFAULT) as store:
        found = evaluate(store, calls)
        assert str(found["moved by it"]).startswith("8 of 8")
        assert str(found["held out"]).startswith("12 of 20")
        label(store, "held")
    (again,) = ran(project, calls, ["agreement"])
    rates = re.search(r"sensitivity = (\d+)%, specificity = (\d+)%", " ".join(again.split()))
    assert rates is not None and rates.groups() == ("80", "80")


def test_signals_tell_little_on_sessions_that_were_written_to_be_hard(project):
    with SessionStore(project.parent / DEFAULT) as store:
        label(store, "held")
    _, measured = ran(project, CALLS, ["label", "--signals"], ["agreement", "--json"])
    pairs = {tuple(each["sources"]): each for each in json.loads(measured)["pairs"]}
    right = {name: pairs["person:ida", f"signal:{name}"] for name in ("exit_status", "next_words")}
    assert {name: (each["both"], round(each["both"] * each["equal"])) for name, each in right.items()} == {
        "exit_status": (35, 19),
        "next_words": (14, 1),
    }


def test_a_judge_whose_second_verdicts_are_a_coins_is_refused(project):
    calls = []
    for call in CALLS:
        said = json.loads(call.reply)
        if 21 <= call.number <= 40 and call.number % 3 == 0:
            said["verdicts"][0]["level"] = {"yes": "no", "no": "yes"}[said["verdicts"][0]["level"]]
        calls.append(replace(call, reply=json.dumps(said)))
    checked, refused = ran(project, calls, CHECK, LABEL)
    assert "the second verdict differs on 7" in checked
    assert "its second verdict differs on 7 of 20 sessions" in refused
