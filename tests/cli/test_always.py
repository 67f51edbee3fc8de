"""`accept = always` from the command line."""

import json

import pytest
from conftest_cli import PROGRAM, skillc


def run(shop, optimize, *options):
    (shop / "things.skill").write_text(PROGRAM.replace("batch = 12;", f"batch = 12; {optimize};"))
    done = skillc("compile", "things.skill", "--json", *options, folder=shop)
    assert done.returncode == 0, done.stderr
    history = (shop / "skills/sort-things.history.jsonl").read_text().splitlines()
    return json.loads(done.stdout), [json.loads(line) for line in history], done.stderr


@pytest.mark.thorough
def test_accept_always_with_rollback(shop):
    summary, history, shown = run(shop, "accept = always; rollback = 0%", "--set", "budget.steps=4")
    results = [line["result"] for line in history]
    assert "reject" not in results
    assert len(history) == summary["decisions"]
    assert results.count("accept") == summary["accepted"]
    best = max(float(line["goal"]["candidate"]) for line in history if line["result"] == "accept")
    assert summary["validation"]["best"]["mean"] == round(best, 6)
    assert "accept" in shown


def test_what_has_no_effect_is_said(shop):
    (shop / "things.skill").write_text(PROGRAM.replace("batch = 12;", "batch = 12; rollback = 5%;"))
    done = skillc("plan", "things.skill", folder=shop)
    assert done.returncode == 0
    assert "`rollback` has no effect" in done.stdout + done.stderr
