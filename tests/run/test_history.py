import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.errors import SkillcError
from skillc.run.history import (
    decisions_until,
    head_of,
    history_text,
    linked,
    parse_history,
    read_history,
    union,
    with_completion,
)


def test_the_same_run_gives_the_same_bytes_and_others_stay(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text(history_text([], "a", [{"decision": 1}]))
    path.write_text(history_text(read_history(path), "b", [{"decision": 1}, {"decision": 2}]))
    before = path.read_bytes()
    path.write_text(history_text(read_history(path), "b", [{"decision": 1}, {"decision": 2}]))
    assert path.read_bytes() == before
    assert [json.loads(line)["run"] for line in path.read_text().splitlines()] == ["a", "b", "b"]


def test_marks_of_a_merge_are_passed_over(tmp_path):
    path = tmp_path / "history.jsonl"
    ours, theirs = (history_text([], run, [{"decision": 1}]) for run in "ab")
    path.write_text(f"<<<<<<< ours\n{ours}||||||| base\n=======\n{theirs}>>>>>>> theirs\n")
    assert [line["run"] for line in read_history(path)] == ["a", "b"]


def test_a_damaged_line_is_named_with_its_number(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"run": "a"}\n{"run"\n')
    with pytest.raises(SkillcError, match="line 2") as problem:
        read_history(path)
    assert problem.value.hint


def test_separators_of_lines_within_a_text_part_nothing(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text(history_text([], "a", [{"decision": 1, "text": "one\u2028two\x85three"}]), encoding="utf-8")
    (line,) = read_history(path)
    assert line["text"] == "one\u2028two\x85three"


DECISIONS = [{"decision": n, "result": r} for n, r in enumerate(["accept", "reject", "accept"], 1)]
OTHERS = [DECISIONS[0], {"decision": 2, "result": "accept"}, {"decision": 3, "result": "accept"}]


def test_a_run_that_goes_on_replaces_its_beginning():
    begun = history_text([], "a", DECISIONS[:2])
    whole = history_text(parse_history(begun, ""), "a", [{**DECISIONS[0], "completed": "1"}, *DECISIONS[1:]])
    assert whole == history_text([], "a", [{**DECISIONS[0], "completed": "1"}, *DECISIONS[1:]])


def test_the_same_run_that_was_answered_otherwise_keeps_both():
    """As `--fresh` makes it, or a server that does not answer the same twice."""
    first = history_text([], "a", DECISIONS)
    both = parse_history(history_text(parse_history(first, ""), "a", OTHERS), "")
    assert len(both) == 5
    for decisions in (DECISIONS, OTHERS):
        found = decisions_until(both, "a", head_of("a", decisions))
        assert [{k: v for k, v in line.items() if k in ("decision", "result")} for line in found] == decisions


@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_a_union_of_branches_is_read_in_any_order_and_number(random, copies):
    base = history_text([], "base", DECISIONS[:1])
    lines = []
    for run, decisions in (("a", DECISIONS), ("a", OTHERS), ("b", DECISIONS)):
        lines += history_text(parse_history(base, ""), run, decisions).splitlines() * copies
    random.shuffle(lines)
    found = parse_history("\n".join(lines), "")
    assert len(found) == 1 + 5 + 3
    for run, decisions in (("base", DECISIONS[:1]), ("a", DECISIONS), ("a", OTHERS), ("b", DECISIONS)):
        assert len(decisions_until(found, run, head_of(run, decisions))) == len(decisions)


def test_a_changed_or_missing_line_breaks_the_run():
    lines = linked("a", DECISIONS)
    head = head_of("a", DECISIONS)
    assert decisions_until(lines[1:], "a", head) is None
    assert decisions_until([lines[0], {**lines[1], "result": "accept"}, lines[2]], "a", head) is None
    assert decisions_until([], "a", head_of("a", ())) == []


def test_lines_of_before_the_links_are_replaced_with_their_run():
    old = [{"run": "a", "decision": 1}, {"run": "b", "decision": 1}]
    text = history_text(old, "a", DECISIONS)
    assert [line["run"] for line in parse_history(text, "")] == ["b", "a", "a", "a"]


def test_of_two_the_completed_decision_is_kept():
    (line,) = linked("a", DECISIONS[:1])
    assert union([line, {**line, "completed": "0.5"}, line]) == [{**line, "completed": "0.5"}]


def test_a_completion_is_folded_into_its_decision():
    decisions = [{"decision": 1, "result": "accept"}, {"decision": 2, "result": "reject"}]
    folded = with_completion(decisions, {"completed": 1, "goal": "0.75"})
    assert folded == [{"decision": 1, "result": "accept", "completed": "0.75"}, decisions[1]]
    assert decisions[0] == {"decision": 1, "result": "accept"}
