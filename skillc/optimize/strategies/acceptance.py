"""Decide candidates by the gates, or accept each (`accept = always`) with rollback to the best skill."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.skill import digest, tokens
from skillc.optimize.engine import Engine, Position, RejectedEdit, SearchState, decision_record, is_right, mean_score
from skillc.optimize.gate.decide import with_rejected
from skillc.optimize.gate.gate import Decision, is_hopeless, mean_json
from skillc.optimize.gate.pool import race, take_best
from skillc.optimize.propose.proposals import differences, wording
from skillc.optimize.strategies.mechanism import Mechanism
from skillc.plan.schema import Plan

# With the parameters of `race`.
Decide: TypeAlias = Callable[..., Awaitable[list[Decision]]]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One way to decide candidates.

    Attributes:
        on_batch: whether gates on the training batch are decided by it.
        perfect: whether no candidate could be accepted as better than the best skill.
        why: why a candidate was accepted, in words.
    """

    decide: Decide
    on_batch: bool
    perfect: Callable[[Engine, SearchState], bool]
    why: str


def _all_right(engine: Engine, state: SearchState) -> bool:
    return all(is_right(engine, state.best, example) for example in engine.dataset.validation)


BY_GATES = Acceptance(race, True, is_hopeless, "all gates hold")
ALWAYS = Acceptance(take_best, False, _all_right, "taken, as each candidate is")


def acceptance_of(plan: Plan) -> Acceptance:
    """Return how a plan decides candidates."""
    return ALWAYS if plan.optimize.accept == "always" else BY_GATES


class Rollback(Mechanism):
    """Return to the best skill if the goal has fallen too far below it.

    Args:
        limit: how far it may fall, as a share of the goal's range.
    """

    name = "rollback"

    def __init__(self, limit: Fraction) -> None:
        self._limit = limit

    @classmethod
    def from_plan(cls, plan: Plan) -> Rollback | None:
        """Return the mechanism if `rollback` is set and each candidate is accepted."""
        optimize = plan.optimize
        return cls(optimize.rollback) if optimize.accept == "always" and optimize.rollback is not None else None

    def after_decision(self, engine: Engine, state: SearchState, position: Position) -> SearchState:
        """Return to the best skill by a separate decision, and reject the edits that led away from it."""
        goal = engine.plan.goal
        now, best = mean_score(engine, state.incumbent, goal.name), mean_score(engine, state.best, goal.name)
        if now is None or best is None or best - now <= self._limit * goal.widest:
            return state
        reason = f"the goal fell from {mean_json(best)} to {mean_json(now)}"
        goals: dict[str, JsonValue] = {"incumbent": mean_json(now), "candidate": mean_json(best)}
        record = decision_record(
            state, position, result="rollback", reason=reason, goal=goals, candidate=digest(state.best)
        )
        engine.observer.decided({**record, "kind": "rollback", "tokens": tokens(state.best)})
        text = "; ".join(wording(edit) for edit in differences(state.best, state.incumbent))
        entries = [RejectedEdit(text, f"taken back: {reason}")] if text else []
        return replace(with_rejected(state, entries), incumbent=state.best, decisions=state.decisions + 1)
