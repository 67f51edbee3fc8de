"""The kind of rollouts of one turn, `predict` and `chain_of_thought`. DSPy is imported by the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc.outcomes import Example
from skillc.tasks.kind import RolloutKind, Site, Skill, rollout_kind
from skillc.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    from skillc.tasks.predict import Turns


@rollout_kind("predict", "chain_of_thought")
class OneTurn(RolloutKind):
    """One call for each rollout, and one more for each skill that it opens."""

    opens = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._turns: Turns | None = None

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`; an unreadable reply is the problem of the trajectory."""
        if self._turns is None:
            await self.site.client.try_early(self.site.role)
            # This imports DSPy, which takes longer than all before the first call.
            from skillc.tasks.predict import Turns

            self._turns = self._turns or Turns(self.site)
        return await self._turns.run(skill, example, sample=sample)
