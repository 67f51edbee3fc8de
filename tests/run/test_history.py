import json

import pytest

from skillc.errors import SkillcError
from skillc.run.history import history_text, read_history, with_completion


def test_the_same_run_gives_the_same_bytes_and_others_stay(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text(history_text([], "a", [{"decision": 1}]))
    path.write_text(history_text(read_history(path), "b", [{"decision": 1}, {"decision": 2}]))
    before = path.read_bytes()
    path.write_text(history_text(read_history(path), "b", [{"decision": 1}, {"decision": 2}]))
    assert path.read_bytes() == before
    assert [json.loads(line)["run"] for line in path.read_text().splitlines()] == ["a", "b", "b"]


def test_a_merge_conflict_is_named_with_its_line(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"run": "a"}\n<<<<<<< ours\n')
    with pytest.raises(SkillcError, match="line 2") as problem:
        read_history(path)
    assert "both sides" in problem.value.hint


def test_a_completion_is_folded_into_its_decision():
    decisions = [{"decision": 1, "result": "accept"}, {"decision": 2, "result": "reject"}]
    folded = with_completion(decisions, {"completed": 1, "goal": "0.75"})
    assert folded == [{"decision": 1, "result": "accept", "completed": "0.75"}, decisions[1]]
    assert decisions[0] == {"decision": 1, "result": "accept"}
