"""The record of a run: what it measured, asked and decided, kept as it comes in and used to resume it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.json_values import canonical
from skillc.models.calls import Usage
from skillc.models.client import Charge, Client
from skillc.models.ledger import Spending
from skillc.optimize.record import Value, Work
from skillc.run.history import Decision
from skillc.store.run_store import RunStore


class RunRecord:
    """Answers repeated work from a store, and compares repeated decisions with those in it.

    Args:
        store: of the run.
        client: what the recorded calls are charged to.

    Raises:
        SkillcError: the store cannot be read.
    """

    def __init__(self, store: RunStore, client: Client) -> None:
        self._store = store
        self._client = client
        self._decisions = store.decisions()
        self._decided = 0
        self._step = RecordedWave(store, client)

    def wave(self) -> RecordedWave:
        """As `Record.wave`."""
        return RecordedWave(self._store, self._client)

    def step(self) -> RecordedWave:
        """As `Record.step`; `decide` closes it."""
        return self._step

    def settle(self) -> None:
        """Close the step at hand and put all that is recorded on the disk."""
        self._step.close()
        self._store.sync()

    def decide(self, decision: Decision) -> None:
        """Record a decision and all that it is based on, or compare it with the recorded one.

        Raises:
            SkillcError: an earlier session of this run decided otherwise, or the store cannot be written.
        """
        self._step.close()
        self._decided += 1
        if self._decided > len(self._decisions):
            self._store.add_decision(decision)
        elif canonical(self._decisions[self._decided - 1]) != canonical(decision):
            raise SkillcError(
                f"{_name(decision)} differs from the one that this run recorded before in `{self._store.path}`",
                hint="a model or its server answers differently now; remove the run's folder to start anew",
            )


class RecordedWave:
    """One wave of a run's work."""

    def __init__(self, store: RunStore, client: Client) -> None:
        self._store = store
        self._client = client
        self._failed: list[tuple[bytes, Value, Any]] = []

    async def once(self, key: Sequence[JsonValue], work: Work) -> Value:
        """As `Wave.once`; a recorded value is charged as it was then."""
        name = hashlib.sha256(json.dumps(key, separators=(",", ":")).encode()).digest()
        known = self._store.recall(name)
        if known is not None:
            await self._client.charge([_charge(entry) for entry in known.charges])
            value: Value = known.value
            return value
        with self._client.recorded() as charges:
            value, whole = await work()
        outcome = (name, value, [_entry(charge) for charge in charges])
        if whole:
            self._store.add_outcome(*outcome)
        else:
            self._failed.append(outcome)
        return value

    def close(self) -> None:
        """Record the failures, because they have been used."""
        for outcome in self._failed:
            self._store.add_outcome(*outcome)
        self._failed.clear()


def _name(decision: Decision) -> str:
    """A decision, or the completed validation of an accepted one, as a user knows it."""
    if "completed" in decision:
        return f"the validation after decision {decision['completed']}"
    return f"decision {decision.get('decision')}"


def _entry(charge: Charge) -> list[Any]:
    return [*charge.where, charge.reserved, charge.usage.counts, charge.usage.bound, charge.cost]


def _charge(entry: Sequence[Any]) -> Charge:
    role, stage, reserved, usage, bound, cost = entry
    return Charge((role, stage), Spending(*reserved), Usage.of(usage, bound), cost)
