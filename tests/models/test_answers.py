"""Where answers stand in what commands give, those of known agents among them."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.language.commands import json_path
from skillc.models.backends.command import (
    AnswerMissing,
    UnsupportedContent,
    prepare_answer,
    prompt_text,
    system_text,
    take_answer,
    user_text,
)
from skillc.plan.schema import AnswerPlan

NOWHERE = Path("/nowhere")


def json_at(path: str) -> AnswerPlan:
    steps = json_path(path)
    assert steps is not None
    return AnswerPlan(kind="json", path=steps)


def lines(*values: Any) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


CODEX = lines(
    {"type": "thread.started", "thread_id": "t"},
    {"type": "item.completed", "item": {"id": "0", "type": "reasoning", "text": "hmm"}},
    {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "billing\n"}},
    {"type": "turn.completed", "usage": {"input_tokens": 7, "cached_input_tokens": 3, "output_tokens": 2}},
)
OPENCODE = lines(
    {"type": "step_start", "part": {"type": "step-start"}},
    {"type": "text", "part": {"type": "text", "text": "billing"}},
    {"type": "step_finish", "part": {"type": "step-finish", "tokens": {"input": 5, "output": 1}}},
)
CLAUDE = json.dumps({"type": "result", "is_error": False, "result": "billing", "usage": {}}).encode()
CLAUDE_STREAM = lines({"type": "system"}, {"type": "assistant", "message": {}}, json.loads(CLAUDE))


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        (json_at(".item.text"), CODEX),
        (json_at(".part.text"), OPENCODE),
        (AnswerPlan(), b"\n  billing \n"),  # Hermes prints the answer alone
        (json_at(".result"), CLAUDE),
        (json_at(".result"), CLAUDE_STREAM),
        (json_at("[-1].result"), b"[{}, " + CLAUDE + b"]"),
        (json_at(".a[1].b"), b'{"a": [0, {"b": "billing"}]}'),
        (AnswerPlan(kind="after", text="Answer:"), b"Answer: no\nthen\nAnswer: billing"),
        (AnswerPlan(kind="match", text=r"team=(\w+)"), b"team=x team=billing."),
        (AnswerPlan(kind="match", text=r"bill\w+"), b"the billing team"),
    ],
)
def test_answers_of_known_agents_and_declared_places(answer: AnswerPlan, output: bytes) -> None:
    assert take_answer(answer, output, NOWHERE) == "billing"


@pytest.mark.parametrize(
    ("answer", "output", "said"),
    [
        (json_at(".result"), b"no json at all", "`.result`"),
        (json_at(".result"), b'{"result": null}', "`.result`"),
        (json_at(".a[0]"), b'{"a": "text"}'.replace(b'"text"', b"{}"), "`.a[0]`"),
        (json_at(".result"), b"[" * 100_000, "`.result`"),
        (AnswerPlan(kind="after", text="Answer:"), b"nothing", "`Answer:`"),
        (AnswerPlan(kind="match", text="(a)?b+"), b"b", "`(a)?b+`"),
        (AnswerPlan(kind="match", text="z"), b"b", "`z`"),
        (AnswerPlan(), b"ab\xff", "byte 2"),
    ],
)
def test_an_answer_that_is_not_there_is_missing(answer: AnswerPlan, output: bytes, said: str) -> None:
    with pytest.raises(AnswerMissing) as missing:
        take_answer(answer, output, NOWHERE)
    assert said in str(missing.value)


@pytest.mark.parametrize("answer", [AnswerPlan(), json_at(".x"), AnswerPlan(kind="match", text="x")])
def test_no_output_is_empty_whatever_was_declared(answer: AnswerPlan) -> None:
    assert take_answer(answer, b" \n", NOWHERE) == ""


def test_what_is_no_text_in_json_is_given_as_json() -> None:
    assert take_answer(json_at(".x"), b'{"x": {"team": "b\\u00e9"}}', NOWHERE) == '{"team": "bé"}'
    assert take_answer(json_at(".x"), b'{"x": 7}', NOWHERE) == "7"


@given(st.binary(max_size=200))
def test_whatever_is_printed_gives_a_text_or_is_missing(output: bytes) -> None:
    for answer in (
        AnswerPlan(),
        json_at(".a[0]"),
        AnswerPlan(kind="after", text="a"),
        AnswerPlan(kind="match", text="a+"),
    ):
        with contextlib.suppress(AnswerMissing):
            assert isinstance(take_answer(answer, output, NOWHERE), str)


def test_a_file_counts_only_if_this_call_wrote_it(tmp_path: Path) -> None:
    answer = AnswerPlan(kind="file", text="last.txt")
    with pytest.raises(AnswerMissing, match="wrote no file"):
        take_answer(answer, b"ignored", tmp_path)
    prepare_answer(answer, tmp_path)
    (tmp_path / "last.txt").write_text(" one\n")
    assert take_answer(answer, b"", tmp_path) == "one"
    prepare_answer(answer, tmp_path)
    with pytest.raises(AnswerMissing, match="from an earlier call"):
        take_answer(answer, b"", tmp_path)
    assert (tmp_path / "last.txt").read_text() == " one\n"


def test_a_file_elsewhere_is_none(tmp_path: Path) -> None:
    inside = tmp_path / "work"
    inside.mkdir()
    (tmp_path / "secret").write_text("x")
    (inside / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(inside / "pipe")
    for name in ("link", "pipe", "."):
        with pytest.raises(AnswerMissing):
            take_answer(AnswerPlan(kind="file", text=name), b"", inside)


# ---- conversations --------------------------------------------------------------------------------

SYSTEM = {"role": "system", "content": "the skill"}
ASKED = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}


def test_a_question_stands_below_the_system_messages_as_it_is() -> None:
    assert prompt_text([SYSTEM, ASKED]) == "the skill\n\na\nb"
    assert (system_text([SYSTEM, ASKED]), user_text([SYSTEM, ASKED])) == ("the skill", "a\nb")
    assert prompt_text([{"role": "user", "content": "alone"}]) == "alone"


def test_more_messages_have_their_roles_over_them() -> None:
    history = [SYSTEM, ASKED, {"role": "assistant", "content": "no"}, {"role": "user", "content": "again"}]
    assert prompt_text(history) == "the skill\n\n[user]\na\nb\n\n[assistant]\nno\n\n[user]\nagain"


def test_an_image_is_no_text() -> None:
    with pytest.raises(UnsupportedContent, match="image_url"):
        prompt_text([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}])
