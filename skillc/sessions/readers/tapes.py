"""tapes: the table `nodes` of its SQLite file, or the exported lines of `raw_turns`.

A node is a message that names the one before it; each node that no other names is the end of a conversation. A raw turn
is a whole request with its response.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from skillc.sessions.readers.calls import ModelCall, sessions_of_calls
from skillc.sessions.readers.records import (
    Head,
    Problem,
    connect,
    count_of,
    json_lines,
    list_of,
    object_of,
    parsed,
    steps_of_chat,
    text_of,
    time_of,
    tokens_of,
)
from skillc.sessions.readers.spill import Keyed, grouped
from skillc.sessions.session import Event, Session, Tokens
from skillc.trajectories.trajectory import Message


def recognises(head: Head) -> bool:
    """Return whether a file is a database of tapes, or raw turns."""
    raw = any("raw_request" in each and "harness_session_id" in each for each in head.records)
    return raw or head.has_table("nodes", "hash", "parent_hash", "role", "content")


def read(path: Path) -> Iterator[Session | Problem]:
    """Yield the conversations of a database, or those of raw turns by session."""
    with path.open("rb") as file:
        is_database = file.read(6) == b"SQLite"
    yield from _conversations(path) if is_database else _turns(path)


# ---- the database ----------------------------------------------------------------------------------

_ENDS = """
SELECT hash FROM nodes n WHERE NOT EXISTS (SELECT 1 FROM nodes c WHERE c.parent_hash = n.hash) ORDER BY created_at, hash
"""
_PATH = """
WITH RECURSIVE path(hash, depth) AS (
  VALUES (?, 0) UNION ALL SELECT parent_hash, depth + 1 FROM nodes JOIN path USING (hash) WHERE parent_hash IS NOT NULL
)
SELECT nodes.* FROM path JOIN nodes USING (hash) ORDER BY depth DESC
"""


def _conversations(path: Path) -> Iterator[Session | Problem]:
    try:
        with closing(connect(path)) as database:
            for row in database.execute(_ENDS).fetchall():
                nodes = [dict(node) for node in database.execute(_PATH, (row["hash"],))]
                yield _session(nodes, path)
    except sqlite3.Error as problem:
        yield Problem(str(path), 0, str(problem))


def _session(nodes: list[dict[str, Any]], path: Path) -> Session:
    first, last = nodes[0], nodes[-1]
    events = []
    for node in nodes:
        content = parsed(node["content"]) if isinstance(node["content"], str) else node["content"]
        for step in steps_of_chat({"role": node["role"], "content": content}):
            events.append(Event(step, time_of(node.get("created_at"))))
    tokens = (Tokens(count_of(n.get("prompt_tokens")), 0, count_of(n.get("completion_tokens"))) for n in nodes)
    answered = events and isinstance(events[-1].step, Message) and events[-1].step.role == "assistant"
    return Session(
        key=f"tapes:{last['hash']}",
        format="tapes",
        source=str(path),
        agent=str(last.get("agent_name") or ""),
        model=str(last.get("model") or ""),
        project=str(last.get("project") or ""),
        began=time_of(first.get("created_at")),
        ended=time_of(last.get("created_at")),
        events=tuple(events),
        tokens=sum(tokens, Tokens()),
        continues=first.get("parent_hash") is not None,
        end="finished" if answered else "unknown",
    )


# ---- raw turns -------------------------------------------------------------------------------------


def _turns(path: Path) -> Iterator[Session | Problem]:
    problems: list[Problem] = []

    def records() -> Iterator[Keyed]:
        for line, value in json_lines(path):
            if isinstance(value, Problem):
                problems.append(value)
            else:
                group = str(value.get("harness_session_id") or value.get("id") or line)
                yield group, f"{time_of(value.get('received_at')) or ''} {line:012d}", value

    for group, turns in grouped(records()):
        yield from sessions_of_calls(group, map(_call, turns), format="tapes", source=str(path))
    yield from problems


def _call(turn: Mapping[str, Any]) -> ModelCall:
    request, response = object_of(turn.get("raw_request")), object_of(turn.get("response"))
    choice = object_of((list_of(response.get("choices")) or [None])[0])
    reply = object_of(choice.get("message") or response.get("message")) or response
    return ModelCall(
        [each for each in list_of(request.get("messages")) if isinstance(each, dict)],
        [reply] if reply.get("content") or reply.get("tool_calls") else [],
        system=text_of(request.get("system")),
        model=str(request.get("model") or response.get("model") or ""),
        agent=str(turn.get("agent_name") or turn.get("harness_id") or ""),
        project=str(object_of(turn.get("session_envelope")).get("cwd") or ""),
        began=time_of(turn.get("received_at")),
        tokens=tokens_of(response.get("usage")),
        failed="error" in response,
        tools=len(list_of(request.get("tools"))),
        most=count_of(request.get("max_tokens") or request.get("max_completion_tokens")) or None,
    )
