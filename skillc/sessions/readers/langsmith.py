"""LangSmith: runs of a bulk export, Parquet or lines of JSON; feedback is a mark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from skillc.errors import SkillcError
from skillc.sessions.readers.calls import ModelCall, sessions_of_calls
from skillc.sessions.readers.records import (
    Head,
    Problem,
    count_of,
    json_objects,
    list_of,
    object_of,
    text_of,
    time_of,
)
from skillc.sessions.readers.spill import Keyed, grouped
from skillc.sessions.session import Mark, Session, Tokens

_NEEDED = frozenset({"run_type", "inputs", "outputs", "trace_id"})
_ROLES = {
    "human": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "humanmessage": "user",
    "systemmessage": "system",
}
_ROLES |= {"toolmessage": "tool", "function": "tool", "aimessagechunk": "assistant"}


def recognises(head: Head) -> bool:
    """Return whether a file has runs of LangSmith."""
    return head.columns >= _NEEDED or any(each.keys() >= _NEEDED for each in head.records)


def read(path: Path) -> Iterator[Session | Problem]:
    """Yield the conversations of each thread, or of each trace without one."""
    problems: list[Problem] = []

    def records() -> Iterator[Keyed]:
        for line, value in _rows(path):
            if isinstance(value, Problem):
                problems.append(value)
            elif value.get("run_type") == "llm":
                metadata = object_of(object_of(value.get("extra")).get("metadata"))
                named = (metadata.get(name) for name in ("session_id", "thread_id", "conversation_id"))
                group = str(value.get("thread_id") or next(filter(None, named), None) or value.get("trace_id"))
                yield group, f"{time_of(value.get('start_time')) or ''} {line:012d}", value

    for group, runs in grouped(records()):
        yield from sessions_of_calls(group, map(_call, runs), format="langsmith", source=str(path))
    yield from problems


def _rows(path: Path) -> Iterator[tuple[int, Any]]:
    if path.suffix != ".parquet":
        yield from json_objects(path)
        return
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise SkillcError(
            f"`{path.name}` needs pyarrow to be read", hint='install it with `pip install "skillc[parquet]"`'
        ) from None
    number = 0
    with ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=256):
            for row in batch.to_pylist():
                number += 1
                yield number, {k: v.isoformat() if isinstance(v, datetime) else v for k, v in row.items()}


def _call(run: Mapping[str, Any]) -> ModelCall:
    inputs, outputs = object_of(run.get("inputs")), object_of(run.get("outputs"))
    details = object_of(run.get("prompt_token_details"))
    asked = object_of(object_of(run.get("extra")).get("invocation_params"))
    metadata = object_of(object_of(run.get("extra")).get("metadata"))
    cost = run.get("total_cost")
    return ModelCall(
        [_message(each) for each in _unwrapped(inputs.get("messages"))],
        _reply(outputs),
        model=str(metadata.get("ls_model_name") or asked.get("model") or ""),
        project=str(run.get("session_name") or run.get("session_id") or ""),
        began=time_of(run.get("start_time")),
        ended=time_of(run.get("end_time")),
        tokens=Tokens(
            count_of(run.get("prompt_tokens")),
            count_of(details.get("cache_read")),
            count_of(run.get("completion_tokens")),
        ),
        cost=float(cost) if isinstance(cost, int | float) else None,
        failed=bool(run.get("error")) or run.get("status") == "error",
        tools=len(list_of(asked["tools"])) if "tools" in asked else None,
        most=count_of(asked.get("max_tokens")) or None,
        marks=tuple(_marks(run)),
        tags=tuple(map(str, list_of(run.get("tags")))),
    )


def _unwrapped(value: object) -> Sequence[Any]:
    """Return the messages of a request; LangChain writes a list of lists, of which a run has one."""
    messages = list_of(value)
    return messages[0] if messages and isinstance(messages[0], list) else messages


def _reply(outputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    generations = _unwrapped(outputs.get("generations"))
    if generations:
        return [
            _message(object_of(generations[0]).get("message")) or {"content": object_of(generations[0]).get("text")}
        ]
    choices = list_of(outputs.get("choices"))
    found = object_of(choices[0]).get("message") if choices else outputs.get("message") or outputs.get("output")
    if found is None and "messages" in outputs:
        found = (_unwrapped(outputs["messages"]) or [None])[-1]
    if found is None:
        found = outputs if "content" in outputs else None
    return [] if found is None else [_message(found) if isinstance(found, dict) else {"content": text_of(found)}]


def _message(value: object) -> dict[str, Any]:
    """Return a message of LangChain or OpenAI in the chat form."""
    message = object_of(value)
    kind = message.get("id")
    inner = object_of(message.get("kwargs") or message.get("data"))
    if inner:
        message = {"type": kind[-1] if isinstance(kind, list) and kind else message.get("type"), **inner}
    role = str(message.get("role") or message.get("type") or "")
    calls = message.get("tool_calls") or object_of(message.get("additional_kwargs")).get("tool_calls")
    found = {"role": _ROLES.get(role.lower(), role), "content": message.get("content")}
    return {**found, "tool_calls": calls} if calls else found if message else {}


def _marks(run: Mapping[str, Any]) -> Iterator[Mark]:
    for name, stats in object_of(run.get("feedback_stats")).items():
        value = object_of(stats).get("avg")
        if isinstance(value, int | float):
            yield Mark(str(name), value, "feedback")
