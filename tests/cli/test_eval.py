"""`skillc eval` as a user types it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import forked
import pytest
from conftest_cli import PROGRAM, ROOT, skillc

SLOW = """
import os, time
from skillc.models.rulebook import answer

def slow(messages, model, parameters):
    with open("asked", "a") as file:
        file.write("x")
    if os.path.exists("slowly"):
        time.sleep(0.1)
    return answer(messages)
"""
Compiled = tuple[Path, Any, Any]


def test_the_table_fits_eighty_columns_and_progress_goes_elsewhere(compiled: Compiled) -> None:
    done = skillc("eval", "things.skill", folder=compiled[0], env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    # Scores, and below them wins and tokens.
    for name, rows in (("no skill", 2), ("initial skill", 2), ("compiled skill", 2), ("keywords", 1)):
        assert sum(line.startswith(name) for line in lines) == rows
    assert "at most" in done.stderr
    assert "at most" not in done.stdout


def test_json_has_what_it_promises(compiled: Compiled, tmp_path: Path) -> None:
    mine = tmp_path / "mine.md"
    mine.write_text("Answer tool.\n")
    done = skillc("eval", "things.skill", "--json", "--skill", mine, folder=compiled[0])
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["format_version"] == 1
    assert (told["split"], told["selected_on"], told["reference"], told["stopped"]) == (
        *("validation", True, "initial", None),
    )
    assert told["compiled_with"] == {"model": "rulebook/v1", "parameters": {}}
    (model,) = told["models"]
    assert model["compiled_with"] is True
    assert [each["skill"] for each in model["skills"]] == ["none", "initial", "compiled", str(mine)]
    for each in model["skills"]:
        assert each["n"] == each["calls"] == told["examples"]
        assert each["interval"][0] <= each["mean"] <= each["interval"][1]
        assert (each["unmeasured"], each["not_run"], each["cost_nano"]) == ({}, 0, 0)
        assert each["tokens"] > 0
    assert [each["skill"] for each in model["pairs"]] == ["none", "compiled", str(mine)]
    for each in model["pairs"]:
        assert each["interval"][0] <= each["gain"] <= each["interval"][1]
        assert 0 < each["p"] <= 1
        assert each["verdict"] is None
    assert told["spent"]["charged"]["total"]["calls"] == 4 * told["examples"]


def test_a_look_is_announced_and_counted(compiled: Compiled, tmp_path: Path) -> None:
    folder = tmp_path / "things"
    shutil.copytree(compiled[0], folder)
    done = skillc("eval", "things.skill", "--split", "test", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "2 looks at the test split, 1 of them new; the lock has 1" in done.stderr
    assert len(json.loads((folder / "skills/sort-things.lock").read_text())["looks"]) == 2
    assert "verdict   improved   compiled skill against initial skill (look 1" in done.stdout
    # What a compile says afterwards stands on the looks that there were.
    again = skillc("compile", "things.skill", "--json", folder=folder)
    assert json.loads(again.stdout)["test"]["look"] == 1
    assert len(json.loads((folder / "skills/sort-things.lock").read_text())["looks"]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--split", "tests"), "validation"),
        (("--skill", "gone.md"), "gone.md"),
        (("--model", "targte"), "target"),
        (("--model", "hosted_vllm/x"), "--model other"),
        (("--model", "target", "--model", "target=rulebook/v2"), "rulebook/v2"),
        (("--without", "best"), "compiled"),
        (("--samples", "0"), "--samples"),
        (("--set", "budget.cots=1"), "budget.cost"),
        (("--split", "test"), "compile the program first"),
    ],
)
def test_a_users_mistake_is_a_message_and_status_2(shop: Path, arguments: tuple[str, ...], said: str) -> None:
    done = skillc("eval", "things.skill", *arguments, folder=shop)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cap_is_status_3(shop: Path) -> None:
    # More than what the examples take at least, less than what the last calls reserve at worst.
    done = skillc("eval", "things.skill", "--json", "--set", "budget.tokens=16k", folder=shop)
    assert done.returncode == 3, done.stderr
    told = json.loads(done.stdout)
    assert told["stopped"] == "tokens"
    assert told["spent"]["charged"]["total"]["tokens"] <= 16_000
    assert (shop / ".skillc/.gitignore").read_text() == "*\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_ctrl_c_is_status_130_and_the_same_command_asks_for_the_rest(shop: Path) -> None:
    (shop / "mine.py").write_text(SLOW)
    own = 'model target = "own/slow" { backend = python("mine:slow"); concurrency = 2 }'
    (shop / "things.skill").write_text(PROGRAM.replace('model target    = "rulebook/v1"', own))
    (shop / "slowly").touch()
    asked = shop / "asked"
    command = [*forked.command(), "eval", "things.skill", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, cwd=shop, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    while not asked.exists() or asked.stat().st_size < 5:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    told = json.loads(out)
    assert told["stopped"] == "interrupted"
    kept = sum(each["n"] for each in told["models"][0]["skills"])
    assert 0 < kept < 2 * told["examples"]
    before = asked.stat().st_size
    (shop / "slowly").unlink()
    done = skillc("eval", "things.skill", "--json", folder=shop, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stopped"] is None
    # What had come in is known; what was in flight may be asked again.
    assert asked.stat().st_size - before <= 2 * told["examples"] - kept
