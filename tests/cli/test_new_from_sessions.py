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


LONG = "Dear customer, thank you for your message about this. The team of {} writes to you within two working days."
MODELS = """
import json
import re

from skillc import scripted

SIGNS = {"invoice": "billing", "parcel": "shipping", "login": "account"}


def sign_of(request):
    return next((sign for sign in SIGNS if sign in request), "")


def act(messages, model, parameters):
    asked = scripted.read(messages)
    sign = sign_of(asked.inputs["request"])
    knows = f"{sign} is for {SIGNS[sign]}" in asked.skill
    return asked.answer(reply=f"Dear customer, the team of {SIGNS[sign] if knows else 'nobody'} writes to you.")


def improve(messages, model, parameters):
    def cures(case, skill):
        sign = sign_of(case.inputs["request"])
        return [f"A message with {sign} is for {SIGNS[sign]}."]

    return scripted.learn(messages, cures)


def judge(messages, model, parameters):
    rubric, case = messages[0]["content"], messages[1]["content"]
    wanted = re.search("answer of a session that worked.* team of (\\w+)", rubric)
    said = re.search("answer reply.* team of (\\w+)", case, re.DOTALL)[1]
    right = said == wanted[1] if wanted else said != "nobody"
    code = re.search("Case (\\w+)", case)[1]
    verdict = {"criterion": "1", "reason": "by its team", "level": "yes" if right else "no"}
    text = json.dumps({"case": code, "instructions": False, "verdicts": [verdict]})
    return scripted.reply(text, messages)
"""


def test_long_answers_compile_with_a_judge_that_reads_what_worked_and_what_failed(tmp_path):
    (tmp_path / ".skillc").mkdir()
    make_store(tmp_path / ".skillc/sessions.db", *shop_sessions(LONG, failed={4, 9}))
    (tmp_path / "mine.py").write_text(MODELS)
    done = skillc("new", "--from-sessions", "--skill", "route", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    program = tmp_path / "route.skill"
    text = program.read_text()
    assert "not used: id, answer" in text
    for role, value, function in (
        ("target   ", '"rulebook/v1"', "act"),
        ("optimizer", '"rulebook/v1"', "improve"),
        ("referee", "optimizer", "judge"),
    ):
        own = f'model {role} = "mine/{function}" {{ backend = python("mine:{function}") }}'
        assert f"model {role} = {value}" in text
        text = text.replace(f"model {role} = {value}", own)
    program.write_text(text)
    assert skillc("check", "route.skill", folder=tmp_path).returncode == 0
    compiled = skillc("compile", "route.skill", "--json", folder=tmp_path)
    assert compiled.returncode == 0, compiled.stderr
    summary = json.loads(compiled.stdout)
    assert summary["verdict"] == "improved"
    assert summary["test"]["gain"] > 0.5


def test_all_labelled_sessions_of_any_project_need_a_name(folder):
    done = skillc("new", "--from-sessions", "--project", "", folder=folder)
    assert done.returncode == 2
    assert "--skill NAME" in done.stderr
    assert skillc("new", "--from-sessions", "--project", "", "-o", "every.skill", folder=folder).returncode == 0


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
