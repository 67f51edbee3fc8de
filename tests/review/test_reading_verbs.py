"""`skillc log`, `show`, `why` and `example`."""

import dataclasses
import hashlib
import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner
from made_run import make_run

from skillc.cli import skillc as verbs
from skillc.document.edits import Delete, apply_edits, edit_to_json
from skillc.document.folder import files_of
from skillc.document.skill import digest
from skillc.errors import SkillcError
from skillc.items.grid import grid_of
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Scored
from skillc.review.confidence import confidence_lines
from skillc.review.example import named_in, versions_of
from skillc.review.log import log_rows
from skillc.review.origins import ancestry, skill_lines
from skillc.review.removal import Part, removal_of
from skillc.review.run_view import other_stores, read_run
from skillc.review.selecting import find_decisions, find_example
from skillc.review.skills import _read_again, rebuilt_skills
from skillc.review.stored import AFTER, BEFORE
from skillc.review.tracing import failures_behind, part_of, read_traced
from skillc.run.folder import RunFolder, RunInfo
from skillc.run.history import linked, read_history
from skillc.store import RunStore
from skillc.tasks.kind import Skill
from skillc.text import text_width
from skillc.trajectories.trajectory import Trajectory

# Clears the screen, sets a title, rings, returns, and turns the writing direction.
CONTROLS = "\x1b[2J\x1b]0;planted\x07\r\u202e\x9b31m"


@pytest.fixture(scope="module")
def view(finished):
    return read_run(finished.program)


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished.folder, tmp_path / "run")


def run(*words, columns=80):
    done = CliRunner().invoke(verbs, [*map(str, words)], standalone_mode=False, env={"COLUMNS": str(columns)})
    if done.exception:
        raise done.exception
    return done.stdout


def skill_file(folder):
    return folder / "skills/sort-things/SKILL.md"


# ---- log ------------------------------------------------------------------------------------------


def test_each_step_has_a_row_with_what_it_paid(view):
    rows = log_rows(view)
    assert [row.place for row in rows] == [
        "start",
        *(f"step {i}/10" for i in range(1, 7)),
        "end of epoch 1",
        "end",
    ]
    assert [row.result for row in rows[1:4]] == ["accepted", "rejected", "accepted"]
    assert rows[1].change.startswith("1 added: Rule 1")
    assert rows[3].change.startswith("1 added and 1 replaced: Rule 3")
    assert rows[2].why.startswith("gate `better` failed: at best")
    assert rows[7].change.startswith("rewrote `guidance`: Guidance")
    assert sum(row.spend.calls for row in rows) == sum(each.calls for each in view.spent)
    searched = sum(each.split != "test" for each in view.examples.values())
    assert [row.spend.calls for row in rows[2:8]] == [searched] * 6
    assert {each.stage for each in view.steps[BEFORE]} == {"baseline"}
    assert {each.stage for each in view.steps[AFTER]} == {"test"}


@pytest.mark.parametrize("columns", [60, 90, 130])
def test_the_log_fits_the_terminal_and_ends_with_the_words_of_confidence(finished, view, columns):
    text = run("log", finished.program, columns=columns)
    assert max(text_width(line) for line in text.splitlines()) <= columns
    joined = " ".join(text.split())
    for words in confidence_lines(view.lock, view.plan.goal):
        assert words in joined
    assert sum("rejected" in line for line in text.splitlines()) == 3
    assert "gate `better` failed" in joined
    # From 120 columns a step is one line.
    assert next(("Rule 1" in line) for line in text.splitlines() if "accepted " in line) == (columns >= 120)


def test_the_log_as_an_object(finished):
    found = json.loads(run("log", finished.program, "--json"))
    step = found["steps"][2]
    assert (step["place"], step["decision"], step["result"], step["after"]) == ("step 2/10", 2, "rejected", [0.1, 0.3])
    assert step["spent"]["calls"] > 0
    assert (found["verdict"], found["delivered"], found["missing"]) == ("improved", True, [])


def test_a_store_of_an_earlier_version_has_no_spend_by_step(copied):
    (database,) = (copied / ".skillc/runs").glob("*/run.db")
    connection = sqlite3.connect(database)
    connection.execute("DROP TABLE marks")
    connection.commit()
    connection.close()
    found = read_run(copied / "things.skill")
    assert (found.steps, found.spent is not None) == (None, True)
    assert "without what each step spent" in found.missing[0]
    assert all(row.spend is None for row in log_rows(found))


# ---- show -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["2", "step 2/10", "2/10", "#2", "decision 2"])
def test_a_step_is_found_by_its_number_and_its_place(view, name):
    (found,) = find_decisions(view, name)
    assert found.number == 2


def test_a_step_is_found_by_its_candidate_and_is_the_last_one_by_default(view):
    wanted = view.decisions[3]
    assert find_decisions(view, wanted.candidate[:10]) == (wanted,)
    assert find_decisions(view, "end of epoch 1") == find_decisions(view, None) == (view.decisions[-1],)
    with pytest.raises(SkillcError, match="has no step `99`"):
        find_decisions(view, "99")


def test_show_has_edits_gates_credit_and_spend(finished, view):
    text = run("show", finished.program, "3")
    assert "step 3/10, decision 3  accepted: all gates hold" in text
    assert "✓ better: holds" in text
    assert f"replace {view.decisions[2].edits[1].rule}" in text
    assert "+ Instead 3 ." in text
    assert "- Rule 1" in text
    assert "screen, alone on training examples: cured 1 of 1" in text
    assert "on validation: cured 1, broke 0 (cured `" in text
    assert "screened out" in text
    assert "changes on validation that belong to no single edit: cured 1" in text
    assert "target  gate" in text
    rejected = run("show", finished.program, "2", columns=60)
    assert "✗ better: fails" in rejected
    assert "? compact: open  tokens(candidate) <= 60_000" in rejected
    assert "35 % to 81.25 %" in rejected
    assert max(map(text_width, rejected.splitlines())) <= 60
    assert "rewrite" not in run("show", finished.program)
    assert "+ Guidance" in run("show", finished.program)


def test_show_as_an_object(finished, view):
    (decision,) = json.loads(run("show", finished.program, "2", "--json"))["decisions"]
    assert [each["value"] for each in decision["gates"]] == ["false", "unknown"]
    assert decision["gates"][0]["drawn"].endswith("35 % to 81.25 %")
    assert decision["edits"][0]["edit"]["op"] == "add"
    assert decision["total"]["calls"] == sum(each["calls"] for each in decision["spent"])


# ---- why ------------------------------------------------------------------------------------------


def traced(folder, place="things.skill"):
    return read_traced(str(folder / place))[1]


def test_every_line_has_its_writer(finished, view):
    lines = traced(finished.folder)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert [line.text for line in lines] == skill_file(finished.folder).read_text().splitlines()
    by = {line.text: line for line in lines}
    assert (by["You sort texts."].by, by["You sort texts."].compiled.part) == ("the program", "frozen section `role`")
    assert by["You sort texts."].place == ""
    assert by["# Sort things"].compiled.part == "title"
    assert by["---"].compiled.part == "frontmatter"
    assert by["## Rules"].origin.decision.place == "step 1/10"
    assert by["## Guidance"].origin.decision.place == "end of epoch 1"
    assert by[""].by == "nobody"
    instead = next(line for line in lines if "Instead 3" in line.text)
    assert (instead.by, instead.origin.decision.place) == ("a step", "step 3/10")
    failure = failures_behind(view, instead.origin)[0]
    assert failure.id == view.decisions[2].edits[1].cures[0]
    assert failure.right in ("fruit", "tool", "animal")
    assert failure.answer


def test_lines_are_numbered_as_in_the_file_when_it_was_edited_by_hand(copied):
    path = skill_file(copied)
    before = path.read_text().splitlines()
    at = next(i for i, line in enumerate(before) if "Rule 5" in line)
    edited = [*before[:at], "- A rule by hand.", before[at].replace("word3", "WORD"), *before[at + 1 :]]
    edited.insert(1, "license: mine")
    path.write_bytes("\r\n".join([*edited, ""]).encode())
    lines = traced(copied, "skills/sort-things/SKILL.md")
    assert [line.text for line in lines] == edited
    hand = [line for line in lines if line.by == "hand"]
    assert [line.text for line in hand] == ["license: mine", "- A rule by hand.", edited[at + 2]]
    assert [line.compiled is not None for line in hand] == [False, False, True]
    assert hand[2].origin.decision.place == "step 5/10"
    others = {line.text: line.by for line in lines}
    assert others[before[at - 1]] == "a step"
    text = run("why", f"{path}:{at + 2}", columns=60)
    assert "by hand after the compile" in text
    assert "no results at hand: nothing has measured it" in " ".join(text.split())
    changed = " ".join(run("why", f"{path}:{at + 3}", "--json").split())
    assert '"written_by": "hand"' in changed
    blamed = run("why", path).splitlines()
    assert f"by hand         {at + 2:>2}  - A rule by hand." in blamed


def test_a_line_says_what_is_known_without_it(finished, view):
    lines = traced(finished.folder)
    number = next(line.number for line in lines if "Instead 3" in line.text)
    text = " ".join(run("why", f"{skill_file(finished.folder)}:{number}").split())
    assert "step 3/10, decision 3 of run abababab: accepted, all gates hold" in text
    assert "failures it was written for 1 training example" in text
    assert "validation (selected on):" in text
    assert "with the 1 other edit of the step" in text
    assert "before step 1/10: Rule 1" in text
    assert "This is an association, not a test" in text
    assert "noise floor: measured again, 3 of 10" in text
    frozen = next(line.number for line in lines if line.text == "You sort texts.")
    assert "it is frozen, so no step has left it out" in run("why", f"{finished.program}:{frozen}")
    with pytest.raises(SkillcError, match="has no line 999"):
        run("why", f"{finished.program}:999")


def test_removal_is_known_where_one_skill_differs_in_the_rule_alone(finished, view, copied):
    child = view.skills[view.decisions[0].candidate]
    part = Part("rules", child.rules[0].text)
    (found,) = removal_of(view, part, None, view.best).comparisons
    flips = {
        name: tuple(view.outcome(skill, name).cells["correct"] for skill in (view.initial, view.decisions[0].candidate))
        for name, each in view.examples.items()
        if each.split == "validation"
    }
    scored = [[cell.value for cell in cells] for cells in flips.values() if all(hasattr(c, "value") for c in cells)]
    assert (found.other, found.n) == ("nothing", len(scored))
    assert (found.lost, found.won) == (sum(a < b for a, b in scored), sum(a > b for a, b in scored))
    shutil.rmtree(copied / ".skillc")
    clone = read_run(copied / "things.skill")
    (recorded,) = removal_of(clone, part, None, clone.best).comparisons
    assert (recorded.lost, recorded.won, recorded.place) == (2, 1, "step 1/10")
    unknown = removal_of(clone, Part("rules", "no such rule"), None, clone.best)
    assert not unknown.is_known


def test_what_another_run_measured_without_a_rule_is_a_result_at_hand(finished, copied):
    view = read_run(finished.program)
    best = view.skills[view.best]
    rule = next(each for each in best.rules if each.text.startswith("Rule 5"))
    without = apply_edits(best, [Delete(rule.id)]).document
    other = RunFolder(copied / ".skillc", "ef" * 32)
    other.path.mkdir()
    other.write(RunInfo("things.skill", {}, finished=True))
    validation = [name for name, each in view.examples.items() if each.split == "validation"]
    with closing(RunStore(other.path / "run.db")) as store:
        for skill, score in ((best, MICRO), (without, 0)):
            for name in validation:
                key = json.dumps(
                    ["rollout", Skill.of(skill).digest(view.plan.skill.load), name, 0], separators=(",", ":")
                )
                outcome = Outcome({"correct": Scored(score)}, Trajectory(), "")
                store.add_outcome(hashlib.sha256(key.encode()).digest(), outcome.to_json(), [])
    found = read_run(copied / "things.skill")
    measured, *_ = removal_of(found, Part("rules", rule.text), None, found.best, other_stores(found)).comparisons
    assert (measured.place, measured.lost, measured.won) == ("run efefefef", len(validation), 0)
    assert measured.change == -1
    number = next(line.number for line in traced(copied) if "Rule 5" in line.text)
    text = " ".join(run("why", f"{copied / 'things.skill'}:{number}").split())
    assert "measured in run efefefef: without it -100.0 points" in text
    assert "association" not in text


def test_a_step_that_left_a_rule_out_is_a_result_at_hand(finished, copied):
    """As a tidying, which reads the rules from SKILL.md, and so gives them other ids."""
    best = _read_again(read_run(finished.program).skills[digest(finished.best)])
    rule = next(each for each in best.rules if each.text.startswith("Rule 5"))
    edit = Delete(rule.id)
    after = apply_edits(best, [edit]).document
    line = {
        "decision": 1,
        "place": "tidy 1",
        "kind": "tidy",
        "result": "accept",
        "reason": "all gates hold",
        "incumbent": digest(best),
        "candidate": digest(after),
        "edits": [{**edit_to_json(edit), "rule": rule.id}],
        "gains": 1,
        "losses": 0,
        "evaluated": 24,
        "of": 24,
        "goal": {"incumbent": "0.5", "candidate": "0.541667"},
    }
    history = copied / "skills/sort-things.history.jsonl"
    more = linked("cd" * 32, [line])
    history.write_text(history.read_text() + "".join(json.dumps(each) + "\n" for each in more))
    (copied / "skills/sort-things.lock").unlink()
    for name, content in files_of(after).items():
        (copied / "skills/sort-things" / name).write_bytes(content)
    found = read_run(copied / "things.skill", "cdcd")
    assert found.best in found.skills
    assert [each.place for each in ancestry(found, found.best)][-2:] == ["end of epoch 1", "tidy 1"]
    # A lock names the initial skill of the program, which the final test compares with.
    locked = dataclasses.replace(found, initial=read_run(finished.program).initial)
    assert ancestry(locked, found.best) == ancestry(found, found.best)
    places = {each.origin.decision.place for each in skill_lines(found, found.best) if each.origin is not None}
    assert places == {"step 1/10", "step 3/10", "end of epoch 1"}
    (left_out,) = removal_of(found, Part("rules", rule.text), None, found.best).comparisons[:1]
    assert (left_out.place, left_out.lost, left_out.won, left_out.n) == ("tidy 1", 0, 1, 24)


def test_lines_of_a_changed_program_are_found_by_their_text_or_are_not_known(copied):
    program = copied / "things.skill"
    program.write_text(program.read_text().replace("You sort texts.", "You sort."))
    lines = {line.text: line for line in traced(copied)}
    rule = next(line for text, line in lines.items() if "Rule 5" in text)
    assert (rule.by, rule.origin.decision.place) == ("a step", "step 5/10")
    assert lines["You sort texts."].by == "unknown"
    number = lines["You sort texts."].number
    assert "not known: neither the program nor an accepted edit" in " ".join(run("why", f"{program}:{number}").split())


def test_a_skill_that_was_not_delivered_is_traced_by_its_own_run(copied):
    shutil.copytree(copied / "skills", copied / "skills.candidate")
    lock = copied / "skills.candidate/sort-things.lock"
    lock.write_text(lock.read_text().replace("ab" * 32, "cd" * 32))
    delivered = read_traced(str(skill_file(copied)))[0]
    assert (delivered.run, delivered.delivered, delivered.lock is not None) == ("ab" * 32, True, True)
    other = read_traced(str(copied / "skills.candidate/sort-things/SKILL.md"))[0]
    assert (other.run, other.delivered) == ("cd" * 32, False)


# ---- example --------------------------------------------------------------------------------------


def test_an_example_is_found_by_id_line_and_beginning(view):
    assert find_example(view, "x17")[0] == "x17"
    assert find_example(view, "18")[0] == "x17"
    assert find_example(view, "things.jsonl:18")[0] == "x17"
    with pytest.raises(SkillcError, match="names 60 examples"):
        find_example(view, "x")
    with pytest.raises(SkillcError, match="has no example `y`"):
        find_example(view, "y")


def test_an_example_has_the_marks_of_the_grid(view):
    grid = grid_of(view.items, "validation", "correct")
    for row in grid.rows[:6]:
        versions = versions_of(view, row.item.id)
        kept = [each.mark for each in versions if each.skill in view.versions]
        assert kept == list(row.marks)
        assert any(each.result == "rejected" for each in versions)


def test_an_example_names_its_edits_and_what_changed_it(finished, view):
    name = view.decisions[0].edits[0].credit.cured_ids[0]
    assert {each.roles for each in named_in(view, name)} == {("credited with curing it",)}
    changed = [(row.item.id, i) for row in grid_of(view.items, "validation", "correct").rows for i in [row.flips] if i]
    text = run("example", finished.program, changed[0][0], columns=60)
    assert "changed " in text
    assert "right kind" in text
    assert max(map(text_width, text.splitlines())) <= 60
    full = run("example", finished.program, changed[0][0], "--full")
    assert "It is a tool." in full
    found = json.loads(run("example", finished.program, changed[0][0], "--json"))
    assert found["split"] == "validation"
    assert any(each["changed"] for each in found["versions"])


def test_an_unmeasured_example_is_not_wrong(finished, view):
    lost = next(name for name in view.examples if any(each.mark == "unmeasured" for each in versions_of(view, name)))
    text = run("example", finished.program, lost)
    assert "? unmeasured" in text
    assert "transport" in text


def test_a_clone_says_what_is_missing(copied):
    shutil.rmtree(copied / ".skillc")
    program = copied / "things.skill"
    view = read_run(program)
    name = view.decisions[0].edits[0].credit.cured_ids[0]
    found = " ".join(run("example", program, name).split())
    assert "credited with curing it" in found
    for text in (found, *(" ".join(run(*words).split()) for words in (("log", program), ("show", program, "1")))):
        assert "missing: the run was not recorded on this machine" in text
    assert "missing:" in run("why", f"{program}:17")
    lines = [line for line in traced(copied) if "Instead 3" in line.text]
    assert part_of(view, lines[0]) is not None


def test_a_run_that_has_only_begun_is_shown(copied):
    for path in (copied / "skills").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (database,) = (copied / ".skillc/runs").glob("*/run.db")
    connection = sqlite3.connect(database)
    connection.executescript("DELETE FROM decisions WHERE number > 3; DELETE FROM marks WHERE decision > 3;")
    connection.close()
    program = copied / "things.skill"
    found = read_run(program)
    assert [each.number for each in found.decisions] == [1, 2]
    text = " ".join(run("log", program).split())
    assert "no verdict yet, 2 decisions, 1 accepted" in text
    assert "no verdict: test (held out)" in text
    assert "step 1/10" in run("why", program)
    connection = sqlite3.connect(database)
    connection.executescript("DELETE FROM decisions; DELETE FROM marks;")
    connection.close()
    with pytest.raises(SkillcError, match="has no decision yet"):
        run("show", program)
    assert "start" in run("log", program)


# ---- hostile texts --------------------------------------------------------------------------------


def test_no_control_character_of_data_or_models_reaches_a_terminal(tmp_path):
    made = make_run(tmp_path / "run", steps=3, examples=30, markup=CONTROLS, words=2)
    view = read_run(made.program)
    name = next(each for each, placed in view.examples.items() if placed.split == "validation")
    texts = [
        run("log", made.program, columns=60),
        run("show", made.program, "2", columns=60),
        run("show", made.program, "3"),
        run("why", made.program),
        *(run("why", f"{made.program}:{line.number}") for line in traced(made.folder) if "Rule" in line.text),
        run("example", made.program, name, "--full", columns=60),
        run("history", made.program),
    ]
    for text in texts:
        assert not set(text) & {"\x1b", "\x07", "\r", "\u202e", "\x9b"}
    assert "planted" in "".join(texts)
    assert rebuilt_skills(view.decisions, made.initial)
    assert read_history(made.paths.history)
