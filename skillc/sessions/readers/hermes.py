"""Hermes Agent: the tables `sessions` and `messages` of `state.db`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from skillc.sessions.readers.records import (
    Head,
    Problem,
    arguments_of,
    connect,
    count_of,
    list_of,
    object_of,
    parsed,
    text_of,
    time_of,
)
from skillc.sessions.session import End, Event, Session, Tokens
from skillc.trajectories.trajectory import Message, Observation, ToolCall

# Prompts that Hermes sends to itself after a conversation, and sources that no person writes to.
_AUTOMATIC = ("Review the conversation above", "[SYSTEM", "[System")
_UNATTENDED = frozenset({"cron", "subagent", "batch"})
_ENDS: dict[str, End] = {"error": "failed", "interrupted": "interrupted", "cancelled": "interrupted"}


def recognises(head: Head) -> bool:
    """Return whether a database is Hermes's."""
    return head.has_table("sessions", "id", "source", "started_at", "end_reason") and head.has_table(
        "messages", "session_id", "role", "content", "tool_calls", "timestamp"
    )


def read(path: Path) -> Iterator[Session | Problem]:
    """Yield the sessions of a database, by the time they began."""
    try:
        with closing(connect(path)) as database:
            reasons = {row["id"]: row["end_reason"] for row in database.execute("SELECT id, end_reason FROM sessions")}
            for row in database.execute("SELECT * FROM sessions ORDER BY started_at, id"):
                yield _session(database, row, reasons, path)
    except sqlite3.Error as problem:
        yield Problem(str(path), 0, str(problem))


def _session(database: sqlite3.Connection, row: sqlite3.Row, reasons: dict[str, str | None], path: Path) -> Session:
    names = row.keys()
    parent = row["parent_session_id"] if "parent_session_id" in names else None
    # A session that grew too long continues in a new one.
    continues = parent is not None and reasons.get(parent) in ("compression", "compressed")
    unattended = row["source"] in _UNATTENDED
    events: list[Event] = []
    for message in database.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY timestamp, id", (row["id"],)):
        # A rewound message stays in the table.
        if "active" not in message.keys() or message["active"]:  # noqa: SIM118 - a row has no `in`
            events += _events(message, unattended)

    def counted(name: str) -> int:
        return count_of(row[name]) if name in names else 0

    cached = counted("cache_read_tokens")
    sent = counted("input_tokens") + cached + counted("cache_write_tokens")
    cost = row["actual_cost_usd"] if "actual_cost_usd" in names else None
    last = events[-1].step if events else None
    answered = isinstance(last, Message) and last.role == "assistant"
    return Session(
        key=f"hermes:{row['id']}",
        format="hermes",
        source=str(path),
        agent="hermes",
        model=row["model"] or "",
        project=(row["cwd"] or "") if "cwd" in names else "",
        system=row["system_prompt"] or "",
        began=time_of(row["started_at"]),
        ended=time_of(row["ended_at"]) or (events[-1].at if events else None),
        events=tuple(events),
        tokens=Tokens(sent, cached, counted("output_tokens")),
        cost=cost if isinstance(cost, float) else None,
        parent=f"hermes:{parent}" if parent and not continues else None,
        continues=continues,
        end=_ENDS.get(row["end_reason"] or "", "finished" if answered else "unknown"),
        tags=(row["source"],),
    )


def _events(message: sqlite3.Row, unattended: bool) -> Iterator[Event]:
    at, content = time_of(message["timestamp"]), message["content"] or ""
    if content.startswith(("[{", "{")):
        content = text_of(parsed(content))
    match message["role"]:
        case "user":
            yield Event(Message(content, "user"), at, unattended or content.lstrip().startswith(_AUTOMATIC))
        case "assistant":
            if content:
                yield Event(Message(content), at)
            for call in list_of(message["tool_calls"]):
                made = object_of(object_of(call).get("function") or call)
                yield Event(ToolCall(str(made.get("name", "")), arguments_of(made.get("arguments"))), at)
        case "tool":
            yield Event(Observation(content, _failed(content)), at)


def _failed(content: str) -> bool:
    """Return whether a result is that of a tool that failed: Hermes writes results as JSON."""
    value = parsed(content)
    if not isinstance(value, dict):
        return False
    return bool(value.get("error")) or value.get("success") is False or value.get("exit_code") not in (0, None)
