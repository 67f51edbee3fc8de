"""The interface of an optional mechanism of the loop.

A mechanism is one class in one file and one entry in `registry.py`. Every hook defaults to a no-op, so the loop calls
all hooks and never checks whether a mechanism is on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

from pydantic import JsonValue

from skillc.dataclass import dataclass

if TYPE_CHECKING:
    from skillc.document.skill import Document
    from skillc.optimize.engine import Engine, Position, SearchState
    from skillc.optimize.propose.prompting import Kind, Messages, ReflectRequest, TrajectoryView
    from skillc.optimize.propose.proposals import Proposal
    from skillc.optimize.propose.reflect import Reflection
    from skillc.optimize.propose.replies import ProposedEdit, ReflectReply
    from skillc.plan.schema import Plan


@dataclass(frozen=True)
class ReflectionPrompt:
    """The prompt of a reflection before it is sent.

    Attributes:
        views: gives the trajectories of the batch, whole, by tag.
        sample: (epoch, step, ordinal).
        check: raises `MalformedReply` if a reply does not fit the document.
    """

    messages: Messages
    views: Callable[[], Mapping[str, TrajectoryView]]
    sample: tuple[int, ...]
    check: Callable[[ReflectReply], None]


Ask: TypeAlias = "Callable[[Engine, ReflectionPrompt], Awaitable[ReflectReply | None]]"


@dataclass(frozen=True)
class Epoch:
    """An epoch that has ended.

    Attributes:
        position: of its last step.
        first: the skill that it started with.
        decisions: its records so far; further decisions at its end are appended.
    """

    position: Position
    first: Document
    decisions: Sequence[Mapping[str, JsonValue]]


class Mechanism:
    """An optional part of the loop; `name` is its key in `SearchState.mechanism_state`."""

    name = ""

    @classmethod
    def from_plan(cls, plan: Plan) -> Self | None:
        """Return the mechanism as the plan sets it, or None if it is off."""
        raise NotImplementedError

    def notes(self, state: SearchState) -> Mapping[str, str]:
        """Return notes on rules of the incumbent for every prompt, by rule id."""
        return {}

    def trajectory_tokens(self, limit: int) -> int:
        """Return how many tokens of a trajectory a reflection shows."""
        return limit

    def request(self, request: ReflectRequest) -> ReflectRequest:
        """Return the request with the questions of the mechanism."""
        return request

    def wrap_ask(self, ask: Ask) -> Ask:
        """Return how a reflection is asked."""
        return ask

    def edits(self, kind: Kind, reply: ReflectReply, edits: Sequence[ProposedEdit]) -> Sequence[ProposedEdit]:
        """Return the edits that a reply proposes, the most important first."""
        return edits

    def owns_section(self, section: str) -> bool:
        """Return whether only edits of this mechanism may write a section."""
        return False

    def after_reflections(self, state: SearchState, reflections: Sequence[Reflection]) -> SearchState:
        """Return the state after the reflections of a step."""
        return state

    def proposals(self, state: SearchState, proposals: Sequence[Proposal], most: int) -> Sequence[Proposal]:
        """Return at most `most` further proposals, which are screened like those of the optimizer."""
        return ()

    def step_record(self, state: SearchState, reflections: Sequence[Reflection]) -> Mapping[str, JsonValue]:
        """Return values of a step for the history."""
        return {}

    def after_decision(self, engine: Engine, state: SearchState, position: Position) -> SearchState:
        """Return the state after a decision."""
        return state

    async def epoch_end(self, engine: Engine, state: SearchState, epoch: Epoch) -> AsyncIterator[SearchState]:
        """Yield the state after each decision that the mechanism makes at an epoch's end.

        Raises:
            BudgetReached: a cap does not admit a call.
        """
        nothing: tuple[SearchState, ...] = ()
        for after in nothing:
            yield after

    async def run_end(self, engine: Engine, state: SearchState, position: Position) -> SearchState:
        """Return the state before the final test; the incumbent is the best skill.

        Raises:
            BudgetReached: a cap does not admit a call.
        """
        return state


def notify_mechanisms(engine: Engine, state: SearchState, position: Position) -> SearchState:
    """Return the state after every mechanism has seen a decision."""
    for mechanism in engine.mechanisms:
        state = mechanism.after_decision(engine, state, position)
    return state
