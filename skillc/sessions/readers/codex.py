"""Codex: `sessions/YYYY/MM/DD/rollout-*.jsonl`, records with a type and a payload. Unknown types are ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillc.sessions.readers.records import (
    Head,
    Problem,
    arguments_of,
    count_of,
    json_lines,
    object_of,
    parsed,
    steps_of_chat,
    text_of,
    time_of,
)
from skillc.sessions.session import Event, Session, Tokens
from skillc.trajectories.trajectory import Message, Observation, Step, ToolCall

# Messages that Codex writes in the user's place.
_AUTOMATIC = re.compile(
    r"\s*(<(environment_context|user_instructions|permissions|turn_aborted|skill|collaboration_mode|subagent_notification)\b"
    r"|# AGENTS\.md instructions)"
)
_FAILED = re.compile(
    r"\A(Exit code: [1-9]|Process exited with code [1-9])|\n(Exit code: [1-9]|Process exited with code [1-9])"
)


def recognises(head: Head) -> bool:
    """Return whether the first lines are of Codex."""
    return any("payload" in each and each.get("type") in ("session_meta", "response_item") for each in head.records)


def read(path: Path) -> Iterator[Session | Problem]:
    """Yield the session of a file."""
    session = Session(key=f"codex:{path.stem}", format="codex", source=str(path), agent="codex")
    events: list[Event] = []
    found = False
    for _, line in json_lines(path):
        if isinstance(line, Problem):
            yield line
            continue
        payload, at = object_of(line.get("payload")), time_of(line.get("timestamp"))
        found = True
        session = replace(session, began=session.began or at, ended=at or session.ended)
        match line.get("type"):
            case "session_meta":
                session = _with_meta(session, payload)
            case "turn_context":
                session = replace(session, model=str(payload.get("model") or session.model))
            case "response_item":
                events += [Event(step, at, _is_automatic(step)) for step in _steps(payload)]
            case "event_msg":
                session = _with_event(session, payload)
    if found:
        yield replace(session, events=tuple(events))


def _with_meta(session: Session, meta: Mapping[str, Any]) -> Session:
    version, source = str(meta.get("cli_version") or ""), object_of(meta.get("source"))
    parent = object_of(object_of(source.get("subagent")).get("thread_spawn")).get("parent_thread_id")
    return replace(
        session,
        key=f"codex:{meta['id']}" if meta.get("id") else session.key,
        agent=f"codex {version}".strip(),
        project=str(meta.get("cwd") or ""),
        system=text_of(object_of(meta.get("base_instructions")) or meta.get("instructions")),
        parent=f"codex:{parent}" if parent else "codex:" if "subagent" in source else None,
        continues=bool(meta.get("forked_from_id")),
    )


def _with_event(session: Session, event: Mapping[str, Any]) -> Session:
    match event.get("type"):
        case "token_count":
            total = object_of(object_of(event.get("info")).get("total_token_usage"))
            sent, cached = count_of(total.get("input_tokens")), count_of(total.get("cached_input_tokens"))
            return (
                replace(session, tokens=Tokens(sent, cached, count_of(total.get("output_tokens"))))
                if total
                else session
            )
        case "task_complete" | "turn_complete":
            return replace(session, end="finished")
        case "turn_aborted":
            return replace(session, end="interrupted")
        case "error" | "stream_error":
            return replace(session, end="failed")
        case "task_started" | "turn_started" | "user_message":
            return replace(session, end="unknown")
    return session


def _steps(item: Mapping[str, Any]) -> Iterator[Step]:
    match item.get("type"):
        case "message":
            yield from steps_of_chat(item)
        case "function_call" | "custom_tool_call":
            yield ToolCall(str(item.get("name")), arguments_of(item.get("arguments", item.get("input"))))
        case "local_shell_call":
            yield ToolCall("shell", arguments_of(item.get("action")))
        case "web_search_call":
            yield ToolCall("web_search", arguments_of(item.get("action")))
        case "function_call_output" | "custom_tool_call_output":
            yield _result(item.get("output"))


def _result(output: object) -> Observation:
    """Return a tool's result: a text, parts, or JSON with the text and its exit status."""
    value = parsed(output) if isinstance(output, str) else output
    if isinstance(value, dict) and "output" in value:
        status = object_of(value.get("metadata")).get("exit_code")
        return Observation(text_of(value["output"]), status not in (0, None) or value.get("success") is False)
    if isinstance(value, dict) and "content" in value:
        return Observation(text_of(value["content"]), value.get("success") is False)
    text = output if isinstance(output, str) else text_of(output) if output is not None else json.dumps(output)
    return Observation(text, _FAILED.search(text) is not None)


def _is_automatic(step: Step) -> bool:
    return isinstance(step, Message) and step.role == "user" and _AUTOMATIC.match(step.text) is not None
