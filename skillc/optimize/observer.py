"""What the loop reports while it runs. Nothing that comes back decides anything but where a run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

if TYPE_CHECKING:
    from skillc.optimize.engine import Place


@dataclass(frozen=True, slots=True)
class Seen:
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

    def step(self, place: Place, incumbent: JsonValue) -> None:
        """A step begins, or another part of an epoch; `incumbent` is its goal on validation, as the history writes it.

        It may be reported more than once for the same place.
        """

    def candidates(self, edits: Sequence[Sequence[str]]) -> None:
        """Candidates meet their gates, each with its edits in words."""

    def seen(self, candidates: Sequence[Seen]) -> None:
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


class Passing:
    """Passes everything on to another observer."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def step(self, place: Place, incumbent: JsonValue) -> None:
        """Passed on."""
        self._observer.step(place, incumbent)

    def candidates(self, edits: Sequence[Sequence[str]]) -> None:
        """Passed on."""
        self._observer.candidates(edits)

    def seen(self, candidates: Sequence[Seen]) -> None:
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


def cut_by(observer: Observer) -> str:
    """Why work was cancelled; to be called where `CancelledError` is caught, which goes on if nobody wanted a stop."""
    reason = observer.stop_wanted()
    if reason is None:
        raise
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    return reason


class Silent:
    """An observer that keeps the decisions and says nothing."""

    def __init__(self) -> None:
        self.decisions: list[dict[str, JsonValue]] = []
        self.completions: list[dict[str, JsonValue]] = []
        self.notes: list[str] = []

    def step(self, place: Place, incumbent: JsonValue) -> None:
        """Ignored."""

    def candidates(self, edits: Sequence[Sequence[str]]) -> None:
        """Ignored."""

    def seen(self, candidates: Sequence[Seen]) -> None:
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
