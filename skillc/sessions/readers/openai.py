"""Lines with messages in OpenAI's or Anthropic's chat form: `{"messages": [...]}`, a session each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skillc.sessions.readers.calls import ModelCall, sessions_of_calls
from skillc.sessions.readers.records import Head, Problem, json_lines, object_of, time_of, tokens_of
from skillc.sessions.session import Mark, Session


def recognises(head: Head) -> bool:
    """Return whether each of the first objects has messages."""
    return bool(head.records) and all(isinstance(each.get("messages"), list) for each in head.records)


def read(path: Path) -> Iterator[Session | Problem]:
    """Yield a session for each line. Other keys with a number, a truth value or a score are taken as marks."""
    for line, value in json_lines(path):
        if isinstance(value, Problem):
            yield value
            continue
        messages = value.get("messages")
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            yield Problem(str(path), line, "it has no list `messages`")
            continue
        name = str(value.get("id") or value.get("session_id") or f"{path.name}:{line}")
        at = time_of(value.get("created") or value.get("timestamp") or value.get("created_at"))
        call = ModelCall(
            messages,
            system=str(value.get("system") or ""),
            model=str(value.get("model") or ""),
            began=at,
            tokens=tokens_of(value.get("usage")),
            marks=tuple(_marks(value)),
        )
        yield from sessions_of_calls(name, [call], format="openai", source=str(path))


def _marks(value: dict[str, Any]) -> Iterator[Mark]:
    for name in ("score", "reward", "rating", "label", "success"):
        if isinstance(value.get(name), int | float | bool | str):
            yield Mark(name, value[name], "file")
    for name, score in object_of(value.get("scores")).items():
        if isinstance(score, int | float | bool | str):
            yield Mark(str(name), score, "file")
