"""Interfaces through which the loop reaches the run around it: progress, recorded results, the reserved budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pydantic import JsonValue

if TYPE_CHECKING:
    from skillc.optimize.engine import Position


@dataclass(frozen=True, slots=True)
class CandidateProgress:
    """What is known of a candidate while its gates are open: never a mean, because failures are evaluated first.

    Attributes:
        candidate: its number in the pool, from 1.
        gains, losses: validation examples on which its goal is above and below the incumbent's.
        evaluated: examples that were measured for both, `of` how many.
        goal: the goal's mean as the history writes it: two ends where it is open.
    """

    candidate: int
    gains: int
    losses: int
    evaluated: int
    of: int
    goal: JsonValue


class Observer(Protocol):
    """Progress for people and tools, decisions for the journal, and stop requests."""

    def step(self, position: Position, incumbent: JsonValue) -> None:
        """A step begins, or another part of an epoch; `incumbent` is its goal on validation, as the history writes it.

        It may be reported more than once for the same place.
        """

    def candidates(self, edits: Sequence[Sequence[str]]) -> None:
        """Candidates meet their gates, each with its edits in words."""

    def seen(self, candidates: Sequence[CandidateProgress]) -> None:
        """A wave of a gate is in: what is known of each candidate that is still in the race."""

    def stage(self, name: str, total: int) -> None:
        """A stage begins that takes `total` rollouts, or replies of the optimizer; no more are reported as done."""

    def advance(self, count: int = 1) -> None:
        """Some of them are done."""

    def note(self, message: str) -> None:
        """Something that the user should know, which stops nothing."""

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """One decision, as pure values."""

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        """The validation of an accepted candidate is complete: number of the decision and goal, as pure values."""

    def stop_wanted(self) -> str | None:
        """Why the run should end here (`time`, `interrupted`), or None. What is open is cancelled and dropped."""


class ForwardingObserver:
    """Passes everything on to another observer."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def step(self, position: Position, incumbent: JsonValue) -> None:
        """Passed on."""
        self._observer.step(position, incumbent)

    def candidates(self, edits: Sequence[Sequence[str]]) -> None:
        """Passed on."""
        self._observer.candidates(edits)

    def seen(self, candidates: Sequence[CandidateProgress]) -> None:
        """Passed on."""
        self._observer.seen(candidates)

    def stage(self, name: str, total: int) -> None:
        """Passed on."""
        self._observer.stage(name, total)

    def advance(self, count: int = 1) -> None:
        """Passed on."""
        self._observer.advance(count)

    def note(self, message: str) -> None:
        """Passed on."""
        self._observer.note(message)

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """Passed on."""
        self._observer.decided(record)

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        """Passed on."""
        self._observer.completed(record)

    def stop_wanted(self) -> str | None:
        """As the other one wants it."""
        return self._observer.stop_wanted()


def stop_reason(observer: Observer) -> str:
    """Why work was cancelled; to be called where `CancelledError` is caught, which goes on if nobody wanted a stop."""
    reason = observer.stop_wanted()
    if reason is None:
        raise
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    return reason


class SilentObserver:
    """An observer that keeps the decisions and says nothing."""

    def __init__(self) -> None:
        self.decisions: list[dict[str, JsonValue]] = []
        self.completions: list[dict[str, JsonValue]] = []
        self.notes: list[str] = []

    def step(self, position: Position, incumbent: JsonValue) -> None:
        """Ignored."""

    def candidates(self, edits: Sequence[Sequence[str]]) -> None:
        """Ignored."""

    def seen(self, candidates: Sequence[CandidateProgress]) -> None:
        """Ignored."""

    def stage(self, name: str, total: int) -> None:
        """Ignored."""

    def advance(self, count: int = 1) -> None:
        """Ignored."""

    def note(self, message: str) -> None:
        """Kept."""
        self.notes.append(message)

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """Kept."""
        self.decisions.append(dict(record))

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        """Kept."""
        self.completions.append(dict(record))

    def stop_wanted(self) -> str | None:
        """Never."""
        return None


Value: TypeAlias = Mapping[str, JsonValue]
Work: TypeAlias = Callable[[], Awaitable[tuple[Value, bool]]]


class Wave(Protocol):
    """Work that is used together: failures in it are final only when it closes."""

    async def once(self, key: Sequence[JsonValue], work: Work) -> Value:
        """The value that was recorded under a key, else that of the work, which is recorded.

        Args:
            key: what the value depends on, within one run. A key that comes again is the next attempt at it.
            work: gives the value, and whether it is whole. A failure is tried again by a run that goes on, if the
                wave was not closed.
        """

    def close(self) -> None:
        """The failures of the wave have been used from here on."""


class Record(Protocol):
    """The recorded values of one run."""

    def wave(self) -> Wave:
        """A wave of work."""

    def step(self) -> Wave:
        """The work of the step at hand; the next decision closes it."""


class Unrecorded:
    """A record that keeps nothing, and the waves of it."""

    def wave(self) -> Wave:
        """Itself."""
        return self

    step = wave

    async def once(self, key: Sequence[JsonValue], work: Work) -> Value:
        """The work's value."""
        return (await work())[0]

    def close(self) -> None:
        """Nothing to do."""


class Reserve(Protocol):
    """The part of the budget that is reserved for the final test."""

    def set_aside(self) -> None:
        """Reserve it from now on."""

    def open_reserve(self) -> None:
        """Release it for the final test."""
