"""Set apart the sessions that are not a complete example of a person working with an agent, with the reason.

A team that trained on 77,000 raw sessions kept 6,300: the rest were title requests, resumed copies, sub-agents and
sessions that broke off. Each reason is counted, and nothing is deleted: a session that is set apart stays in the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from skillc.sessions.session import Session
from skillc.trajectories.trajectory import Message, Observation, ToolCall

Reason = Literal[
    "sidechain", "automatic", "empty", "no start", "no end", "duplicate", "beginning", "suspect", "withdrawn"
]

REASONS: Mapping[Reason, str] = MappingProxyType(
    {
        "sidechain": "a sub-agent's: another agent wrote its task",
        "automatic": "no message of a person: title requests, checks, scheduled prompts, hooks",
        "empty": "the agent did nothing",
        "no start": "it begins in the middle: with a summary, a reply, or a message that is not there",
        "no end": "it breaks off: the last call has no result, the last message no answer, or it ended in an error",
        "duplicate": "another session has the same messages",
        "beginning": "another session has all of its messages and goes on",
        "suspect": "it may have instructions of somebody else; `skillc sessions suspects` shows them",
        "withdrawn": "a person withdrew it; nothing may be learned from it",
    }
)


def reason_apart(session: Session) -> Reason | None:
    """Return why a session is set apart by itself; None if it is usable. Copies and suspects are found elsewhere."""
    if session.parent is not None:
        return "sidechain"
    if not any(True for _ in session.by("user")):
        return "automatic" if any(_is_user(event.step) for event in session.events) else "no start"
    if not any(
        isinstance(step, ToolCall) or (isinstance(step, Message) and not _is_user(step)) for step in session.steps
    ):
        return "empty"
    first = next(event.step for event in session.events if not event.automatic)
    if session.continues or not _is_user(first):
        return "no start"
    if session.end in ("failed", "interrupted") or _breaks_off(session):
        return "no end"
    return None


def _is_user(step: object) -> bool:
    return isinstance(step, Message) and step.role == "user"


def _breaks_off(session: Session) -> bool:
    last = next(event.step for event in reversed(session.events) if not event.automatic)
    return isinstance(last, ToolCall | Observation) or _is_user(last)
