"""What a run that goes on knows from its earlier sessions: outcomes and replies, each with what it was charged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from pydantic import JsonValue

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
