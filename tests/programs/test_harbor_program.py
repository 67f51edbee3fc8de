"""Harbor tasks as a program: loading a folder of tasks, and the sample."""

import json
import sys
from pathlib import Path

import pytest
from benchmark import PROGRAMS, rows, run

from programs.frame.layout import module
from programs.frame.load import load
from skillc.data.task_folders import read_task
from skillc.errors import SkillcError
from skillc.tasks.harbor.recipe import Copying, Running, read_recipe

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tasks"))
from harbor_tasks import INSTRUCTION, made

SPLITS = ("train", "validation", "test")


def test_tasks_are_copied_whole_and_those_that_cannot_be_run_are_left_out(tmp_path, capsys):
    for i in range(10):
        made(tmp_path / "from/deeper", f"t{i}")
    made(tmp_path / "from", "windows", settings='[environment]\nos = "windows"')
    for i in range(10):
        (tmp_path / f"from/deeper/t{i}/instruction.md").write_text(f"{INSTRUCTION} Case {i}.")
    assert load("harbor", tmp_path / "from", None, tmp_path / "out") == {"train": 2, "validation": 1, "test": 7}
    assert "left out: the task `windows` needs Windows" in capsys.readouterr().err
    (row,) = [json.loads(line) for line in (tmp_path / "out/data/validation.jsonl").read_text().splitlines()]
    task = read_task(tmp_path / "out/data" / row["task"])
    assert (task.name, task.instruction) == (row["id"], row["instruction"])
    assert row["difficulty"] == "easy"
    assert task.solution is not None
    assert run("check", tmp_path / "out/ours.skill", "--data")[0] == 0


def test_a_folder_without_tasks_is_refused(tmp_path):
    with pytest.raises(SkillcError, match="has no task that can be run"):
        load("harbor", tmp_path, None, tmp_path / "out")


def test_the_tasks_of_the_sample_are_what_its_rows_and_its_script_know():
    players = module("harbor", "players")
    every = [row for split in SPLITS for row in rows("harbor", split)]
    assert {row["instruction"] for row in every} == set(players._plays())
    for row in every:
        task = read_task(PROGRAMS / "harbor/data" / row["task"])
        assert task.instruction == row["instruction"]
        assert task.solution is not None
        found = read_recipe(task.dockerfile)
        assert (found.problem, found.workdir) == ("", "/app")
        assert all(isinstance(step, Copying | Running) or step.folder == "/app" for step in found.steps)


def test_every_rule_of_the_script_is_needed_in_every_split():
    players = module("harbor", "players")
    for split in SPLITS:
        plays = [players._plays()[row["instruction"]] for row in rows("harbor", split)]
        asked = {play["mistake"]["rule"] for play in plays if "mistake" in play}
        assert asked | {"gaps"} == set(players.RULES), split
