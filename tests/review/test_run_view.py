"""Reading a run: decisions, texts, rollouts, charges, and what is missing."""

import json
import os
import shutil
from fractions import Fraction

import pytest
from made_run import MARKUP, make_run

from skillc.document.edits import Add, apply_edits, edit_to_json, rewrite
from skillc.document.skill import digest
from skillc.errors import SkillcError
from skillc.optimize.description import description_of, with_description
from skillc.outcomes import Scored
from skillc.review.confidence import NO_LOCK, confidence_lines
from skillc.review.curve import curve_of
from skillc.review.decisions import decisions_of
from skillc.review.origins import lineage, skill_lines
from skillc.review.run_view import read_run
from skillc.review.saved import saved_by
from skillc.review.skills import rebuilt_skills
from skillc.run.history import linked
from skillc.store import RunStore


@pytest.fixture(scope="module")
def view(finished):
    return read_run(finished.program)


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the run that a test may change."""
    return shutil.copytree(finished.folder, tmp_path / "run")


def test_every_skill_is_rebuilt_and_has_its_digest(view, finished):
    assert view.missing == ()
    names = {finished.decisions[0]["incumbent"], *(each["candidate"] for each in finished.decisions)}
    assert names == set(view.skills)
    assert all(digest(document) == name for name, document in view.skills.items())
    assert view.skills[view.best] == finished.best


def test_decisions_are_typed_with_gates_edits_and_fates(view):
    first, second, third = view.decisions[:3]
    assert (first.number, first.place, first.result) == (1, "step 1/10", "accepted")
    (edit,) = first.edits
    assert edit.words.startswith("add to rules: Rule 1")
    assert (edit.fate, edit.credit.cured, edit.screen.counts.strip()) == ("accepted", 1, "cured 1 of 1")
    assert [each.fate for each in first.others] == ["screened out"]
    assert second.result == "rejected"
    assert (second.goal.exact, second.goal.low) == (False, Fraction("0.1"))
    assert [(gate.name, gate.truth, bool(gate.drawn)) for gate in second.gates] == [
        ("better", "false", True),
        ("compact", "unknown", False),
    ]
    assert len(third.edits) == 2


def test_outcomes_are_found_by_skill_and_example(view, finished):
    validation = [name for name, each in view.examples.items() if each.split == "validation"]
    found = view.outcome(view.best, validation[1])
    assert isinstance(found.cells["correct"], Scored)
    assert found.trajectory.steps[0].text.startswith("I look 1 under")
    assert view.outcome("none", validation[1]).trajectory != found.trajectory
    assert view.outcome(view.best, "unknown") is None


def test_items_are_collected_from_the_store_where_no_record_of_them_is(view, copied):
    (record,) = (copied / ".skillc/runs").glob("*/items.json")
    record.unlink()
    found = read_run(copied / "things.skill")
    assert found.missing == ()
    assert found.items == view.items


def test_charges_are_summed_by_role_and_stage(view):
    stages = {each.stage: each for each in view.spent}
    assert set(stages) == {"baseline", "rollout", "gate", "test"}
    gate = stages["gate"]
    cells = 9 * 12
    skills = len(view.skills) - 1
    assert (gate.calls, gate.sent) == (skills * sum(1 for e in view.examples.values() if e.split == "validation"), 1)
    assert gate.cost == gate.calls * 2000
    assert 0 < gate.seconds <= gate.calls * 0.5 <= cells * 10


def test_means_are_those_of_the_history_and_intervals_those_of_the_cells(view):
    curve = curve_of(view)
    assert len(curve.points) == len(view.decisions) + 1
    accepted = [point for point in curve.points[1:] if point.changed]
    assert accepted
    for point in accepted:
        mean = point.decision.completed
        if mean.exact:
            assert point.incumbent.mean == mean.low
            low, high = point.incumbent.interval
            assert low < mean.low < high
        else:
            assert point.incumbent.n < point.incumbent.of
    assert any(point.decision.completed.exact for point in accepted)
    assert [each.mean for each in curve.held_out] == [Fraction(3, 10), Fraction(6, 10)]
    assert curve.points[2].candidate == view.decisions[1].goal
    assert curve.points[1].candidate is None


def test_an_interval_is_left_out_where_the_cells_are_not_those_that_were_decided_on(copied):
    history = copied / "skills/sort-things.history.jsonl"
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    lines[0]["completed"] = "0.111111"
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    point = curve_of(read_run(copied / "things.skill")).points[1]
    assert (point.incumbent.mean, point.incumbent.interval) == (Fraction("0.111111"), None)


def test_each_line_has_the_decision_that_wrote_it(view):
    lines = skill_lines(view, view.best)
    assert [line.number for line in lines if line.file == "SKILL.md"] == list(range(1, len(lines) + 1))
    by_text = {line.text: line.origin for line in lines}
    assert by_text["You sort texts."] is None
    ((replaced, origin),) = [(t, o) for t, o in by_text.items() if "Instead 3" in t]
    assert replaced.startswith("- ")
    assert (origin.decision.place, origin.edit.rationale) == ("step 3/10", "shorter")
    assert [place for _, place in origin.before] == ["step 1/10"]
    guidance = next(o for t, o in by_text.items() if t.startswith("Guidance"))
    assert (guidance.decision.kind, guidance.edit) == ("slow update", None)
    assert [each.place for each in lineage(view, view.best)] == [
        "step 1/10",
        "step 3/10",
        "step 5/10",
        "end of epoch 1",
    ]


def test_what_was_not_paid_for_is_counted(view):
    saved = saved_by(view)
    of = view.decisions[0].of
    assert (saved.decided_early, saved.early) == (3, 3 * (of - of // 2))
    assert (saved.steps, saved.planned) == (4, 10)
    assert saved.calls > 0


def test_the_words_of_confidence_come_from_the_lock(view):
    assert confidence_lines(view.lock, view.plan.goal) == (
        "gain +30.0 points on test (held out), 95 % interval +10.0 to +40.0, 25 pairs in 25 groups",
        "look 1 at this test split, tested at level 0.05: p = 0.001",
        "smallest detectable gain: 10.0 points (80 % power)",
        "noise floor: measured again, 3 of 10 validation examples score differently; "
        "a gain below 4.0 points is within it",
    )


def test_a_fresh_clone_has_texts_but_neither_cells_nor_charges(copied):
    shutil.rmtree(copied / ".skillc")
    found = read_run(copied / "skills/sort-things")
    assert found.outcomes is None
    assert found.spent is None
    assert found.best in found.skills
    (missing,) = found.missing
    assert "not recorded on this machine" in missing
    curve = curve_of(found)
    known = [point.incumbent for point in curve.points if point.incumbent is not None]
    assert known
    assert all(each.interval is None for each in known)
    assert saved_by(found).calls is None


def test_a_trained_description_is_rebuilt_and_makes_a_skill(view):
    first = view.skills[view.initial]
    before = description_of(first)
    edit = Add("about", "Leave it closed for birds.")
    after = apply_edits(before, [edit]).document
    described = with_description(first, after)
    row = {"edits": [edit_to_json(edit)], "trains": "about", "result": "accept", "decision": 1}
    (decision,) = decisions_of([{**row, "incumbent": digest(before), "candidate": digest(after)}])
    skills = rebuilt_skills([decision], first)
    assert set(skills) == {digest(each) for each in (first, before, after, described)}
    assert described.about == "Say what kind of thing a text is about. Leave it closed for birds."


def test_sections_of_another_method_are_rebuilt(view):
    first = view.skills[view.initial]
    made = rewrite(first, "rules", "- If it purrs, answer animal.").document
    row = {"sections": {"rules": "- If it purrs, answer animal."}, "result": "accept", "decision": 1}
    (decision,) = decisions_of([{**row, "incumbent": digest(first), "candidate": digest(made)}])
    assert rebuilt_skills([decision], first) == {digest(first): first, digest(made): made}


def test_a_changed_program_leaves_texts_out_and_says_so(copied):
    program = copied / "things.skill"
    program.write_text(program.read_text().replace("You sort texts.", "You sort."))
    (copied / "skills/sort-things/SKILL.md").unlink()
    found = read_run(program)
    assert found.skills.keys() & {found.initial, found.best} == set()
    assert any("the program changed" in each for each in found.missing)
    assert any("cannot be rebuilt" in each for each in found.missing)
    assert skill_lines(found, found.best) == ()


def test_the_compiled_text_is_known_even_if_the_program_changed(copied):
    program = copied / "things.skill"
    program.write_text(program.read_text().replace("batch = 12", "batch = 24"))
    found = read_run(program)
    assert found.best in found.skills


def test_an_edit_that_was_changed_in_the_history_is_not_believed(copied):
    history = copied / "skills/sort-things.history.jsonl"
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    lines[1]["edits"][0]["text"] = "another text"
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = read_run(copied / "things.skill")
    assert lines[1]["candidate"] not in found.skills
    assert any("not the one that the lock names" in each for each in found.missing)


def test_changed_data_shows_no_example(copied):
    rows = (copied / "things.jsonl").read_text().splitlines()
    (copied / "things.jsonl").write_text("\n".join(rows[:-1]) + "\n")
    found = read_run(copied / "things.skill")
    assert found.examples == {}
    assert any("the data changed" in each for each in found.missing)


def test_a_run_is_read_while_it_is_open_and_before_it_has_a_lock(copied):
    for path in (copied / "skills").glob("*.lock"):
        path.unlink()
    (database,) = (copied / ".skillc/runs").glob("*/run.db")
    store = RunStore(database)
    try:
        found = read_run(copied / "things.skill")
    finally:
        store.close()
    assert found.lock is None
    assert [each.completed is not None for each in found.decisions[:2]] == [True, False]
    assert len(found.outcomes) > 0
    assert found.missing == ()
    assert confidence_lines(None, found.plan.goal) == (NO_LOCK,)


def test_a_program_that_was_never_compiled_is_an_error(copied):
    shutil.rmtree(copied / ".skillc")
    shutil.rmtree(copied / "skills")
    with pytest.raises(SkillcError, match="was never compiled"):
        read_run(copied / "things.skill")


def test_another_run_is_read_by_the_beginning_of_its_id(copied):
    history = copied / "skills/sort-things.history.jsonl"
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    other = linked("cd" * 32, [{k: v for k, v in line.items() if k not in ("run", "link")} for line in lines[:2]])
    history.write_text(history.read_text() + "".join(json.dumps(line) + "\n" for line in other))
    found = read_run(copied / "things.skill", "cdcd")
    assert (found.run, found.lock, len(found.decisions), found.outcomes) == ("cd" * 32, None, 2, None)
    assert read_run(copied / "things.skill", "abab").lock is not None
    assert len(read_run(copied / "things.skill").decisions) == len(lines)
    with pytest.raises(SkillcError, match="has no run `ee`"):
        read_run(copied / "things.skill", "ee")


def test_a_run_that_began_after_the_lock_is_named(copied):
    (folder,) = (copied / ".skillc/runs").iterdir()
    later = shutil.copytree(folder, folder.with_name("f" * 16))
    info = later / "run.json"
    info.write_text(info.read_text().replace('"finished": true', '"finished": false'))
    os.utime(info, (2_000_000_000, 2_000_000_000))
    (missing,) = read_run(copied / "things.skill").missing
    assert missing == "run `ffffffff` began later and has not ended: `--run ffffffff` shows it"
    assert read_run(copied / "things.skill", "ffffffff").lock is None


def test_a_damaged_store_is_an_error_with_a_way_out(copied):
    (database,) = (copied / ".skillc/runs").glob("*/run.db")
    database.write_bytes(b"SQLite format 3\0" + bytes(4000))
    with pytest.raises(SkillcError, match=r"cannot be read|has format"):
        read_run(copied / "things.skill")


def test_markup_in_every_text_changes_nothing_of_what_is_read(tmp_path):
    made = make_run(tmp_path / "run", steps=3, examples=30, markup=MARKUP)
    found = read_run(made.program)
    assert found.missing == ()
    assert found.best in found.skills
