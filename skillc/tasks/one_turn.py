"""The kind of rollouts of one turn, `predict` and `chain_of_thought`. DSPy is imported by the first of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from skillc.outcomes import Example
from skillc.tasks.kind import RolloutKind, Skill, rollout_kind
from skillc.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    from skillc.tasks.predict import Turns


@rollout_kind("predict", "chain_of_thought")
class OneTurn(RolloutKind):
    """One call for each rollout, and one more for each skill that it opens."""

    opens = True

    @cached_property
    def _turns(self) -> Turns:
        from skillc.tasks.predict import Turns

        return Turns(self.site)

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`; an unreadable reply is the problem of the trajectory."""
        return await self._turns.run(skill, example, sample=sample)
