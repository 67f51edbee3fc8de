"""Nights of `evolve` on sessions of a changelog's users: rehearsed by scripts, and answered by a language model."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest
from hand_nights import ROLES, Sources, two_nights

from benchmarks.by_hand.night import make
from benchmarks.by_hand.night.project import NAME, TASK
from benchmarks.by_hand.night.rehearse import EXCEPTIONS, work
from benchmarks.by_hand.recording import Recording, calls_in
from benchmarks.by_hand.server import Folder
from skillc.evolve.ledger import Ledger

RECORDED = TASK / "recorded"
CAP = 240


def check_prompts(prompts: list[str]) -> None:
    """Check that no prompt has what was withdrawn, planted or redacted; redacted and long requests are there."""
    text = "\n".join(prompts)
    assert make.WITHDRAWN not in text and make.PLANTED[:40] not in text
    assert not any(secret in text for secret in make.SECRETS)
    assert "Reported by [email 1], call [phone number 1]" in text and "characters left out]" in text


def check_nights(program: Path, outputs: list[str]) -> None:
    """Check what both nights print and keep: the sessions that count, the budgets, the drift."""
    records = Ledger.of(program.parent, NAME).records()
    assert [each["night"] for each in records] == [1, 2]
    assert records[0]["sessions"]["apart"] == {"suspect": 1, "withdrawn": 1}
    assert records[0]["rows"]["left_out"] == {"failed, and right answers are compared": 1, "not labelled": 1}
    spent = [each["error"]["spent"] for each in records]
    assert spent == sorted(spent) and 0 < spent[-1] <= 0.2
    for record, output in zip(records, outputs, strict=True):
        assert record["spent"]["calls"] <= CAP and f"spent     {record['spent']['calls']} of {CAP} calls" in output
        assert re.search(r"^error +\d+\.\d\d% of 20% spent over all nights by \d challenger", output, re.M)
        assert re.search(r"^drift +(no drift|suspected|fallen)", output, re.M)


def test_the_sessions_are_what_the_script_writes(tmp_path):
    make.main(tmp_path)
    for name in ("marks", "night1", "night2"):
        assert (tmp_path / f"{name}.jsonl").read_bytes() == (TASK / f"{name}.jsonl").read_bytes()


@pytest.mark.thorough
def test_scripts_rehearse_both_nights(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.by_hand.server.POLL", 0.02)
    over = threading.Event()
    folder = tmp_path / "hand"
    answerer = threading.Thread(target=work, args=(folder, tuple(EXCEPTIONS), over), daemon=True)
    sources: Sources = {role: Folder(folder / role) for role in ROLES}
    answerer.start()
    try:
        program, outputs = two_nights(tmp_path / "project", sources)
    finally:
        over.set()
        answerer.join()
    check_nights(program, outputs)
    check_prompts([call.prompt for role in ROLES for call in calls_in(folder / role)])
    assert f"next      skillc adopt {NAME} --project" in outputs[0]
    records = Ledger.of(program.parent, NAME).records()
    assert records[0]["offered"]["word"] == "held" and records[1]["challenge"] is None
    # The adopted version has the exceptions, and what the old one failed is right under it.
    text = (program.parent / ".claude/skills" / NAME / "SKILL.md").read_text(encoding="utf-8")
    assert all(rule in text for rule in EXCEPTIONS.values())
    assert records[1]["replayed"] and set(records[1]["replayed"].values()) == {1_000_000}


@pytest.mark.skipif(not RECORDED.is_dir(), reason="no night with a language model is recorded")
def test_both_nights_as_a_language_model_answered_them(tmp_path):
    prompts = [call.prompt for role in ROLES for call in calls_in(RECORDED / f"{role}.jsonl")]
    check_prompts(prompts)
    replay: Sources = {role: Recording.read(RECORDED / f"{role}.jsonl", near=True) for role in ROLES}
    program, outputs = two_nights(tmp_path / "project", replay)
    check_nights(program, outputs)
    log = (RECORDED / "log.txt").read_text(encoding="utf-8")
    results = [re.findall(r"^result +(.*)$", output, re.M)[-1] for output in outputs]
    assert re.findall(r"^result +(.*)$", log, re.M) == results
    delivered = program.parent / ".claude/skills" / NAME / "SKILL.md"
    assert delivered.read_bytes() == (RECORDED / "SKILL.md").read_bytes()
    assert not re.search(r"\[(email|phone number|github token) \d", delivered.read_text(encoding="utf-8"))
    assert json.loads((program.parent / ".skillc/nights" / NAME / "0001.json").read_text())["skill"] == NAME
