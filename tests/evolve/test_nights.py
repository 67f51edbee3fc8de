"""A whole series of nights: it learns, is adopted, leaves poison out, survives kills, keeps its caps and rolls back."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from skillc.artifact_paths import ArtifactPaths
from skillc.data.dataset import load_data
from skillc.errors import SkillcError
from skillc.evolve.harvest import read_rows, rows_file
from skillc.evolve.ledger import Ledger, NightRunningError
from skillc.evolve.measure import NightBudget
from skillc.evolve.report import night_report, night_status, result_line, spent_line
from skillc.frontend import plan_file
from skillc.language.loop import BudgetPlan
from skillc.plan.lock import read_lock
from skillc.publish.staging import adopt, current, rollback, stage, staged
from skillc.sessions.store import DEFAULT, SessionStore
from skillc.sessions.verdicts import withdraw
from tests.evolve.nights import (
    NAME,
    NEW,
    OLD,
    RULES,
    compiled_as,
    night,
    poisoned,
    project,
    requests,
    sessions,
    set_policy,
    skill_md,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def program(tmp_path):
    """A project whose policy adopts what passes."""
    made = project(tmp_path / "project")
    set_policy(made.parent)
    return made


def shown(record):
    return night_report(record).plain


def delivered(program):
    return (program.parent / ".claude/skills" / NAME / "SKILL.md").read_text()


def open_challenge(program):
    """Run two nights, after which a challenger is open."""
    sessions(program.parent, "one", requests(OLD, 30, 1))
    night(program, "2026-11-01")
    sessions(program.parent, "two", requests(NEW, 36, 2))
    assert night(program, "2026-11-02")["challenge"]["word"] == "open"


@pytest.mark.thorough
def test_a_series_of_nights_learns_leaves_poison_out_and_rolls_back_what_fell(program):
    folder = program.parent
    first = current(folder, NAME).digest

    # The skill knows all that is asked.
    sessions(folder, "one", requests(OLD, 30, 1))
    found = night(program, "2026-11-01")
    assert found["rows"]["added"] == 30 and found["spent"]["calls"] == 30 and found["compiled"] is None
    assert found["drift"]["word"] == "no drift" and "current skill stays" in shown(found)
    own = (folder / "requests.jsonl").read_bytes()

    # New kinds of requests fail: a challenger is compiled from the current skill, with one poisoned session about.
    poisoned(folder, *requests(NEW, 1, "poison")[0])
    sessions(folder, "two", requests(NEW, 36, 2))
    found = night(program, "2026-11-02")
    assert found["sessions"]["apart"] == {"suspect": 1} and found["rows"]["added"] == 36
    assert found["compiled"]["changed"] and found["challenge"]["challenger"] == 1
    assert found["challenge"]["word"] == "open" and delivered(program) == skill_md(*RULES)

    # The next rows decide, and the policy adopts.
    sessions(folder, "three", requests(OLD + NEW, 60, 3))
    found = night(program, "2026-11-03")
    assert found["challenge"]["word"] == "accepted" and found["offered"]["word"] == "adopted"
    assert all(f'"{cue}"' in delivered(program) for cue, _ in OLD + NEW)
    second = current(folder, NAME)
    lock = read_lock(second.paths.lock)
    assert lock.verdict == "improved" and lock.test.gain > 0 and lock.test.interval[0] > 0 and lock.looks
    assert float(lock.test.alpha) == pytest.approx(2 * found["challenge"]["share"])

    # What the old version failed is replayed under the new one, once.
    sessions(folder, "four", requests(OLD + NEW, 30, 4))
    found = night(program, "2026-11-04")
    assert found["replayed"] and found["compiled"] is None and found["drift"]["word"] == "no drift"
    assert set(found["replayed_before"]) == set(found["replayed"]) and "% before" in shown(found)
    found = night(program, "2026-11-05")
    assert found["spent"]["calls"] == 0 and result_line(found) == "nothing new, nothing spent"

    # The model becomes worse: the skill falls, is rolled back once, and the change of the model is reported.
    program.write_text(
        program.read_text().replace('target    = "rulebook/v1"', 'target    = "rulebook/v1" { noise = 0.7 }')
    )
    sessions(folder, "six", requests(OLD + NEW, 90, 6))
    found = night(program, "2026-11-06")
    assert found["drift"]["word"] == "fallen" and found["rolled_back"]["to"] == first and night_status(found) == 1
    assert "the model changed, a likely cause: target: other parameters" in shown(found)
    assert delivered(program) == skill_md(*RULES) and current(folder, NAME).digest == first

    # It does not flip back: the version that it went back to falls too, and stays.
    sessions(folder, "seven", requests(OLD + NEW, 90, 7))
    found = night(program, "2026-11-07")
    assert found["drift"]["word"] == "fallen" and found["rolled_back"]["to"] is None
    assert "no version before" in shown(found) or "rolled back to" in shown(found)
    assert current(folder, NAME).digest == first

    # No row of the series changed its side, and no poison is among them.
    rows = read_rows(rows_file(program))
    assert len({row.id for row in rows}) == len(rows) == 336
    sides = {}
    assert all(sides.setdefault(row.cluster, row.side) == row.side for row in rows)
    assert not any("evil" in json.dumps(dict(row.values)) for row in rows)
    assert (folder / "requests.jsonl").read_bytes() == own
    spent = [each["error"]["spent"] for each in Ledger.of(folder, NAME).records()]
    assert spent == sorted(spent) and spent[-1] <= 0.2


@pytest.mark.thorough
def test_the_default_policy_holds_for_a_person_and_nothing_is_compiled_meanwhile(tmp_path):
    program = project(tmp_path / "project")
    folder = program.parent
    sessions(folder, "one", requests(NEW, 36, 2))
    found = night(program, "2026-11-01")
    assert found["offered"]["word"] == "held" and "staged" in result_line(found)
    assert staged(folder, NAME).version.digest == found["offered"]["digest"]
    assert delivered(program) == skill_md(*RULES)
    sessions(folder, "two", requests([("teapot", "billing")], 30, 3))
    found = night(program, "2026-11-02")
    assert found["compiled"] is None and any("waits for a person" in note for note in found["notes"])


@pytest.mark.thorough
def test_a_session_that_is_withdrawn_stops_the_challenger_that_was_trained_on_it(program):
    folder = program.parent
    open_challenge(program)
    behind = next(row for row in read_rows(rows_file(program)) if row.side == "train" and row.night == 2)
    with SessionStore(folder / DEFAULT) as store:
        withdraw(store, [behind.session], person="ada", why="a customer's name")
    sessions(folder, "three", requests(OLD + NEW, 60, 3))
    found = night(program, "2026-11-03")
    assert found["challenge"]["word"] == "dropped" and found["offered"] is None
    assert any("set apart since" in note for note in found["notes"]) and delivered(program) == skill_md(*RULES)


def test_the_caps_of_a_night_hold_and_the_rest_is_measured_the_next_night(program):
    folder = program.parent
    program.write_text(program.read_text().replace("calls = 4_000", "calls = 50"))
    sessions(folder, "one", requests(OLD, 90, 1))
    found = night(program, "2026-11-01")
    assert 0 < found["spent"]["calls"] <= 50 and len(found["scores"]) <= 50
    assert any("cap on calls" in note for note in found["notes"])
    rest = night(program, "2026-11-02")
    assert rest["spent"]["calls"] <= 50 and rest["scores"] and not set(rest["scores"]) & set(found["scores"])
    assert len(found["scores"]) + len(rest["scores"]) >= 60


def test_every_cap_of_the_budget_is_one_sum_over_the_steps_of_a_night(program):
    plan = plan_file(program).plan
    caps = BudgetPlan(tokens=1_000, cost=Fraction(3), judge_calls=10, judge_cost=Fraction(1, 2))
    budget = NightBudget(plan.model_copy(update={"budget": caps}))
    step = {"calls": 9, "tokens": 400, "nano": 10**9, "judge_calls": 4, "judge_nano": 10**8}
    budget.add(step)
    left = budget.capped().budget
    assert (left.tokens, left.cost, left.judge_calls, left.judge_cost) == (600, 2, 6, Fraction(2, 5))
    assert left.calls == plan.evolve.calls - 9
    # A night that was begun by an earlier version has counted calls and money only.
    budget.add({"calls": 1, "nano": 0})
    assert budget.capped().budget.tokens == 600
    for each in ("tokens", "nano", "judge_calls", "judge_nano"):
        full = NightBudget(budget.plan)
        full.add({**step, each: 3 * 10**9})
        assert full.capped() is None
    spent = budget.as_json()
    assert spent["caps"]["judge_nano"] == 5 * 10**8 and spent["caps"]["seconds"] is None
    line = spent_line({"spent": spent})
    assert (
        line == "10 of 4,000 calls, 400 of 1,000 tokens, 4 of 10 judge calls, $1.00 of $3.00, $0.10 of $0.50 for judges"
    )


def test_tokens_of_a_night_are_capped_together_and_a_kill_changes_nothing(program, tmp_path):
    cap = 60_000
    program.write_text(program.read_text().replace("budget { epochs = 1 }", f"budget {{ epochs = 1; tokens = {cap} }}"))
    sessions(program.parent, "one", requests(NEW, 60, 2))
    other = tmp_path / "other" / "project"
    shutil.copytree(program.parent, other)
    found = night(program, "2026-11-02")
    assert found["compiled"]["stopped"] == "tokens" and found["compiled"]["spent"]["tokens"] > 10_000
    # A compile with the whole cap would spend as much again as the rows that were measured before it.
    assert 45_000 < found["spent"]["tokens"] <= cap and found["spent"]["caps"]["tokens"] == cap
    assert f" of {cap:,} tokens" in shown(found)
    killed = other / program.name
    assert die(killed, "compiled:before") == -signal.SIGKILL
    resumed = night(killed, "2026-11-03")
    assert {**resumed, "sessions": 0} == {**found, "sessions": 0}


@pytest.mark.parametrize("asked", [False, True])
def test_a_nights_compile_measures_no_arm_that_the_challenge_does_not_need(program, asked):
    """The target is noisy, so that a compile would measure the null arm."""
    arms = "; null_arm = always" if asked else ""
    text = program.read_text().replace('target    = "rulebook/v1"', 'target    = "rulebook/v1" { noise = 0.1 }')
    program.write_text(text.replace("minibatch = 10", "minibatch = 10" + arms).replace("epochs = 1", "epochs = 4"))
    sessions(program.parent, "one", requests(NEW, 36, 2))
    steps = []
    found = night(program, "2026-11-02", spent=steps)
    stages = {line["stage"] for step in steps for line in step["charged"]["lines"]}
    assert "no skill" not in stages and ("null arm" in stages) == asked and {"rollout", "gate"} <= stages
    assert found["compiled"]["left_out"] == (["no skill"] if asked else ["no skill", "the null arm"])
    validation = len(load_data(plan_file(program).plan, program.parent).validation) + found["rows"]["validation"]
    assert found["compiled"]["spared"] == validation * (1 if asked else 2)
    said = "no skill" if asked else "no skill and the null arm"
    assert f"not measured: {said}, {found['compiled']['spared']} rollouts; the challenge decides" in shown(found)


def test_one_night_a_date(program):
    sessions(program.parent, "one", requests(OLD, 30, 1))
    first = night(program, "2026-11-01")
    again = night(program, "2026-11-01")
    assert again["repeated"] and again["night"] == 1 and first["spent"] == again["spent"]
    assert night(program, "2026-11-01", again=True)["night"] == 2


_KILLED = """
import os, signal, sys
from pathlib import Path
import skillc.evolve.ledger as ledger
from tests.evolve.nights import night

place, stop = sys.argv[2].split(":")
write, step = ledger.Ledger._write, ledger.Ledger.step

def dying_write(self, path, value):
    if stop == "before" and path.stem == place:
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, path, value)
    if stop == "after" and path.stem == place:
        os.kill(os.getpid(), signal.SIGKILL)

ledger.Ledger._write = dying_write
night(Path(sys.argv[1]), "2026-11-02")
"""


def die(program, place):
    """Run a night in a process that is killed at a place; return its exit status."""
    command = [sys.executable, "-c", _KILLED, str(program), place]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False).returncode


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("compiled:before", marks=pytest.mark.thorough),
        pytest.param("harvest:before", marks=pytest.mark.thorough),
        pytest.param("measured:before", marks=pytest.mark.thorough),
        pytest.param("challenge:before", marks=pytest.mark.thorough),
        pytest.param("offered:before", marks=pytest.mark.thorough),
        pytest.param("0002:before", marks=pytest.mark.thorough),
        pytest.param("challenge:after", marks=pytest.mark.thorough),
    ],
)
def test_a_killed_night_goes_on_and_leaves_the_same_bytes(program, tmp_path, place):
    sessions(program.parent, "one", requests(OLD, 12, 1))
    night(program, "2026-11-01")
    sessions(program.parent, "two", requests(NEW, 150, 2))
    other = tmp_path / "other" / "project"
    shutil.copytree(program.parent, other)
    whole = night(program, "2026-11-02")
    assert whole["challenge"]["word"] == "accepted" and whole["offered"]["word"] == "adopted"
    killed = other / program.name
    assert die(killed, place) == -signal.SIGKILL
    resumed = night(killed, "2026-11-03")
    # The copy has its sessions in another folder, so it reads them again.
    assert {**resumed, "sessions": 0} == {**whole, "sessions": 0} and resumed["date"] == "2026-11-02"
    ledgers = [Ledger.of(each.parent, NAME) for each in (program, killed)]
    assert ledgers[0].path.read_bytes() == ledgers[1].path.read_bytes()
    assert rows_file(program).read_bytes() == rows_file(killed).read_bytes()
    assert delivered(program) == delivered(killed)
    assert current(program.parent, NAME).digest == current(other, NAME).digest


def test_a_clock_that_goes_back_gives_no_date_a_second_night(program):
    sessions(program.parent, "one", requests(OLD, 12, 1))
    night(program, "2026-11-02")
    night(program, "2026-11-03")
    assert night(program, "2026-11-02")["repeated"]
    found = night(program, "2026-11-01")
    assert found["night"] == 3 and "the clock went back: an earlier night is of 2026-11-03" in shown(found)


def test_a_night_says_what_a_person_does_next(program):
    folder = program.parent
    sessions(folder, "one", requests(OLD, 12, 1))
    text = shown(night(program, "2026-11-01"))
    assert "spent     12 of 4,000 calls, $0" in text and "\nnext" not in text
    assert "0.00% of 20% spent over all nights by 0 challengers; the next one spends 12.16%" in text
    # Sessions that nobody labelled teach nothing, and the report says so.
    lines = [
        {"messages": [{"role": "user", "content": "What is the time in Oslo?"}, {"role": "assistant", "content": "9"}]}
    ]
    (folder / "transcripts" / "two.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = shown(night(program, "2026-11-02"))
    assert "result    1 new session, but none gave a row; nothing spent" in text
    assert "next      skillc sessions label   1 session without a label can teach nothing" in text
    assert "nothing new, nothing spent" in shown(night(program, "2026-11-03"))


def test_a_full_disk_and_a_locked_store_are_reported_and_lose_nothing(program, monkeypatch):
    sessions(program.parent, "one", requests(OLD, 12, 1))

    def full(*words, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("skillc.evolve.ledger.write_atomically", full)
        with pytest.raises(SkillcError, match="cannot be written: No space left on device"):
            night(program, "2026-11-01")
    other = sqlite3.connect(program.parent / DEFAULT, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    sessions_file = program.parent / "transcripts" / "two.jsonl"
    sessions_file.write_text((program.parent / "transcripts" / "one.jsonl").read_text().replace("ka", "ze"))
    connect = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr("skillc.sessions.store.sqlite3.connect", lambda path, **o: connect(path, **{**o, "timeout": 0.1}))
        with pytest.raises(SkillcError, match="is in use"):
            night(program, "2026-11-01")
    other.execute("ROLLBACK")
    other.close()
    found = night(program, "2026-11-02")
    # The night that was begun is finished, with its own date.
    assert (found["night"], found["date"]) == (1, "2026-11-01") and found["rows"]["added"] >= 12


# ---- what is refused --------------------------------------------------------------------------------


def test_what_is_missing_is_named_with_its_fix(tmp_path, program):
    text = program.read_text()
    program.write_text(text[: text.index("evolve {")])
    with pytest.raises(SkillcError, match="no `evolve` block"):
        night(program, "2026-11-01")
    program.write_text(text.replace('"transcripts"', '"elsewhere"'))
    with pytest.raises(SkillcError, match="neither an agent nor a path"):
        night(program, "2026-11-01")
    program.write_text(text.replace("input  request", "input  ticket"))
    (program.parent / "requests.jsonl").write_text(
        (program.parent / "requests.jsonl").read_text().replace('"request"', '"ticket"')
    )
    sessions(program.parent, "one", requests(OLD, 6, 1))
    with pytest.raises(SkillcError, match="sessions give no 1 column `ticket`"):
        night(program, "2026-11-01")
    (program.parent / "skills.toml").unlink()
    with pytest.raises(SkillcError, match="has the skill `sort-requests`, so there is no version"):
        night(program, "2026-11-01")


def test_two_nights_never_run_at_once(program):
    with Ledger.of(program.parent, NAME).locked(), pytest.raises(NightRunningError, match="another night"):
        night(program, "2026-11-01")


def test_a_damaged_ledger_or_row_is_reported_and_a_cut_line_is_not(program):
    sessions(program.parent, "one", requests(OLD, 30, 1))
    night(program, "2026-11-01")
    ledger = Ledger.of(program.parent, NAME)
    before = ledger.path.read_text()
    ledger.path.write_text(before + '{"event": "beg')
    assert night(program, "2026-11-02")["night"] == 2
    assert ledger.path.read_text().startswith(before) and '"beg' not in ledger.path.read_text().replace('"began', "")
    ledger.path.write_text("nonsense\n" + ledger.path.read_text())
    with pytest.raises(SkillcError, match=r"line 1 of .* is no event"):
        night(program, "2026-11-03")
    rows = rows_file(program)
    rows.write_text("{}\n" + rows.read_text())
    ledger.path.write_text(before)
    with pytest.raises(SkillcError, match=r"line 1 of .* is no row of a night"):
        night(program, "2026-11-03")


@pytest.mark.thorough
def test_a_version_of_a_person_ends_the_challenge_of_the_old_one(program):
    folder = program.parent
    open_challenge(program)
    compiled_as(folder, *RULES, 'If the request mentions "warranty", answer returns.')
    stage(folder, NAME, ArtifactPaths(folder / "skills", NAME), by="ada")
    adopt(folder, NAME, by="ada")
    found = night(program, "2026-11-03")
    assert found["challenge"] is None or found["challenge"]["challenger"] == 2
    rollback(folder, NAME, by="ada")
    assert load_data(plan_file(program).plan, folder).train
