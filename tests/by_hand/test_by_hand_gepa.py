"""`dspy.GEPA` by hand, as a user starts it: servers, search and test in one command."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import forked
import pytest
from answerer import Answerer

from benchmarks.by_hand.__main__ import main
from benchmarks.by_hand.calls import wait

ROOT = Path(__file__).resolve().parents[2]
TASK = ROOT / "benchmarks" / "by_hand" / "desk"
ROWS, SPLIT, CALLS = 50, "16 examples : 16 examples : 18 examples", 60


def free_ports() -> list[str]:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return [str(first.getsockname()[1]), str(second.getsockname()[1])]


@pytest.fixture
def task(tmp_path, monkeypatch):
    rows = (TASK / "desk.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "desk.jsonl").write_text("".join(rows[:ROWS]), encoding="utf-8")
    program = (TASK / "desk.skill").read_text(encoding="utf-8").replace("38 : 32 : 30", SPLIT)
    (tmp_path / "desk.skill").write_text(program, encoding="utf-8")
    shutil.copy(TASK / "by_hand" / "SKILL.md", tmp_path / "SKILL.md")
    monkeypatch.setattr("benchmarks.by_hand.server.POLL", 0.02)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def test_gepa_searches_and_tests_with_replies_by_hand(task):
    pytest.importorskip("gepa")
    ports = free_ports()
    command = [
        *forked.command("python"),
        "-m",
        "benchmarks.by_hand.gepa",
        str(task / "desk.skill"),
        str(task / "result.json"),
    ]
    with Answerer(task / "run") as answerer:
        status = main(
            ["run", str(task / "run"), "--ports", *ports, "--", *command, "--calls", str(CALLS), "--ports", *ports]
        )
    assert status == 0, (task / "run" / "log.txt").read_text()
    assert not answerer.problems
    result = json.loads((task / "result.json").read_text(encoding="utf-8"))
    assert result["examples"] == [16, 16, 18]
    assert result["test"]["best"] > result["test"]["initial"]
    assert "If the request mentions one of" in result["instruction"]
    assert result["reflections"] == len(list((task / "run" / "optimizer").glob("*.prompt.md")))
    assert CALLS <= result["metric_calls"] <= CALLS + 16 + 8
    assert len(list((task / "run" / "target").glob("*.prompt.md"))) == result["target_calls"] + 2 * 18
    assert wait(task / "run" / "target", 0) == "finished"


def test_a_skill_file_is_measured_on_the_test_split(task):
    ports = free_ports()
    names = [str(task / name) for name in ("desk.skill", "SKILL.md", "result.json")]
    command = [*forked.command("python"), "-m", "benchmarks.by_hand.measure", *names, "--ports", *ports]
    with Answerer(task / "run"):
        assert main(["run", str(task / "run"), "--ports", *ports, "--", *command]) == 0
    result = json.loads((task / "result.json").read_text(encoding="utf-8"))
    assert len(result["right"]) == 18
    prompt = (task / "run" / "target" / "0001.prompt.md").read_text(encoding="utf-8")
    assert "Decide in this order and stop at the first that fits." in prompt
    assert "name: code-request" not in prompt
