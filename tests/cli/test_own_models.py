"""Whole compiles with models of the user's own: a command and a function that answer as the rulebook does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest_cli import PROGRAM, ROOT, rows, skillc

READER = """
import json, sys
from skillc.models.rulebook import answer
print("thinking", file=sys.stderr)
print(json.dumps({"reply": {"text": answer(json.load(open(sys.argv[1])))}}))
"""
MINE = """
import skillc
from skillc.models.rulebook import answer

@skillc.backend("mine")
def rules(messages, model, parameters):
    assert model == "rules"
    return answer(messages)
"""
BASE = PROGRAM.replace("epochs = 2; patience = 6 steps", "epochs = 1").replace("batch = 12", "batch = 8")
COMMAND = f"""model target = "exec/reader" {{
  exec = "{sys.executable} {{here}}/reader.py {{messages}}" {{
    answer = json(".reply.text")
    environment = [env("PYTHONPATH")]
  }}
}}"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def written(folder: Path, program: str, count: int = 20) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "things.skill").write_text(program)
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in list(rows())[:count]))
    (folder / "reader.py").write_text(READER)
    (folder / "mine.py").write_text(MINE)
    return folder


def with_models(target: str, optimizer: str = 'model optimizer = "rulebook/v1"') -> str:
    text = BASE.replace('model target    = "rulebook/v1"', target)
    return text.replace('model optimizer = "rulebook/v1"', optimizer)


def made(folder: Path) -> tuple[str, list[Any]]:
    """The skill, and the history without the run's name."""
    home = folder / "skills" / "sort-things"
    history = [json.loads(line) for line in home.with_name("sort-things.history.jsonl").read_text().splitlines()]
    assert all(len(record.pop("run")) == 64 for record in history)
    assert len({record.pop("link") for record in history}) == len(history)
    return (home / "SKILL.md").read_text(), history


def compiled(folder: Path, *options: str) -> tuple[str, list[Any]]:
    done = skillc("compile", "things.skill", *options, folder=folder, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return made(folder)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Any]]:
    found = compiled(written(tmp_path_factory.mktemp("plain"), BASE))
    assert any(record["result"] == "accept" for record in found[1])
    return found


OWN = 'model optimizer = "mine/rules" { backend = python("mine:rules") }'


@pytest.mark.parametrize(
    "program",
    [
        with_models(COMMAND, OWN),
        with_models(OWN.replace("optimizer", "target"), COMMAND.replace("target", "optimizer")),
    ],
    ids=["command and function", "function and command"],
)
@pytest.mark.quick_cases(1)
def test_the_same_answers_make_the_same_skill_whoever_gives_them(
    program: str, plain: tuple[str, list[Any]], tmp_path: Path
) -> None:
    folder = written(tmp_path, program)
    assert compiled(folder) == plain
    # The second time everything is known.
    (folder / "reader.py").write_text("raise SystemExit(1)")
    assert compiled(folder) == plain


def test_a_name_from_the_environment_is_planned_with(tmp_path: Path) -> None:
    folder = written(tmp_path, with_models('model target = env("TEAM_MODEL")'))
    environment = {**ENVIRONMENT, "TEAM_MODEL": "rulebook/v1"}
    done = skillc("plan", "things.skill", folder=folder, env=environment)
    assert "target     rulebook/v1" in done.stdout, done.stderr
    unset = skillc("plan", "things.skill", folder=folder, env=ENVIRONMENT)
    assert unset.returncode == 2
    assert "`TEAM_MODEL`, which is not set" in unset.stderr
    assert "Traceback" not in unset.stderr
    chosen = skillc("plan", "things.skill", "--model", "target=rulebook/v1", folder=folder, env=ENVIRONMENT)
    assert chosen.returncode == 0, chosen.stderr


def test_a_working_folder_that_is_not_there_is_shown_in_the_program(tmp_path: Path) -> None:
    block = COMMAND.replace("environment =", 'folder = "ws"; environment =')
    folder = written(tmp_path, with_models(block))
    done = skillc("plan", "things.skill", folder=folder, env=ENVIRONMENT)
    assert done.returncode == 2
    assert "error[SK624]: the folder `ws` does not exist" in done.stderr
    assert 'folder = "ws"' in done.stderr
    assert "SK624" in skillc("explain", "SK624", folder=folder).stdout
    assert skillc("plan", "things.skill", "--offline", folder=folder, env=ENVIRONMENT).returncode == 0
    (folder / "ws").mkdir()
    assert skillc("plan", "things.skill", folder=folder, env=ENVIRONMENT).returncode == 0


def test_a_cap_on_cost_needs_the_most_that_a_call_costs(tmp_path: Path) -> None:
    def program(command: str) -> str:
        return with_models(command).replace("epochs = 1", "epochs = 1; cost = $50")

    folder = written(tmp_path, program(COMMAND))
    done = skillc("plan", "things.skill", folder=folder, env=ENVIRONMENT)
    assert done.returncode == 2
    assert "error[SK651]" in done.stderr
    assert "`price { call = $0.05 }`" in done.stderr
    (folder / "things.skill").write_text(program(COMMAND[:-1] + "  price { call = $0.05 }\n}"))
    done = skillc("plan", "things.skill", folder=folder, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert "$0.05 a call" in done.stdout


def test_a_loaded_program_answers_with_its_command(tmp_path: Path) -> None:
    folder = written(tmp_path, with_models(COMMAND))
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import skillc\n"
        f"print(skillc.load({str(folder / 'things.skill')!r})(text='a hammer for the animal').kind)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, cwd="/")
    assert done.stdout == "animal\n", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_killed_compile_leaves_no_command_running(tmp_path: Path) -> None:
    token = f"77.{os.getpid()}"
    stubborn = f"sh -c 'trap \\\"\\\" TERM; setsid sleep {token} & sleep {token}; sleep {token}' 0 {{prompt}}"
    folder = written(tmp_path, with_models(f'model target = "exec/slow" {{ exec = "{stubborn}" }}'))

    def running() -> int:
        found = 0
        for entry in Path("/proc").iterdir():
            try:
                found += entry.name.isdigit() and token.encode() in (entry / "cmdline").read_bytes()
            except OSError:
                continue
        return found

    def until(wanted: bool) -> bool:
        end = time.monotonic() + 600
        while (running() > 3) != wanted if wanted else running() > 0:
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    command = [sys.executable, "-m", "skillc", "compile", "things.skill"]
    process = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    try:
        assert until(True)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert until(False)
