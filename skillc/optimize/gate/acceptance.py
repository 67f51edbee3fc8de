"""How candidates are decided: by the gates, or each is accepted (`accept = always`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from skillc.document.skill import Document
from skillc.gates.stages import reads_batch
from skillc.optimize.engine import Engine, State, is_right
from skillc.optimize.gate.gate import Decision, hopeless
from skillc.optimize.gate.pool import race, take
from skillc.outcomes import Example
from skillc.plan.schema import GatePlan, Plan


class Acceptance(Protocol):
    """How candidates are decided, and when no candidate can be better."""

    def reads_batch(self, gates: Sequence[GatePlan]) -> bool:
        """Return whether the decision reads the training batch."""

    async def decide(
        self,
        engine: Engine,
        state: State,
        candidates: Sequence[Document],
        batch: Sequence[Example],
        *,
        gates: Sequence[GatePlan] | None,
        first_wave: Callable[[], None] | None,
    ) -> list[Decision]:
        """Return a decision for each candidate, in their order; at most one is `accept`."""

    @property
    def why(self) -> str:
        """Why a candidate was accepted, in words."""

    def perfect(self, engine: Engine, state: State) -> bool:
        """Return whether no candidate could be accepted as better than the best skill."""


class ByGates:
    """All gates must hold."""

    why = "all gates hold"

    def reads_batch(self, gates: Sequence[GatePlan]) -> bool:
        """Return whether a gate reads the training batch."""
        return any(reads_batch(gate.term) for gate in gates)

    async def decide(
        self,
        engine: Engine,
        state: State,
        candidates: Sequence[Document],
        batch: Sequence[Example],
        *,
        gates: Sequence[GatePlan] | None,
        first_wave: Callable[[], None] | None,
    ) -> list[Decision]:
        """Race the candidates until the gates and the goal leave one or none."""
        return await race(engine, state, candidates, batch, gates=gates, first_wave=first_wave)

    def perfect(self, engine: Engine, state: State) -> bool:
        """Return whether a gate already fails with nothing known about a candidate."""
        return hopeless(engine, state)


class Always:
    """The best candidate of a step is accepted, whatever its gates say."""

    why = "taken, as each candidate is"

    def reads_batch(self, gates: Sequence[GatePlan]) -> bool:
        """Return False: all of validation is measured and no batch."""
        return False

    async def decide(
        self,
        engine: Engine,
        state: State,
        candidates: Sequence[Document],
        batch: Sequence[Example],
        *,
        gates: Sequence[GatePlan] | None,
        first_wave: Callable[[], None] | None,
    ) -> list[Decision]:
        """Measure all of validation and accept the candidate with the highest goal."""
        return await take(engine, state, candidates, batch, gates=gates)

    def perfect(self, engine: Engine, state: State) -> bool:
        """Return whether the best skill is right on every validation example."""
        return all(is_right(engine, state.best, example) for example in engine.dataset.validation)


def acceptance_of(plan: Plan) -> Acceptance:
    """Return how a plan decides candidates."""
    return Always() if plan.optimize.accept == "always" else ByGates()
