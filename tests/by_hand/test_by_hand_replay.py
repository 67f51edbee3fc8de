"""A whole compile by hand, recorded: the same prompts are sent again, and the same replies make the same skill.

After a change of prompts: `pytest tests/by_hand --update-recording`, and read the diff.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from answerer import RULE, Answerer
from click.testing import CliRunner
from served import served

from benchmarks.by_hand.recording import Call, Recording, UnknownPromptError, calls_in, pack
from benchmarks.by_hand.server import Folder
from skillc.cli import skillc
from skillc.optimize.propose.replies import AggregateReply, ReflectReply, read_reply

RECORDED = Path(__file__).parent / "recorded"
TASK = Path(__file__).resolve().parents[2] / "benchmarks" / "by_hand" / "desk"
ROLES = ("target", "optimizer")
ROWS, SPLIT = 50, "16 examples : 16 examples : 18 examples"

REPLIES = {"reflect": ReflectReply, "aggregate": AggregateReply}


def compiled(folder: Path, sources: dict[str, Folder | Recording]) -> tuple[str, list[str]]:
    """Compile the desk's task in a folder; return the skill, and the results of its decisions."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = (TASK / "desk.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "desk.jsonl").write_text("".join(rows[:ROWS]), encoding="utf-8")
    program = (TASK / "desk.skill").read_text(encoding="utf-8")
    program = program.replace("38 : 32 : 30", SPLIT).replace("calls = 700", "epochs = 1 }\noptimize { batch = 16")
    (folder / "desk.skill").write_text(program, encoding="utf-8")
    with served(folder / "desk.skill", dict(zip((9111, 9112), sources.values(), strict=True))):
        done = CliRunner().invoke(skillc, ["compile", str(folder / "desk.skill")], env={"FAKE_KEY": "none"})
    changed = [prompt for source in sources.values() if isinstance(source, Recording) for prompt in source.unknown]
    assert not changed, f"prompts changed; run `pytest tests/by_hand --update-recording`. The first:\n{changed[0]}"
    assert done.exit_code == 0, done.output
    history = (folder / "skills" / "code-request.history.jsonl").read_text(encoding="utf-8").splitlines()
    results = [str(row["result"]) for row in map(json.loads, history) if "result" in row]
    return (folder / "skills" / "code-request" / "SKILL.md").read_text(encoding="utf-8"), results


@pytest.fixture
def by_hand(tmp_path, monkeypatch):
    """A compile answered by script, and its folder."""
    monkeypatch.setattr("benchmarks.by_hand.server.POLL", 0.02)
    folder = tmp_path / "by hand"
    with Answerer(folder) as answerer:
        skill, results = compiled(folder, {role: Folder(folder / role) for role in ROLES})
    assert not answerer.problems
    return folder, skill, results


def test_a_recorded_compile_is_replayed_to_the_same_skill(tmp_path, update, request):
    if update:
        folder, skill, results = request.getfixturevalue("by_hand")
        for role in ROLES:
            pack(folder / role, RECORDED / f"{role}.jsonl")
        (RECORDED / "SKILL.md").write_text(skill, encoding="utf-8")
        (RECORDED / "results.json").write_text(json.dumps(results) + "\n", encoding="utf-8")
    recordings = {role: Recording.read(RECORDED / f"{role}.jsonl") for role in ROLES}
    skill, results = compiled(tmp_path / "again", dict(recordings))
    assert skill == (RECORDED / "SKILL.md").read_text(encoding="utf-8")
    assert results == json.loads((RECORDED / "results.json").read_text(encoding="utf-8"))
    assert "accept" in results


def test_a_compile_by_hand_learns_and_records_each_call(by_hand):
    folder, skill, results = by_hand
    assert "accept" in results
    assert RULE.search(skill)
    for role in ROLES:
        prompts = sorted((folder / role).glob("*.prompt.md"))
        numbers = [int(file.name[:4]) for file in prompts]
        assert numbers == list(range(1, len(prompts) + 1))
        rows = [json.loads(line) for line in (folder / role / "calls.jsonl").read_text().splitlines()]
        assert sorted(row["call"] for row in rows) == numbers


def test_pack_keeps_prompts_and_replies_whole(tmp_path):
    shutil.copytree(RECORDED, tmp_path / "recorded")
    found = list(calls_in(RECORDED / "target.jsonl"))
    folder = tmp_path / "folder"
    folder.mkdir()
    for call in found:
        (folder / f"{call.number:04}.prompt.md").write_text(call.prompt, encoding="utf-8")
        (folder / f"{call.number:04}.reply.md").write_text(call.reply + "\n", encoding="utf-8")
    assert pack(folder, tmp_path / "packed.jsonl") == len(found)
    assert list(calls_in(tmp_path / "packed.jsonl")) == found
    assert (tmp_path / "packed.jsonl").read_bytes() == (RECORDED / "target.jsonl").read_bytes()


def test_a_prompt_that_was_never_recorded_is_refused_or_answered_like_the_nearest():
    call = next(calls_in(RECORDED / "target.jsonl"))
    other = call.prompt.replace("You give requests", "Your job: give requests")
    strict = Recording.read(RECORDED / "target.jsonl")
    with pytest.raises(UnknownPromptError):
        strict.reply(other)
    assert strict.unknown == [other]
    near = Recording.read(RECORDED / "target.jsonl", near=True)
    assert near.reply(other) == call.reply
    assert near.guessed == [other]
    with pytest.raises(UnknownPromptError):
        near.reply("something else")


def test_replies_of_a_real_model_are_read_as_what_their_stage_asked_for():
    stages = Counter()
    for call in calls_in(RECORDED / "packages_optimizer.jsonl"):
        stage = re.findall(r'<request stage="(\w+)"', call.prompt)[-1]
        read = read_reply(REPLIES[stage], call.reply)
        edits = getattr(read, "edits", ())
        assert all(edit.cures and edit.section == "rules" for edit in edits if edit.op == "add")
        stages[stage] += 1
    assert stages == {"reflect": 12, "aggregate": 3}


def test_the_nearest_prompt_shares_most_lines_also_where_a_shorter_one_is_part_of_it():
    def prompt(*rules):
        return "\n".join(["===== system =====", "Skill", *rules, "===== user =====", "a map"])

    texts = {"no rules": prompt(), "both": prompt("one", "two"), "more": prompt("one", "two", "x", "y")}
    recording = Recording.of([Call(1, text, reply) for reply, text in texts.items()], near=True)
    assert recording.reply(prompt("one", "two", "three")) == "both"
