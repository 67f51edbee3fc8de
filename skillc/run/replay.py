"""Outcomes and replies of a run as they came in: a run that goes on is answered by them, and charged alike."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import JsonValue

from skillc.line_file import LineFile
from skillc.models.accounts import Amount
from skillc.models.calls import Usage
from skillc.models.client import Charge, Client
from skillc.optimize.record import Value, Work

_Line: TypeAlias = dict[str, Any]


class Replay:
    """The record of one run, in a file that only grows.

    Args:
        path: the file.
        client: what the recorded calls are charged to.

    Raises:
        SkillcError: the file cannot be used.
    """

    def __init__(self, path: Path, client: Client) -> None:
        self._client = client
        self._file = LineFile(path, "record of outcomes")
        self._known: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
        for offset, length, line in self._file.whole_lines():
            self._known[line["key"]].append((offset, length))
        self._step = ReplayWave(self)

    def wave(self) -> ReplayWave:
        """A wave of work."""
        return ReplayWave(self)

    def step(self) -> ReplayWave:
        """The work of the step at hand; `decided` closes it."""
        return self._step

    def decided(self) -> None:
        """A decision is about to be written down: all that it stands on must be on the disk."""
        self._step.close()
        self._file.sync()

    def close(self) -> None:
        """Closes the file, which stays."""
        self._file.close()

    async def recalled(self, name: str) -> Value | None:
        """The next recorded value of a key, charged as it was then."""
        places = self._known.get(name)
        if not places:
            return None
        line = self._file.read(*places.popleft())
        await self._client.charge([_charge(entry) for entry in line["charges"]])
        value: Value = line["value"]
        return value

    async def done(self, name: str, work: Work) -> tuple[_Line, bool]:
        """The line of work that is done now, and whether its value is whole."""
        with self._client.recorded() as charges:
            value, whole = await work()
        return {"key": name, "value": value, "charges": [_entry(charge) for charge in charges]}, whole

    def write(self, line: _Line) -> None:
        """Appends a line."""
        self._file.write(line)


class ReplayWave:
    """One wave of a run's work."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._failed: list[_Line] = []

    async def once(self, key: Sequence[JsonValue], work: Work) -> Value:
        """As `Wave.once`."""
        name = hashlib.sha256(json.dumps(key, separators=(",", ":")).encode()).hexdigest()
        known = await self._replay.recalled(name)
        if known is not None:
            return known
        line, whole = await self._replay.done(name, work)
        if whole:
            self._replay.write(line)
        else:
            self._failed.append(line)
        value: Mapping[str, JsonValue] = line["value"]
        return value

    def close(self) -> None:
        """Writes the failures down, because they have been used."""
        for line in self._failed:
            self._replay.write(line)
        self._failed.clear()


def _entry(charge: Charge) -> list[Any]:
    bound = ["bound"] if charge.usage.bound else []
    return [*charge.where, list(charge.reserved), list(charge.usage.counts), charge.cost, *bound]


def _charge(entry: Sequence[Any]) -> Charge:
    role, stage, reserved, usage, cost, *bound = entry
    return Charge((role, stage), Amount(*reserved), Usage.of(usage, bound), cost)
