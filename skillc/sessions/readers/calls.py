"""Join recorded model calls to sessions: each request repeats the conversation so far.

Tracing tools and proxies record calls, not sessions. A call continues a conversation if its messages begin with that
conversation; any other call starts a new one. So sub-agents and small requests (titles, safety checks) of a trace
become separate sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from skillc.dataclass import dataclass
from skillc.sessions.readers.records import steps_of_chat, text_of
from skillc.sessions.session import End, Event, Mark, Session, Tokens
from skillc.trajectories.trajectory import Message, Step

_SMALL_REPLY = 256
"""Tokens of the largest reply that a request for a title or a check asks for."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model.

    Attributes:
        messages: of the request, in OpenAI's or Anthropic's form.
        reply: messages of the reply.
        tools: how many were offered; None if that is not recorded.
        most: tokens that the reply may have; None if that is not recorded.
    """

    messages: Sequence[Mapping[str, Any]]
    reply: Sequence[Mapping[str, Any]] = ()
    system: str = ""
    model: str = ""
    agent: str = ""
    project: str = ""
    began: str | None = None
    ended: str | None = None
    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None
    failed: bool = False
    tools: int | None = None
    most: int | None = None
    marks: tuple[Mark, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(slots=True)
class _Thread:
    said: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)


def sessions_of_calls(
    group: str,
    calls: Iterable[ModelCall],
    *,
    format: str,  # noqa: A002 - the field's name
    source: str,
) -> Iterator[Session]:
    """Yield the conversations of one group of calls; the first has the group's name as its key."""
    threads: list[_Thread] = []
    for call in calls:
        system = call.system or "\n".join(
            text_of(each.get("content")) for each in call.messages if each.get("role") in ("system", "developer")
        )
        steps = [step for message in call.messages for step in steps_of_chat(message)]
        asked = [repr(step) for step in steps]
        thread = _continued(threads, asked)
        if thread is None:
            thread = _Thread()
            threads.append(thread)
        thread.events += [Event(step, call.began) for step in steps[len(thread.said) :]]
        answer: list[Step] = [
            step for message in call.reply for step in steps_of_chat({"role": "assistant", **message})
        ]
        thread.events += [Event(step, call.ended or call.began) for step in answer]
        thread.said = [*asked, *map(repr, answer)]
        thread.calls.append(call if call.system else replace(call, system=system))
    for number, thread in enumerate(threads):
        key = f"{format}:{group}" + (f"/{number + 1}" if number else "")
        yield _session(key, thread, format, source)


def _continued(threads: Sequence[_Thread], asked: Sequence[str]) -> _Thread | None:
    """Return the thread that is the longest beginning of the asked messages."""
    fitting = [thread for thread in threads if thread.said and asked[: len(thread.said)] == thread.said]
    return max(fitting, key=lambda thread: len(thread.said), default=None)


def _session(key: str, thread: _Thread, format: str, source: str) -> Session:  # noqa: A002 - the field's name
    first, last = thread.calls[0], thread.calls[-1]
    costs = [call.cost for call in thread.calls if call.cost is not None]
    small = all(call.tools == 0 and call.most is not None and call.most <= _SMALL_REPLY for call in thread.calls)
    events = thread.events
    if small:
        events = [
            Event(event.step, event.at, isinstance(event.step, Message) and event.step.role == "user")
            for event in events
        ]
    end: End = "failed" if last.failed else "finished" if thread.events else "unknown"
    return Session(
        key=key,
        format=format,
        source=source,
        agent=first.agent,
        model=last.model,
        project=first.project,
        system=first.system,
        began=first.began,
        ended=last.ended or last.began,
        events=tuple(events),
        tokens=sum((call.tokens for call in thread.calls), Tokens()),
        cost=sum(costs) if costs else None,
        end=end,
        marks=tuple(dict.fromkeys(mark for call in thread.calls for mark in call.marks)),
        tags=tuple(dict.fromkeys(tag for call in thread.calls for tag in call.tags)),
    )
