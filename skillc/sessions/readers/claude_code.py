"""Claude Code: `projects/FOLDER/SESSION.jsonl`, lines that are linked by `parentUuid`.

The form is internal to Claude Code and not documented, so unknown lines are ignored. A session that was rewound keeps
its abandoned messages in the file; a sub-agent's are marked `isSidechain`, in the same file or in a separate one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from skillc.dataclass import dataclass
from skillc.sessions.readers.records import Head, Problem, json_lines, object_of, steps_of_chat, time_of, tokens_of
from skillc.sessions.session import End, Event, Session, Tokens
from skillc.trajectories.trajectory import Message, Observation

_INTERRUPTED = "[Request interrupted by user"
# Messages that Claude Code writes in the user's place: commands and their output, notices, reminders.
_AUTOMATIC = re.compile(
    r"\s*(<(command-name|command-message|local-command-stdout|local-command-stderr|bash-stdout|bash-stderr|"
    r"system-reminder|user-prompt-submit-hook|task-notification)>|Caveat: The messages below)"
)
_CONTINUED = "This session is being continued from a previous conversation"


def recognises(head: Head) -> bool:
    """Return whether the first lines are of Claude Code."""
    known = ("user", "assistant", "summary", "system", "file-history-snapshot", "queue-operation", "progress")
    typed = [each for each in head.records if each.get("type") in known]
    return bool(typed) and any("sessionId" in each or "leafUuid" in each or "messageId" in each for each in typed)


@dataclass(slots=True)
class _Part:
    """A session that is being read: the main one, or one of a sub-agent."""

    events: list[Event] = field(default_factory=list)
    # Events before each line, by the line's uuid.
    after: dict[str, int] = field(default_factory=dict)
    usage: dict[str, Tokens] = field(default_factory=dict)
    first: Mapping[str, Any] = field(default_factory=dict)
    last: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    continues: bool = False
    end: End = "unknown"


def read(path: Path) -> Iterator[Session | Problem]:
    """Yield the session of a file and those of its sub-agents."""
    parts: dict[str, _Part] = {}
    # The part of each line, by uuid.
    home: dict[str, str] = {}
    for _, line in json_lines(path):
        if isinstance(line, Problem):
            yield line
        elif line.get("type") in ("user", "assistant") and isinstance(line.get("message"), dict):
            name = _part_of(line, home)
            home[str(line.get("uuid"))] = name
            _add(parts.setdefault(name, _Part()), line, path)
    for name, part in parts.items():
        yield _session(part, name, path)


def _part_of(line: Mapping[str, Any], home: Mapping[str, str]) -> str:
    """Return the empty text for the main session, else a name of the sub-agent."""
    if not line.get("isSidechain"):
        return ""
    return str(line.get("agentId") or home.get(str(line.get("parentUuid"))) or line.get("uuid"))


def _add(part: _Part, line: Mapping[str, Any], path: Path) -> None:
    message = object_of(line.get("message"))
    automatic = bool(line.get("isMeta") or line.get("isCompactSummary"))
    events = []
    for step in steps_of_chat(message):
        if isinstance(step, Message) and step.role == "user":
            if step.text.startswith(_INTERRUPTED):
                part.end = "interrupted"
                continue
            part.end = "unknown"
            written = automatic or _AUTOMATIC.match(step.text) is not None
        else:
            written = False
        events.append(Event(step, time_of(line.get("timestamp")), written))
    _rewind(part, line, events)
    if not part.first:
        part.first = line
        part.continues = bool(line.get("parentUuid")) and not line.get("isSidechain")
    part.continues |= not part.events and any(
        isinstance(event.step, Message) and event.step.text.startswith(_CONTINUED) for event in events
    )
    part.last = line
    part.events += events
    part.after[str(line.get("uuid"))] = len(part.events)
    if message.get("role") == "assistant":
        model = str(message.get("model") or "")
        part.end = "failed" if line.get("isApiErrorMessage") else "finished"
        if model and model != "<synthetic>":
            part.model = model
        # A reply is written in several lines, each with the usage of the whole.
        part.usage[str(message.get("id") or line.get("uuid"))] = tokens_of(message.get("usage"))


def _rewind(part: _Part, line: Mapping[str, Any], events: list[Event]) -> None:
    """Drop what was abandoned when a person goes back to an earlier message and writes another one."""
    kept = part.after.get(str(line.get("parentUuid")))
    if kept is None or not any(
        isinstance(e.step, Message) and e.step.role == "user" and not e.automatic for e in events
    ):
        return
    left = part.events[kept:]
    if any(not isinstance(event.step, Observation) for event in left):
        del part.events[kept:]


def _session(part: _Part, name: str, path: Path) -> Session:
    first, last = part.first, part.last
    session = str(first.get("sessionId") or path.stem)
    main = f"claude-code:{session}"
    version = str(first.get("version") or "")
    return Session(
        key=f"{main}/{name}" if name else main,
        format="claude-code",
        source=str(path),
        agent=f"claude-code {version}".strip(),
        model=part.model,
        project=str(first.get("cwd") or ""),
        began=time_of(first.get("timestamp")),
        ended=time_of(last.get("timestamp")),
        events=tuple(part.events),
        tokens=sum(part.usage.values(), Tokens()),
        parent=main if name else None,
        continues=part.continues,
        end=part.end,
    )
