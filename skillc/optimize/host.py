"""Interfaces between the loop and its run: progress, recorded results, the reserved budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.gates.draw import GateState

if TYPE_CHECKING:
    from skillc.optimize.engine import Position


TESTS = "script tests"
"""The `blame` of a candidate that is rejected because its script fails its tests; no gate has this name."""


@dataclass(frozen=True, slots=True)
class CandidateProgress:
    """Evidence on a candidate while its gates are open: never a mean, because failures are evaluated first.

    Attributes:
        candidate: its number in the pool, from 1.
        gains, losses: validation examples on which its goal is above and below the incumbent's.
        evaluated: examples measured for both, `of` how many.
        goal: the mean of the goal as in the history; an interval while it is open.
        gates: each gate with the intervals of its operands.
    """

    candidate: int
    gains: int
    losses: int
    evaluated: int
    of: int
    goal: JsonValue
    gates: tuple[GateState, ...] = ()


class Observer:
    """Receive the loop's events and return the stop request. Events never change a decision."""

    def step(self, position: Position, incumbent: JsonValue) -> None:
        """Start a step or another part of an epoch; `incumbent` is its mean goal on validation, as in the history.

        A position can be reported several times.
        """

    def candidates(self, edits: Sequence[Sequence[str]]) -> None:
        """Start the gates of candidates, each described by its edits."""

    def seen(self, candidates: Sequence[CandidateProgress]) -> None:
        """Report the end of a wave of the gates, with the evidence on each remaining candidate."""

    def stage(self, name: str, total: int) -> None:
        """Start a stage of at most `total` rollouts, or replies of the optimizer."""

    def advance(self, count: int = 1) -> None:
        """Report finished units of the stage."""

    def note(self, message: str) -> None:
        """Report a problem that does not stop the run."""

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """Report a decision."""

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        """Report the number and goal of an accepted candidate after its whole validation."""

    def stop_wanted(self) -> str | None:
        """Return why the run should stop (`time`, `interrupted`), or None. Work in flight is cancelled and dropped."""
        return None


class ForwardingObserver(Observer):
    """Forward all events to another observer, except those that a subclass overrides."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer


def _forwarding(name: str) -> Callable[..., Any]:
    return lambda self, *arguments, **named: getattr(self._observer, name)(*arguments, **named)


# Derived from `Observer`, so that a new event is forwarded too.
for _name in [name for name in vars(Observer) if not name.startswith("_")]:
    setattr(ForwardingObserver, _name, _forwarding(_name))


class SilentObserver(Observer):
    """Keep decisions and notes, and display nothing."""

    def __init__(self) -> None:
        self.decisions: list[dict[str, JsonValue]] = []
        self.completions: list[dict[str, JsonValue]] = []
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        """Keep a note."""
        self.notes.append(message)

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """Keep a decision."""
        self.decisions.append(dict(record))

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        """Keep a completed validation."""
        self.completions.append(dict(record))


def stop_reason(observer: Observer) -> str:
    """Return why work was cancelled. Call it in `except CancelledError`: without a stop request it re-raises."""
    reason = observer.stop_wanted()
    if reason is None:
        raise
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    return reason


Value: TypeAlias = Mapping[str, JsonValue]
Work: TypeAlias = Callable[[], Awaitable[tuple[Value, bool]]]


class Wave(Protocol):
    """A group of results that are used together. Its failures become final when the wave is closed."""

    async def once(self, key: Sequence[JsonValue], work: Work) -> Value:
        """Return the value recorded under a key; otherwise do the work and record its value.

        Args:
            key: identifies everything the value depends on within one run. A repeated key is the next attempt.
            work: returns the value, and whether it succeeded. A resumed run repeats a failure whose wave was not
                closed.
        """

    def close(self) -> None:
        """Make the failures of the wave final."""


class Record(Protocol):
    """Recorded results used to resume a run: outcomes and replies, each with its charges."""

    def wave(self) -> Wave:
        """Open a wave."""

    def step(self) -> Wave:
        """Return the wave of the current step, which the next decision closes."""


class Unrecorded:
    """Null implementation of a record and its waves."""

    def wave(self) -> Wave:
        """Return itself."""
        return self

    step = wave

    async def once(self, key: Sequence[JsonValue], work: Work) -> Value:
        """Do the work."""
        return (await work())[0]

    def close(self) -> None:
        """Do nothing."""


class Reserve(Protocol):
    """Budget reserved for the final test."""

    def set_aside(self) -> None:
        """Start to withhold it from the loop."""

    def open_reserve(self) -> None:
        """Release it for the final test."""


class NoReserve:
    """Null implementation of a reserve, for runs without a final test."""

    def set_aside(self) -> None:
        """Do nothing."""

    def open_reserve(self) -> None:
        """Do nothing."""
