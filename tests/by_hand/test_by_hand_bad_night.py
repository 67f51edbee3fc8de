"""A night in which no draft can help, and one in which the installed skill has fallen, answered by a language model."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hand_nights import ROLES, run_night, two_nights

from benchmarks.by_hand import night
from benchmarks.by_hand.bad_night.make import main
from benchmarks.by_hand.night.project import NAME
from benchmarks.by_hand.recording import Call, Recording, calls_in
from skillc.evolve.ledger import Ledger
from skillc.publish.staging import staged

TRIAL = Path(__file__).resolve().parents[2] / "benchmarks" / "by_hand" / "bad_night"
NIGHTS = Path(night.__path__[0])
CALLS = {
    role: [*calls_in(NIGHTS / "recorded" / f"{role}.jsonl"), *calls_in(TRIAL / "recorded" / f"{role}.jsonl")]
    for role in ROLES
}
CAPS = {"bad": 110, "table": 26}
LOG = (TRIAL / "recorded" / "log.txt").read_text(encoding="utf-8")


def recordings(target: list[Call]) -> dict[str, Recording]:
    return {"target": Recording.of(target, near=True), "optimizer": Recording.of(CALLS["optimizer"], near=True)}


def after(folder: Path, name: str, sources: dict[str, Recording]) -> tuple[str, dict]:
    """Run the night with these sessions under its cap; return its output and its record."""
    program = folder / "marks.skill"
    shutil.copy(TRIAL / f"{name}.jsonl", folder / "transcripts")
    text = program.read_text(encoding="utf-8")
    program.write_text(re.sub(r"calls    = \d+", f"calls    = {CAPS[name]}", text), encoding="utf-8")
    return run_night(program, dict(sources)), Ledger.of(folder, NAME).records()[-1]


def installed(folder: Path) -> bytes:
    return (folder / ".claude" / "skills" / NAME / "SKILL.md").read_bytes()


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """The project after the first nights and the bad one, its output and record, and what the optimizer was asked."""
    folder = tmp_path_factory.mktemp("nights") / "project"
    two_nights(folder, dict(recordings(CALLS["target"])))
    sources = recordings(CALLS["target"])
    output, record = after(folder, "bad", sources)
    return folder, output, record, sources["optimizer"].asked


def test_the_sessions_are_what_the_script_writes(tmp_path):
    main(tmp_path)
    for name in CAPS:
        assert (tmp_path / f"{name}.jsonl").read_bytes() == (TRIAL / f"{name}.jsonl").read_bytes()


def test_nothing_is_adopted_in_a_night_in_which_no_draft_can_help(bad):
    folder, output, record, _ = bad
    assert re.search(r"^result +the current skill stays$", output, re.M) and "the current skill stays" in LOG
    assert staged(folder, NAME) is None
    assert installed(folder) == (NIGHTS / "recorded" / "SKILL.md").read_bytes()
    assert (record["compiled"]["changed"], record["compiled"]["failing"], record["challenge"]) == (False, 3, None)
    assert (record["drift"]["word"], record["drift"]["mean"], record["drift"]["rows"]) == ("no drift", 0.7, 30)
    assert record["spent"]["calls"] <= CAPS["bad"]
    before = Ledger.of(folder, NAME).records()[-2]
    assert record["error"]["spent"] == before["error"]["spent"], "no share of the error budget without a challenger"
    assert re.search(r"^ +step 1/2 +reject .* gate `better` failed", output, re.M)


def test_the_optimizer_saw_the_failing_rows_of_train_and_no_row_of_another_side(bad):
    folder, _, _, asked = bad
    assert [re.findall(r'<request stage="(\w+)"', prompt)[-1] for prompt in asked] == ["reflect", "rewrite", "draft"]
    rows = [json.loads(line) for line in (folder / "marks.nights.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["side"] for row in rows} == {"train", "validation", "test"}
    text = "\n".join(asked)
    assert not [row for row in rows if row["side"] != "train" and row["request"] in text]
    failures = re.search(r'<trajectories kind="failures">(.*?)</trajectories>', asked[-1], re.S)[1]
    wanted = {row["id"]: row["answer"] for row in rows if row["side"] == "train" and row["request"][-60:] in failures}
    assert sorted(wanted.values()) == ["moved", "noted", "plumbed"]


def test_the_model_wrote_a_rule_from_one_wrong_row_and_named_all_three_as_unexplained_in_the_end():
    reflect, _, draft = (json.loads(call.reply) for call in calls_in(TRIAL / "recorded" / "optimizer.jsonl"))
    (edit,) = reflect["edits"]
    assert edit["cures"] == ["t1"] and "operators moved" in edit["text"]
    assert (draft["sections"], draft["unexplained"]) == ([], ["t1", "t2", "t3"])


def test_a_skill_that_has_fallen_is_rolled_back(bad, tmp_path):
    folder = shutil.copytree(bad[0], tmp_path / "project")
    output, record = after(folder, "table", recordings(CALLS["target"]))
    assert (record["drift"]["word"], set(record["scores"].values()), len(record["scores"])) == ("fallen", {0}, 22)
    assert record["drift"]["evidence"] > record["drift"]["needed"]
    assert record["rolled_back"]["to"].startswith("3856f9d46823")
    assert installed(folder) == (NIGHTS / "skills" / NAME / "SKILL.md").read_bytes()
    said = r"^result +(rolled back to 3856f9d46823: fell by 59\.6 points .*)$"
    assert re.findall(said, output, re.M) == re.findall(said, LOG, re.M) != []


def test_with_five_of_these_tasks_right_the_evidence_is_not_enough_to_roll_back(bad, tmp_path):
    sessions = [json.loads(line)["messages"] for line in (TRIAL / "table.jsonl").read_text().splitlines()]
    right = {turns[0]["content"]: turns[-3]["content"] for turns in sessions[:5]}
    target = []
    for call in CALLS["target"]:
        mark = next((mark for request, mark in right.items() if request in call.prompt), None)
        reply = call.reply if mark is None else f"[[ ## answer ## ]]\n{mark}\n\n[[ ## completed ## ]]"
        target.append(replace(call, reply=reply))
    folder = shutil.copytree(bad[0], tmp_path / "project")
    output, record = after(folder, "table", recordings(target))
    assert sum(score == 1_000_000 for score in record["scores"].values()) == 5
    assert (record["drift"]["word"], record["rolled_back"]) == ("suspected", None), output
    assert installed(folder) == (NIGHTS / "recorded" / "SKILL.md").read_bytes()
