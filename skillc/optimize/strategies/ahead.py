"""Work ahead of need: the next training batch is rolled out while a gate waits for its own rollouts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from skillc.document.skill import Document, digest
from skillc.models.pacing import prefetching
from skillc.optimize.rollouts import Outcome, Rollouts
from skillc.outcomes import Example

if TYPE_CHECKING:
    from skillc.optimize.engine import Engine


class Ahead:
    """Sends the next step's batch early, behind everything else in line.

    What is sent is always waited for, used or not, so that what a run is charged does not depend on timing.

    Args:
        rollouts: what measures; None sends nothing ahead.
        admits: whether so many more rollouts fit under the caps, at the most that they may cost.

    Attributes:
        sent: rollouts sent ahead so far.
        wasted: those of them that no step used.
    """

    def __init__(self, rollouts: Rollouts | None, admits: Callable[[int], bool]) -> None:
        self._rollouts = rollouts
        self._admits = admits
        self._next: tuple[Example, ...] = ()
        self._open: list[tuple[str, int, asyncio.Task[list[Outcome]]]] = []
        self.sent = self.wasted = 0

    def expect(self, batch: Sequence[Example]) -> None:
        """Names the batch of the step after this one; empty where there is none, or the skill will be another."""
        self._next = tuple(batch)

    def send(self, skill: Document, *, beside: int) -> None:
        """Sends that batch for a skill, if it fits under the caps beside so many rollouts that are about to be sent."""
        if self._rollouts is None:
            return
        known = self._rollouts.known
        todo = [e for e in self._next if (outcome := known(skill, e)) is None or not outcome.measured]
        if not todo or not self._admits(len(todo) + beside):
            return
        with prefetching():
            task = asyncio.ensure_future(self._rollouts.measure(skill, todo, stage="rollout", shown=False))
        self._open.append((digest(skill), len(todo), task))
        self.sent += len(todo)

    async def arrive(self, skill: Document | None) -> None:
        """Waits for all that was sent; what was sent for another skill than this one, the next step's, was for nothing.

        Raises:
            BudgetReached, PermanentFailure, MetricError: as `Rollouts.measure`.
        """
        while self._open:
            name, count, task = self._open[0]
            await asyncio.shield(task)
            self.wasted += count * (skill is None or name != digest(skill))
            del self._open[0]

    async def drop(self) -> None:
        """Ends what is under way, because the run ends."""
        tasks = [task for _, _, task in self._open]
        self._open.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


NOTHING_AHEAD = Ahead(None, lambda rollouts: False)


def ahead_of(engine: Engine) -> Ahead:
    """Return what sends rollouts ahead in a run: nothing unless `speculate` is on and the gates decide."""
    optimize = engine.plan.optimize
    on = optimize.speculate and optimize.accept == "gates"
    return Ahead(engine.rollouts, engine.admits) if on else NOTHING_AHEAD
