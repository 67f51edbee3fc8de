"""Data are what their scripts write, documented rules are those of the scripts, programs have no findings."""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.by_hand.changelog import make as changelog
from benchmarks.by_hand.desk import make as desk
from skillc.frontend import check_file, plan_file

ROOT = Path(desk.__file__).resolve().parents[1]


@pytest.mark.parametrize("task", ["desk", "changelog"])
def test_data_are_what_the_script_writes(task):
    made = importlib.import_module(f"benchmarks.by_hand.{task}.make").examples()
    rows = [json.loads(line) for line in (ROOT / task / f"{task}.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows == made
    assert len(rows) >= 240
    assert min(Counter(list(row.values())[1] for row in rows).values()) >= 10


@pytest.mark.parametrize(("task", "table"), [("desk", desk.CODES), ("changelog", changelog.MARKS)])
def test_documented_rules_are_those_of_the_script(task, table):
    text = (ROOT / task / "RULES.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", text, re.M)]
    head, _, *rows = lines
    assert [row[1:] for row in rows] == [[table[kind][who] for who in head[1:]] for kind in table]


@pytest.mark.parametrize("task", ["desk", "changelog", "packages"])
def test_programs_have_no_findings_and_the_stated_splits(task, monkeypatch):
    monkeypatch.setenv("FAKE_KEY", "none")
    program = ROOT / task / f"{task}.skill"
    assert not check_file(program).diagnostics
    plan = plan_file(program, runnable=True).plan
    assert plan.budget.calls == 700


@pytest.mark.parametrize(("task", "labels"), [("desk", 10), ("changelog", 8)])
def test_handwritten_rules_name_every_label(task, labels):
    text = (ROOT / task / "by_hand" / "SKILL.md").read_text(encoding="utf-8").split("## Rules")[1]
    answers = {list(json.loads(line).values())[1] for line in (ROOT / task / f"{task}.jsonl").open(encoding="utf-8")}
    assert len(answers) == labels
    assert all(re.search(rf"\b{answer}\b", text) for answer in answers)
