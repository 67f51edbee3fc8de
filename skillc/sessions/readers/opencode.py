"""opencode: the tables `session`, `message` and `part` of its database, or what `opencode export` writes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from skillc.sessions.readers.records import (
    Head,
    Problem,
    arguments_of,
    connect,
    count_of,
    object_of,
    text_of,
    time_of,
)
from skillc.sessions.session import End, Event, Session, Tokens
from skillc.trajectories.trajectory import Message, Observation, ToolCall


def recognises(head: Head) -> bool:
    """Return whether a file is opencode's database, or one exported session."""
    exported = any("info" in each and isinstance(each.get("messages"), list) for each in head.records)
    return exported or (
        head.has_table("session", "id", "directory") and head.has_table("part", "message_id", "session_id", "data")
    )


def read(path: Path) -> Iterator[Session | Problem]:
    """Yield the sessions of a database by the time they began, or the exported one."""
    if path.suffix == ".json":
        yield from _exported(path)
        return
    try:
        with closing(connect(path)) as database:
            for row in database.execute("SELECT * FROM session ORDER BY time_created, id"):
                yield _session(dict(row), _messages(database, row["id"]), path)
    except (sqlite3.Error, ValueError) as problem:
        yield Problem(str(path), 0, str(problem))


def _exported(path: Path) -> Iterator[Session | Problem]:
    try:
        value = object_of(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError):
        yield Problem(str(path), 0, "it is no JSON")
        return
    info = object_of(value.get("info"))
    times = object_of(info.get("time"))
    flat = {
        **info,
        "parent_id": info.get("parentID"),
        "time_created": times.get("created"),
        "time_updated": times.get("updated"),
    }
    messages = ((object_of(each.get("info")), each.get("parts") or []) for each in value.get("messages") or [])
    yield _session(flat, messages, path)


def _messages(database: sqlite3.Connection, session: str) -> Iterator[tuple[Mapping[str, Any], list[Any]]]:
    rows = database.execute(
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", (session,)
    ).fetchall()
    for row in rows:
        parts = database.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", (row["id"],))
        yield {"id": row["id"], **object_of(row["data"])}, [object_of(part["data"]) for part in parts]


def _session(row: Mapping[str, Any], messages: Iterable[tuple[Mapping[str, Any], list[Any]]], path: Path) -> Session:
    events: list[Event] = []
    tokens, cost, model, end, last = Tokens(), 0.0, "", "unknown", None
    reverted = object_of(row.get("revert")).get("messageID")
    for info, parts in messages:
        if reverted is not None and info.get("id") == reverted:
            break
        times = object_of(info.get("time"))
        at = time_of(times.get("created"))
        last = time_of(times.get("completed")) or at or last
        if info.get("role") == "assistant":
            chosen = object_of(info.get("model")) or info
            model = str(chosen.get("modelID") or chosen.get("id") or model)
            used = object_of(info.get("tokens"))
            cache = object_of(used.get("cache"))
            read_, written = count_of(cache.get("read")), count_of(cache.get("write"))
            received = count_of(used.get("output")) + count_of(used.get("reasoning"))
            tokens += Tokens(count_of(used.get("input")) + read_ + written, read_, received)
            cost += info["cost"] if isinstance(info.get("cost"), int | float) else 0
            end = _end(info)
        else:
            end = "unknown"
        for part in parts:
            events += _events(object_of(part), str(info.get("role")), at)
    version = str(row.get("version") or "")
    return Session(
        key=f"opencode:{row.get('id') or path.stem}",
        format="opencode",
        source=str(path),
        agent=f"opencode {version}".strip(),
        model=model,
        project=str(row.get("directory") or ""),
        began=time_of(row.get("time_created")),
        ended=last or time_of(row.get("time_updated")),
        events=tuple(events),
        tokens=tokens,
        cost=cost or None,
        parent=f"opencode:{row['parent_id']}" if row.get("parent_id") else None,
        end=end,  # type: ignore[arg-type]  # one of End
    )


def _end(info: Mapping[str, Any]) -> End:
    error = object_of(info.get("error"))
    if error:
        return "interrupted" if error.get("name") == "MessageAbortedError" else "failed"
    return "finished" if object_of(info.get("time")).get("completed") or info.get("finish") else "unknown"


def _events(part: Mapping[str, Any], role: str, at: str | None) -> Iterator[Event]:
    match part.get("type"):
        case "text" if part.get("text"):
            automatic = role == "user" and bool(part.get("synthetic") or part.get("ignored"))
            yield Event(Message(str(part["text"]), "user" if role == "user" else "assistant"), at, automatic)
        case "tool":
            state = object_of(part.get("state"))
            times = object_of(state.get("time"))
            yield Event(
                ToolCall(str(part.get("tool")), arguments_of(state.get("input"))), time_of(times.get("start")) or at
            )
            if state.get("status") in ("completed", "error"):
                failed = state["status"] == "error"
                text = text_of(state.get("error") if failed else state.get("output"))
                yield Event(Observation(text, failed), time_of(times.get("end")) or at)
