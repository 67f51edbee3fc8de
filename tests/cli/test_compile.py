import json
import shutil
import sys

from conftest_cli import PROGRAM, rows, skillc

import skillc as package


def test_the_summary_has_what_it_promises(compiled):
    folder, summary, _ = compiled
    assert summary["verdict"] == "improved"
    for arm in ("none", "initial", "best"):
        assert summary["test"][arm]["n"] > 0
        assert 0 <= summary["test"][arm]["mean"] <= 1
    assert summary["test"]["gain"] >= 0.25
    low, high = summary["test"]["interval"]
    assert 0 < low <= summary["test"]["gain"] <= high
    assert summary["test"]["p"] <= 0.05
    assert summary["stopped"]
    assert summary["spent"]["charged"]["total"]["calls"] > 0
    assert (folder / summary["artifact"]).read_text().startswith("---\nname: ")


def test_the_lock_holds_the_same_verdict_and_test(compiled):
    folder, summary, _ = compiled
    lock = json.loads((folder / "skills/sort-things.lock").read_text())
    assert lock["verdict"] == summary["verdict"]
    assert lock["test"] == summary["test"]
    assert len(lock["looks"]) == 1


def test_progress_goes_to_standard_error_only(compiled):
    _, _, done = compiled
    assert done.stdout.startswith("{")
    assert "accept" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_run_from_a_clean_cache_gives_the_same_bytes(compiled, tmp_path):
    folder, _, _ = compiled
    for name in ("things.skill", "things.jsonl"):
        shutil.copy(folder / name, tmp_path)
    done = skillc("compile", "things.skill", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("sort-things/SKILL.md", "sort-things.lock", "sort-things.history.jsonl", "sort_things.py"):
        ours, theirs = (f / "skills" / name for f in (tmp_path, folder))
        assert ours.read_bytes() == theirs.read_bytes(), name


def test_compiling_again_is_the_same_look_and_the_same_bytes(compiled, tmp_path):
    folder, _, _ = compiled
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    done = skillc("compile", "things.skill", folder=again)
    assert done.returncode == 0, done.stderr
    for name in ("sort-things/SKILL.md", "sort-things.lock", "sort-things.history.jsonl"):
        assert (again / "skills" / name).read_bytes() == (folder / "skills" / name).read_bytes()


def test_the_artifact_is_plain_markdown(compiled):
    """It holds no id, no rationale, no comment for us, and needs no skillc."""
    folder, _, _ = compiled
    text = (folder / "skills/sort-things/SKILL.md").read_text()
    history = [json.loads(line) for line in (folder / "skills/sort-things.history.jsonl").read_text().splitlines()]
    rules = {edit["rule"] for line in history for edit in line.get("edits", []) if edit.get("rule")}
    assert rules
    assert not any(rule in text for rule in rules)
    assert "skillc" not in text
    assert "<!--" not in text


def test_every_decision_is_in_the_history(compiled):
    folder, summary, _ = compiled
    history = [json.loads(line) for line in (folder / "skills/sort-things.history.jsonl").read_text().splitlines()]
    assert len(history) == summary["decisions"]
    assert [line["decision"] for line in history] == list(range(1, len(history) + 1))
    assert sum(line["result"] == "accept" for line in history) == summary["accepted"]
    assert all(edit["rationale"] for line in history for edit in line.get("edits", []))


def test_the_compiled_skill_loads_as_a_module(compiled):
    folder, _, _ = compiled
    route = package.load(folder / "things.skill")
    right = [route(text=row["text"]).kind == row["kind"] for row in rows()]
    assert sum(right) >= 0.75 * len(right)


def test_the_emitted_module_works_without_skillc(compiled, tmp_path):
    folder, _, _ = compiled
    code = (
        "import sys; sys.modules['skillc'] = None\n"
        f"sys.path.insert(0, {str(folder / 'skills')!r})\n"
        "import sort_things\n"
        "assert 'rules' in sort_things.program.answer.signature.instructions.lower()\n"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_requirement_that_is_not_met_is_status_1(shop):
    hard = PROGRAM.replace("budget { epochs = 2; patience = 6 steps }", "budget { steps = 1 }").replace(
        "gate compact = tokens(candidate) <= 500 tokens", "gate compact = candidate.correct >= 99%"
    )
    (shop / "things.skill").write_text(hard)
    done = skillc("compile", "things.skill", "--require", "improved", folder=shop)
    assert done.returncode == 1, done.stderr
    assert "no significant gain" in done.stdout


def test_a_run_that_a_cap_stops_is_status_3_and_the_cap_holds(shop):
    done = skillc("compile", "things.skill", "--set", "budget.calls=240", "--json", folder=shop)
    assert done.returncode == 3, done.stderr
    summary = json.loads(done.stdout)
    assert summary["stopped"].startswith("calls after decision")
    assert summary["spent"]["charged"]["total"]["calls"] <= 240
    assert (shop / "skills/sort-things/SKILL.md").exists()


def test_a_stopped_run_is_a_prefix_of_the_unstopped_one(compiled, shop):
    folder, _, _ = compiled
    skillc("compile", "things.skill", "--set", "budget.calls=240", folder=shop)
    whole, part = ((f / "skills/sort-things.history.jsonl").read_text().splitlines() for f in (folder, shop))
    drop = [json.loads(line) for line in part]
    full = [json.loads(line) for line in whole][: len(drop)]
    assert drop
    assert drop == full


def test_a_budget_that_cannot_pay_is_an_error_before_anything_is_spent(shop):
    done = skillc("compile", "things.skill", "--set", "budget.calls=50", folder=shop)
    assert done.returncode == 2
    assert "SK501" in done.stderr
    assert not (shop / ".skillc").exists()


def test_a_skill_of_someone_else_is_not_overwritten(shop):
    (shop / "skills/sort-things").mkdir(parents=True)
    (shop / "skills/sort-things/SKILL.md").write_text("mine")
    done = skillc("compile", "things.skill", folder=shop)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert (shop / "skills/sort-things/SKILL.md").read_text() == "mine"
