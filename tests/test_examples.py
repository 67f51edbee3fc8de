"""The examples do what their READMEs say: compiled offline, improved by a wide margin, with gates that reject."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import forked
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(("name", "skill"), [("tickets", "route-tickets"), ("unicode", "classify-characters")])
@pytest.mark.thorough
def test_an_example_improves_by_25_points_and_gates_reject(name, skill, tmp_path):
    folder = tmp_path / name
    shutil.copytree(ROOT / "examples" / name, folder, ignore=shutil.ignore_patterns(".skillc", "skills"))
    command = [*forked.command(), "compile", f"{name}.skill", "--offline", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["verdict"] == "improved"
    assert summary["test"]["gain"] >= 0.25
    assert set(summary["baselines"]) == {"most frequent label", "keywords"}
    history = (folder / "skills" / f"{skill}.history.jsonl").read_text().splitlines()
    decisions = [json.loads(line) for line in history]
    assert any(d["result"] == "reject" and d["blame"] for d in decisions)
    assert any(d["result"] == "accept" for d in decisions)


def test_the_unicode_names_are_what_their_script_makes(tmp_path):
    shutil.copy(ROOT / "examples/unicode/make_data.py", tmp_path)
    done = subprocess.run([sys.executable, "make_data.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "names.jsonl").read_bytes()
    assert made == (ROOT / "examples/unicode/names.jsonl").read_bytes()
    rows = [json.loads(line) for line in made.decode().splitlines()]
    assert len(rows) >= 3_000
    assert len({row["category"] for row in rows}) >= 10


def test_there_are_enough_tickets_for_eight_teams():
    rows = [json.loads(line) for line in (ROOT / "examples/tickets/tickets.jsonl").read_text().splitlines()]
    assert len(rows) >= 400
    assert len({row["team"] for row in rows}) == 8
    assert len({row["ticket"] for row in rows}) == len(rows)
