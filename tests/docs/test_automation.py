"""The hooks of pre-commit and the action of GitHub call what is there, and do what they say."""

import json
import os
import re
import shlex
import subprocess
import sys

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
LOOSE = GOOD.replace("incumbent.correct", "incumbent.correct - 1%")


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
    words = [*shlex.split(hook["entry"]), *hook.get("args", [])]
    assert words[1] in VERBS
    accepted(words)


@pytest.fixture
def repository(tmp_path):
    """A shell in a git repository that holds a good program, as `main` and as what was last fetched."""
    session = Session(tmp_path / "home")
    (session.folder / "good.skill").write_text(GOOD)
    for command in ("init", "add good.skill", "commit -m one", "update-ref refs/remotes/origin/main HEAD"):
        assert session.run(f"git {command}").status == 0
    yield session
    session.close()


def hooked(session, name, *files):
    """What a hook answers for files, called as pre-commit calls it."""
    hook = next(hook for hook in HOOKS if hook["id"] == name)
    return session.run(shlex.join([*shlex.split(hook["entry"]), *hook.get("args", []), *files]))


@pytest.mark.parametrize(
    ("name", "text", "status", "said"),
    [
        ("skillc-check", BAD, 1, "bad.skill:"),
        ("skillc-fmt", GOOD.replace("goal correct = ", "goal correct="), 0, "reformatted bad.skill"),
        ("skillc-breaking", LOOSE, 1, "SK70"),
    ],
)
def test_a_hook_passes_what_is_good_and_tells_what_is_wrong(repository, name, text, status, said):
    assert hooked(repository, name, "good.skill").status == 0
    file = "good.skill" if name == "skillc-breaking" else "bad.skill"
    (repository.folder / file).write_text(text)
    answer = hooked(repository, name, *dict.fromkeys(["good.skill", file]))
    assert answer.status == status, answer.text
    assert said in answer.text
    if name == "skillc-fmt":
        assert (repository.folder / file).read_text() == GOOD, "pre-commit fails a hook that rewrites files"


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
            timeout=600,
        )

    run.folder = session.folder
    run.environment = session.environment
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


def test_the_action_shows_how_a_program_would_be_laid_out(runner):
    assert runner("skillc fmt", programs="programs").returncode == 0
    (runner.folder / "rough.skill").write_text(GOOD.replace("goal correct = ", "goal correct="))
    done = runner("skillc fmt", programs="programs rough.skill")
    assert done.returncode == 1
    assert "+goal correct = exact_match(answer)" in done.stdout


def test_the_action_annotates_what_got_weaker(runner):
    for command in ("init -q", "add .", "commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=runner.folder, env=runner.environment, check=True)
    inputs = {"programs": "programs", "breaking-against": "main"}
    assert runner("skillc breaking", **inputs).returncode == 0
    (runner.folder / "programs/good.skill").write_text(LOOSE)
    done = runner("skillc breaking", **inputs)
    assert done.returncode == 1
    assert re.search(r"^::error .*file=programs/good.skill", done.stdout, re.MULTILINE)


def test_the_action_appends_the_report_of_a_compile_to_the_page_of_the_run(runner):
    sys.path.insert(0, str(ROOT / "tests/review"))
    from made_run import make_run

    make_run(runner.folder / "made", steps=2, examples=20)
    summary = runner.folder / "summary.md"
    runner.environment["GITHUB_STEP_SUMMARY"] = str(summary)
    assert runner("skillc report", report="made/things.skill").returncode == 0
    assert summary.read_text().startswith("### sort-things: improved (delivered)")
    assert runner("skillc report", report="missing.skill").returncode != 0


def test_a_step_that_fails_hides_nothing_of_those_below(runner):
    told = [step["name"] for step in ACTION["runs"]["steps"] if "cancelled()" in step.get("if", "")]
    assert told == ["skillc fmt", "skillc breaking", "skillc report"]
    assert list(STEPS)[-4:] == ["skillc check", *told]


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
