"""`skillc new --from-sessions` as a user types it."""

import json
import sys
from pathlib import Path

import pytest
from conftest_cli import skillc

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sessions"))

from labelled import make_store, shop_sessions


@pytest.fixture
def folder(tmp_path):
    (tmp_path / ".skillc").mkdir()
    make_store(tmp_path / ".skillc/sessions.db", *shop_sessions(failed={4}))
    return tmp_path


def test_it_writes_a_program_that_passes_check_and_compiles_offline(folder):
    done = skillc("new", "--from-sessions", "--skill", "route", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "from 29 labelled sessions:" in done.stdout
    assert "1 failed" in done.stdout
    checked = skillc("check", "route.skill", "--data", folder=folder)
    assert checked.returncode == 0, checked.stdout
    compiled = skillc("compile", "route.skill", "--offline", "--json", folder=folder)
    assert compiled.returncode == 0, compiled.stderr
    assert json.loads(compiled.stdout)["test"]["gain"] > 0.2
    again = skillc("new", "--from-sessions", "--skill", "route", folder=folder)
    assert again.returncode == 2
    assert "`route.skill` exists" in again.stderr


def test_json_and_a_project(folder):
    done = skillc("new", "--from-sessions", "--project", "shop", "--output", "made/mine.skill", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    assert values["files"] == ["made/mine.skill", "made/mine.jsonl", "made/evals/evals.json"]
    assert values["rows"] == sum(values["groups"].values()) == 29


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["new"], "no data is named"),
        (["new", "--from-sessions"], "neither a skill nor a project is named"),
        (["new", "--from-sessions", "--skill", "other"], "for `other`"),
        (["new", "x.csv", "--from-sessions", "--skill", "route"], "`DATA` cannot be used with `--from-sessions`"),
        (["new", "--from-sessions", "--skill", "route", "--force"], "`--force` cannot be used"),
        (["new", "x.csv", "--skill", "route"], "`--skill` needs `--from-sessions`"),
        (["new", "--from-sessions", "--skill", "route", "--store", "none.db"], "no sessions are stored in `none.db`"),
    ],
)
def test_refusals(folder, arguments, problem):
    done = skillc(*arguments, folder=folder)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "route.skill").exists()
