"""How candidates are decided: by the gates, or each is accepted (`accept = always`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from skillc.document.skill import Document
from skillc.optimize.engine import Engine, State, is_right
from skillc.optimize.gate.gate import Decision, hopeless
from skillc.optimize.gate.pool import race, take
from skillc.outcomes import Example
from skillc.plan.schema import GatePlan, Plan


class Decide(Protocol):
    """Decides candidates."""

    async def __call__(
        self,
        engine: Engine,
        state: State,
        candidates: Sequence[Document],
        batch: Sequence[Example],
        *,
        gates: Sequence[GatePlan] | None = None,
        first_wave: Callable[[], None] | None = None,
    ) -> list[Decision]:
        """Return a decision for each candidate, in their order; at most one is `accept`."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One way to decide candidates.

    Attributes:
        decide: decides them.
        on_batch: whether gates on the training batch are decided by it.
        perfect: whether no candidate could be accepted as better than the best skill.
        why: why a candidate was accepted, in words.
    """

    decide: Decide
    on_batch: bool
    perfect: Callable[[Engine, State], bool]
    why: str


def _all_right(engine: Engine, state: State) -> bool:
    return all(is_right(engine, state.best, example) for example in engine.dataset.validation)


BY_GATES = Acceptance(race, True, hopeless, "all gates hold")
ALWAYS = Acceptance(take, False, _all_right, "taken, as each candidate is")


def acceptance_of(plan: Plan) -> Acceptance:
    """Return how a plan decides candidates."""
    return ALWAYS if plan.optimize.accept == "always" else BY_GATES
