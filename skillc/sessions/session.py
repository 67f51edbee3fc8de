"""One recorded session of an agent, in one form for every source."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Literal

from skillc.dataclass import dataclass
from skillc.redaction import redact_value
from skillc.trajectories.trajectory import Message, Step, Trajectory, redacted

End = Literal["finished", "failed", "interrupted", "unknown"]
"""How a session ended, as far as its source records it."""


@dataclass(frozen=True, slots=True)
class Event:
    """A step of a session.

    Attributes:
        at: when, as ISO 8601 in UTC; None if the source does not record it.
        automatic: a message in the user's place that no person wrote: a hook, a command's output, a reminder.
    """

    step: Step
    at: str | None = None
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a session's model calls.

    Attributes:
        sent: of prompts, those from the provider's cache included.
        cached: of prompts, from the provider's cache.
        received: of replies, those of thought included.
    """

    sent: int = 0
    cached: int = 0
    received: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.sent + other.sent, self.cached + other.cached, self.received + other.received)


@dataclass(frozen=True, slots=True)
class Mark:
    """A score that the source keeps about a session: of a person, a user's thumb, or an evaluator.

    Attributes:
        value: a number, a truth value or a category.
        source: who gave it, in the words of the tool that recorded it.
    """

    name: str
    value: float | bool | str
    source: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """What a user and an agent did together.

    Attributes:
        key: the format and the source's own id, unique in a store.
        format: the name of its reader.
        source: the file it was read from.
        agent: the program that ran it, with its version where known.
        project: the folder, project or service it belongs to.
        system: the system instructions, where they are recorded.
        parent: key of the session that started this one as a sub-agent; None for a session of a user.
        continues: whether its beginning is not in it: a summary of an earlier session, or a reply to a missing message.
        cost: dollars as the source reports them; None if it reports none.
    """

    key: str
    format: str
    source: str = ""
    agent: str = ""
    model: str = ""
    project: str = ""
    system: str = ""
    began: str | None = None
    ended: str | None = None
    events: tuple[Event, ...] = ()
    tokens: Tokens = Tokens()
    cost: float | None = None
    parent: str | None = None
    continues: bool = False
    end: End = "unknown"
    marks: tuple[Mark, ...] = ()
    tags: tuple[str, ...] = field(default=())

    def by(self, role: Literal["user", "assistant"]) -> Iterator[Event]:
        """Yield the messages of a role, in order; automatic ones are not a user's."""
        for event in self.events:
            if isinstance(event.step, Message) and event.step.role == role and not event.automatic:
                yield event

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps without times."""
        return tuple(event.step for event in self.events)

    def chain(self) -> list[bytes]:
        """Return a digest of the conversation up to and including each message of the user or the agent.

        A session whose last digest is in the chain of another one is a beginning of that one: it is left behind when a
        session is resumed in a new file.
        """
        found: list[bytes] = []
        before = b""
        for event in self.events:
            if isinstance(event.step, Message) and not event.automatic:
                text = f"{event.step.role}\n{' '.join(event.step.text.split())}"
                before = hashlib.blake2b(before + text.encode(errors="replace"), digest_size=12).digest()
                found.append(before)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the form of the store, without the values that are columns of it."""
        steps = Trajectory(self.steps).to_json()["steps"]
        flags = [[event.at, event.automatic] for event in self.events]
        marks = [[mark.name, mark.value, mark.source, mark.comment] for mark in self.marks]
        return {"system": self.system, "steps": steps, "flags": flags, "marks": marks, "tags": list(self.tags)}

    def with_content(self, content: Mapping[str, Any]) -> Session:
        """Return the session with what `to_json` returned."""
        steps = Trajectory.from_json({"steps": content["steps"]}).steps
        events = tuple(
            Event(step, at, automatic) for step, (at, automatic) in zip(steps, content["flags"], strict=True)
        )
        marks = tuple(Mark(*values) for values in content["marks"])
        return replace(self, events=events, system=content["system"], marks=marks, tags=tuple(content["tags"]))

    def redacted(self, hide: Callable[[str], str]) -> Session:
        """Return the session with `hide` applied to every text in it, ids apart."""
        steps = redacted(Trajectory(self.steps), hide).steps
        events = tuple(replace(event, step=step) for event, step in zip(self.events, steps, strict=True))
        marks = tuple(
            replace(mark, value=redact_value(mark.value, hide), comment=hide(mark.comment)) for mark in self.marks
        )
        return replace(
            self,
            source=hide(self.source),
            project=hide(self.project),
            system=hide(self.system),
            events=events,
            marks=marks,
            tags=tuple(map(hide, self.tags)),
        )
