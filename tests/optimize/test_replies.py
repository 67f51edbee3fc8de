from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.optimize.propose.replies import (
    AggregateReply,
    BudgetReply,
    MalformedReply,
    MetaSkillReply,
    ProposedEdit,
    ReflectReply,
    Reply,
    SlowUpdateReply,
    read_reply,
)

ADD = {"op": "add", "section": "rules", "text": "If x, answer y.", "cures": ["t1", "t2"]}


def test_bare_fenced_and_surrounded_json_are_read() -> None:
    body = json.dumps({"summary": "s", "edits": [ADD]})
    for text in (body, f"```json\n{body}\n```", f"I think {{x}} [1].\n\n{body}\nThat is all.", f"\ufeff{body}"):
        reply = read_reply(ReflectReply, text)
        assert isinstance(reply, ReflectReply)
        assert reply.edits[0] == ProposedEdit(op="add", section="rules", text="If x, answer y.", cures=("t1", "t2"))


def test_the_last_object_that_fits_counts() -> None:
    text = '{"edits": []} no, better: {"edits": [{"op": "delete", "rule": "a1"}]} {"note": 1}'
    reply = read_reply(ReflectReply, text)
    assert isinstance(reply, ReflectReply)
    assert [edit.op for edit in reply.edits] == ["delete"]


def test_a_bare_list_stands_for_the_list_of_the_reply() -> None:
    assert read_reply(AggregateReply, json.dumps([ADD])) == AggregateReply(edits=(ProposedEdit(**ADD),))


def test_the_other_kinds() -> None:
    assert read_reply(SlowUpdateReply, '{"guidance": "a\\nb", "why": "c"}') == SlowUpdateReply(guidance="a\nb")
    assert read_reply(MetaSkillReply, '{"memory": null}') == MetaSkillReply(memory="")
    assert read_reply(BudgetReply, '{"edits": 3}') == BudgetReply(edits=3)
    assert read_reply(SlowUpdateReply, '{"guidance": "line\nbreak"}') == SlowUpdateReply(guidance="line\nbreak")


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({"cures": "t1, t2"}, {"cures": ("t1", "t2")}),
        ({"cures": None}, {"cures": ()}),
        ({"cures": ["[t1]", 2, "t1"]}, {"cures": ("t1", "2")}),
        ({"op": "Append"}, {"op": "add"}),
        ({"rationale": None, "topic": None}, {"rationale": "", "topic": ""}),
        ({"after": "[a1b2c3]"}, {"after": "a1b2c3"}),
        ({"after": ""}, {"after": None}),
        ({"confidence": 0.9}, {}),
    ],
)
def test_small_sins_are_forgiven(given_: dict[str, object], expected: dict[str, object]) -> None:
    reply = read_reply(ReflectReply, json.dumps({"edits": [ADD | given_]}))
    assert isinstance(reply, ReflectReply)
    got = reply.edits[0].model_dump()
    assert {name: got[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (ReflectReply, "", "the reply is empty"),
        (ReflectReply, "no json {here", "the reply holds no JSON object"),
        (
            ReflectReply,
            '{"edits": [{"op": "burn"}]}',
            "`edits.0.op`: Input should be 'add', 'replace', 'delete' or 'move'",
        ),
        (ReflectReply, '{"edits": [{"op": "add"}]}', "`edits.0`: `add` needs `text`"),
        (ReflectReply, '{"edits": [{"op": "replace", "text": "x"}]}', "`edits.0`: `replace` needs `rule`"),
        (ReflectReply, '{"edits": [{"op": "move", "rule": "a"}]}', "`edits.0`: `move` needs `after`"),
        (ReflectReply, '{"changes": []}', "`edits`: Field required"),
        (ReflectReply, '{"edits": [{"op": "delete", "rule": "a", "support": 0}]}', "`edits.0.support`"),
        (SlowUpdateReply, '{"note": 1}', "`guidance`: Field required"),
        (BudgetReply, '{"edits": -1}', "`edits`: Input should be greater than or equal to 0"),
    ],
)
def test_what_is_wrong_is_said(kind: type[Reply], text: str, message: str) -> None:
    with pytest.raises(MalformedReply) as problem:
        read_reply(kind, text)
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_many_problems_are_cut_short() -> None:
    text = json.dumps({"edits": [{"op": "burn"}] * 9})
    with pytest.raises(MalformedReply, match="and 4 more"):
        read_reply(ReflectReply, text)


@given(st.sampled_from(Reply.__subclasses__()), st.text(alphabet='{}[]":,ab1\\n ', max_size=60))
def test_any_text_is_read_or_malformed(kind: type[Reply], text: str) -> None:
    try:
        assert isinstance(read_reply(kind, text), kind)
    except MalformedReply as problem:
        assert str(problem)


def test_deep_nesting_is_malformed_not_a_crash() -> None:
    with pytest.raises(MalformedReply):
        read_reply(ReflectReply, "[" * 20_000)
