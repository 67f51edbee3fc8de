"""The hooks of pre-commit and the action of GitHub call what is there, and do what they say."""

import json
import os
import re
import shlex
import subprocess

import click
import pytest
import yaml
from page_session import ROOT, Session

from skillc.cli import VERBS, skillc

HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "run" in step}

GOOD = (ROOT / "tests/language/programs/trivia.skill").read_text()
BAD = GOOD.replace("exact_match", "exact_mach")


def accepted(words):
    """Raises where the command line does not take these words."""
    assert words[0] == "skillc"
    command = skillc.get_command(click.Context(skillc), words[1])
    assert command is not None, f"there is no verb `{words[1]}`"
    command.make_context(words[1], [*words[2:], "some.skill"])


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_calls_a_verb_that_takes_its_options(hook):
    assert set(hook) <= {
        "id",
        "name",
        "description",
        "entry",
        "language",
        "files",
        "require_serial",
        "stages",
        "args",
        "pass_filenames",
    }
    assert hook["language"] == "python"
    assert hook["require_serial"]
    assert re.search(hook["files"], "shop/tickets.skill")
    assert not re.search(hook["files"], "shop/tickets.skill.md")
    words = shlex.split(hook["entry"])
    assert words[1] in VERBS
    accepted(words)


def test_a_hook_fails_on_a_file_that_is_wrong(tmp_path):
    (tmp_path / "good.skill").write_text(GOOD)
    (tmp_path / "bad.skill").write_text(BAD)
    session = Session(tmp_path / "home")
    for hook in HOOKS:
        if hook["id"] == "skillc-check":
            assert session.run(f"{hook['entry']} {tmp_path}/good.skill").status == 0
            answer = session.run(f"{hook['entry']} {tmp_path}/good.skill {tmp_path}/bad.skill")
            assert answer.status == 1
            assert "bad.skill:" in answer.text
    session.close()


def test_every_input_of_the_action_is_used_and_none_stands_in_a_script():
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text()))
    assert used == set(ACTION["inputs"])
    # A script that holds an expression can be made to run anything by whoever chooses the input.
    assert [name for name, step in STEPS.items() if "${{" in step["run"]] == []


def test_every_action_that_is_used_is_pinned_to_a_commit():
    for step in ACTION["runs"]["steps"]:
        assert "uses" not in step or re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"])


@pytest.fixture
def runner(tmp_path):
    """Runs a step's script as GitHub does, with inputs over their defaults."""
    session = Session(tmp_path / "home")
    session.close()
    (session.folder / "programs").mkdir()
    (session.folder / "programs/good.skill").write_text(GOOD)

    def run(name, path=None, **inputs):
        step = STEPS[name]
        given = {key: value["default"] for key, value in ACTION["inputs"].items()} | inputs
        environment = session.environment | ({"PATH": f"{path}:{session.environment['PATH']}"} if path else {})
        for variable, expression in step["env"].items():
            found = re.fullmatch(r"\$\{\{ (?:inputs\.([\w-]+)|github\.action_path) \}\}", expression)
            assert found, expression
            environment[variable] = given[found[1]] if found[1] else str(ROOT)
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=session.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    run.folder = session.folder
    return run


def test_the_action_passes_where_nothing_is_wrong(runner):
    done = runner("skillc check", programs="programs/good.skill")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_action_annotates_what_is_wrong_and_fails(runner):
    (runner.folder / "programs/bad.skill").write_text(BAD)
    done = runner("skillc check", programs="programs/good.skill programs/bad.skill")
    assert done.returncode == 1
    assert re.search(r"^::error .*file=programs/bad.skill", done.stdout, re.MULTILINE)


def test_the_action_writes_sarif_and_leaves_the_failing_to_the_check(runner):
    (runner.folder / "bad.skill").write_text(BAD)
    done = runner("write SARIF", programs="bad.skill", sarif="found.sarif")
    assert done.returncode == 0, done.stderr
    assert json.loads((runner.folder / "found.sarif").read_text())["version"] == "2.1.0"
    assert runner("write SARIF", programs="missing.skill", sarif="found.sarif").returncode != 0


def test_an_input_cannot_run_anything(runner):
    done = runner("skillc check", programs="$(touch made) ;touch made `touch made`")
    assert done.returncode == 2
    assert not (runner.folder / "made").exists()


@pytest.mark.parametrize(("version", "wanted"), [("", str(ROOT)), ("0.3.1", "skillc==0.3.1")])
def test_the_action_installs_itself_or_the_version_that_was_asked_for(runner, tmp_path, version, wanted):
    python = tmp_path / "fake/python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    done = runner("install skillc", path=python.parent, version=version)
    assert done.stdout.splitlines()[-1] == wanted
    assert os.access(python, os.X_OK)
