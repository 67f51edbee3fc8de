"""What the loop tells the outside while it runs. Nothing that comes back decides anything but where a run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue


class Observer(Protocol):
    """Progress for people, decisions for the journal, and the wish to stop."""

    def stage(self, name: str, total: int) -> None:
        """A stage begins that will take `total` rollouts or calls."""

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
