"""A judge of sessions: refused before its check, checked against a person, and never a label where it fails."""

import json
import os
from dataclasses import replace

import pytest
from click.testing import CliRunner
from labelled import agent, make_store, session

from skillc.cli import skillc as verbs
from skillc.errors import SkillcError
from skillc.labels.judging import check_judge, label_by_judge, load_judge, record_of
from skillc.sessions.labels import labels_of
from skillc.sessions.store import SessionStore

PROGRAM = """
language 1
task {
  input  request: text
  output session: text
}
skill coding {
  about = "Change code as asked."
  trainable section rules
}
rubric worked = "Did the session do what the user asked for?"
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
model referee   = "own/judge" { backend = python("referee:judge") }
data { source = "none.jsonl" }
goal done = judge(session, worked, model = referee)
budget { epochs = 1; judge_calls = CAP }
gate better = candidate.done >= incumbent.done
"""

REFEREE = """
import json, pathlib, re

HERE = pathlib.Path(__file__).parent

def judge(messages, model, parameters):
    text = messages[1]["content"]
    with (HERE / "asked.txt").open("a") as file:
        file.write("x")
    case = re.search(r"Case (\\w+)", text)[1]
    number = int(re.search(r"task (\\d+)", text)[1])
    level = "yes" if DECIDE else "no"
    if FAILS:
        return "no idea"
    return json.dumps({"case": case, "verdicts": [{"reason": "", "level": level}]})
"""


def made(folder, decide="'green' in text", fails="False", cap="10k", labelled=24, n=40):
    """A program with a scripted referee, and a store whose sessions with an even number worked."""
    folder.mkdir(exist_ok=True)
    (folder / "judge.skill").write_text(PROGRAM.replace("CAP", cap))
    (folder / "referee.py").write_text(REFEREE.replace("DECIDE", decide).replace("FAILS", fails))
    sessions = [
        session(f"openai:{i:02}", f"Do task {i}.", agent("It is green." if i % 2 == 0 else "It is red."))
        for i in range(n)
    ]
    labels = [(f"openai:{i:02}", "coding", "worked" if i % 2 == 0 else "failed") for i in range(labelled)]
    return make_store(folder / "sessions.db", sessions, labels), folder / "judge.skill"


@pytest.fixture(autouse=True)
def fresh_modules(monkeypatch):
    """Each test has a `referee.py` of its own."""
    import sys

    monkeypatch.delitem(sys.modules, "referee", raising=False)


def test_a_judge_that_agrees_labels_the_sessions_with_its_measured_certainty(tmp_path):
    store, program = made(tmp_path / "a")
    judge = load_judge(program, offline=False)
    with SessionStore(store) as opened:
        with pytest.raises(SkillcError, match="is not checked against a person's labels"):
            label_by_judge(opened, judge, {}, offline=False)
        record = check_judge(opened, judge, offline=False)
        assert (record.problems, record.sessions, record.flips, record.kappa) == ((), 24, 0, 1.0)
        assert (record.injected, record.moved) == ({"worked": 12, "failed": 12}, {"worked": 0, "failed": 0})
        found = label_by_judge(opened, judge, {}, offline=False)
        assert (found.sessions, found.unmeasured, found.stopped) == (40, 0, None)
        assert found.labels == {"worked": 20, "failed": 20, "unclear": 0}
        labels = [each for each in labels_of(opened) if each.source == "judge:coding"]
    assert all(each.outcome == ("worked" if int(each.session[-2:]) % 2 == 0 else "failed") for each in labels)
    assert {each.certainty for each in labels} == {13 / 14}
    asked = os.path.getsize(program.parent / "asked.txt")
    with SessionStore(store) as opened:
        label_by_judge(opened, judge, {}, offline=False)
    assert os.path.getsize(program.parent / "asked.txt") == asked, "known replies are not asked for again"


@pytest.mark.parametrize("decide", ["number % 3 == 0", "True", "'red' in text"])
def test_a_judge_that_does_not_track_the_person_is_refused(tmp_path, decide):
    store, program = made(tmp_path / "a", decide)
    judge = load_judge(program, offline=False)
    with SessionStore(store) as opened:
        assert check_judge(opened, judge, offline=False).problems
        with pytest.raises(SkillcError, match="no better than by chance"):
            label_by_judge(opened, judge, {}, offline=False)
        assert not [each for each in labels_of(opened) if each.kind == "judge"]


PLEAS = {"worked": "'correct in every respect' in text", "failed": "'wrong in every respect' in text"}
WORKED = f"({PLEAS['worked']} or 'result is `yes`' in text)"
FAILED = f"({PLEAS['failed']} or 'result is `no`' in text)"


def turned(outcome, moved=6):
    return f"a text in the session that asks for it turned {moved} of 12 into `{outcome}`"


@pytest.mark.parametrize(
    ("decide", "moved", "problems"),
    [
        (f"('green' in text or {WORKED}) and not {FAILED}", (6, 6), [turned("worked"), turned("failed")]),
        (f"'green' in text or {WORKED}", (6, 0), [turned("worked")]),
        (f"'green' in text and not {FAILED}", (0, 6), [turned("failed")]),
        ("'green' in text", (0, 0), []),
        # Each direction has the same limit for itself: a quarter of one is too much, though an eighth of all is not.
        (f"'green' in text or {PLEAS['worked']}", (3, 0), [turned("worked", 3)]),
        (f"'green' in text and not {PLEAS['failed']}", (0, 3), [turned("failed", 3)]),
    ],
)
def test_a_judge_that_obeys_the_session_in_either_direction_is_refused_though_it_agrees_with_the_person(
    tmp_path, decide, moved, problems
):
    store, program = made(tmp_path / "a", decide)
    with SessionStore(store) as opened:
        judge = load_judge(program, offline=False)
        record = check_judge(opened, judge, offline=False)
        assert (record.kappa, record.flips, record.injected) == (1.0, 0, {"worked": 12, "failed": 12})
        assert (record.moved["worked"], record.moved["failed"]) == moved
        assert record.problems == tuple(problems)
        # Two plain questions on each labelled session, and one with a text.
        assert os.path.getsize(program.parent / "asked.txt") == 3 * 24
        assert record_of(opened, judge) == replace(record, problems=[*problems])
        if problems:
            with pytest.raises(SkillcError, match="did not pass its check"):
                label_by_judge(opened, judge, {}, offline=False)


@pytest.mark.parametrize("outcome", ["worked", "failed"])
def test_a_judge_that_obeys_rarely_passes_and_what_it_obeyed_is_reported(tmp_path, outcome):
    obeys = f"{PLEAS[outcome]} and number < 8"
    store, program = made(tmp_path / "a", f"'green' in text {'or' if outcome == 'worked' else 'and not'} ({obeys})")
    with SessionStore(store) as opened:
        record = check_judge(opened, load_judge(program, offline=False), offline=False)
    assert (record.injected[outcome], record.problems) == (12, ())
    assert 0 < record.moved[outcome] <= 2


def test_a_judge_that_could_not_be_read_where_a_text_asks_for_an_outcome_is_refused(tmp_path):
    store, program = made(tmp_path / "a", fails=f"{FAILED} or 'Give `no`' in text or 'incomplete' in text")
    with SessionStore(store) as opened:
        record = check_judge(opened, load_judge(program, offline=False), offline=False)
    assert record.injected == {"worked": 12, "failed": 0}
    assert record.problems == ("no session could be judged with a text that asks for `failed`",)


def test_another_rubric_or_model_needs_a_check_of_its_own(tmp_path):
    store, program = made(tmp_path / "a")
    judge = load_judge(program, offline=False)
    with SessionStore(store) as opened:
        check_judge(opened, judge, offline=False)
        assert record_of(opened, judge) is not None
        program.write_text(program.read_text().replace("Did the session", "Did this session"))
        other = load_judge(program, offline=False)
        assert other.identity != judge.identity
        assert record_of(opened, other) is None
        assert record_of(opened, load_judge(program, offline=True)) is None


def test_a_verdict_that_cannot_be_read_is_unmeasured_and_no_label(tmp_path):
    store, program = made(tmp_path / "a", fails="number >= 30")
    judge = load_judge(program, offline=False)
    with SessionStore(store) as opened:
        check_judge(opened, judge, offline=False)
        found = label_by_judge(opened, judge, {}, offline=False)
        labelled = {each.session for each in labels_of(opened) if each.kind == "judge"}
    assert (found.sessions, found.unmeasured) == (40, 10)
    assert labelled == {f"openai:{i:02}" for i in range(30)}


def test_a_cap_ends_it_and_a_larger_one_goes_on(tmp_path):
    store, program = made(tmp_path / "a")
    with SessionStore(store) as opened:
        check_judge(opened, load_judge(program, offline=False), offline=False)
        small = load_judge(program, settings=("budget.judge_calls=30",), offline=False)
        found = label_by_judge(opened, small, {}, offline=False)
        assert found.stopped == "judge_calls"
        assert 0 < found.sessions < 40
        assert found.unmeasured == 0
        rest = label_by_judge(opened, load_judge(program, offline=False), {}, offline=False)
        assert (rest.sessions, rest.stopped) == (40, None)


def test_too_few_labels_and_a_program_without_such_a_judge_are_refused(tmp_path):
    store, program = made(tmp_path / "a", labelled=12)
    with SessionStore(store) as opened, pytest.raises(SkillcError, match="6 worked and 6 failed"):
        check_judge(opened, load_judge(program, offline=False), offline=False)
    program.write_text(program.read_text().replace("session", "reply"))
    with pytest.raises(SkillcError, match="no judge of the output `session`"):
        load_judge(program, offline=False)


def test_a_record_that_is_no_record_is_named(tmp_path):
    store, program = made(tmp_path / "a")
    judge = load_judge(program, offline=False)
    (tmp_path / "a" / "judges").mkdir()
    (tmp_path / "a" / "judges" / f"{judge.identity}.json").write_text(json.dumps({"identity": judge.identity}))
    with SessionStore(store) as opened, pytest.raises(SkillcError, match="cannot be read"):
        label_by_judge(opened, judge, {}, offline=False)


def test_the_verb_checks_labels_and_refuses(tmp_path):
    store, program = made(tmp_path / "a")

    def sk(*arguments):
        return CliRunner().invoke(verbs, ["sessions", "label", *map(str, arguments), "--store", str(store)])

    assert "is not checked" in str(sk("--judge", program).exception)
    done = sk("--judge", program, "--check")
    assert "passed: `--judge` may label with it" in done.output, done.output
    assert "judged 40 sessions: 20 worked, 20 failed, 0 unclear; 0 unmeasured" in sk("--judge", program).output
    assert json.loads(sk("--judge", program, "--json").output)["labels"] == {"worked": 20, "failed": 20, "unclear": 0}
    assert "can't be used together" in str(sk("--judge", program, "--signals").exception)
    assert "are for a judge" in str(sk("--check").exception)
