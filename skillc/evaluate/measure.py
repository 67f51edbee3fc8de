"""Every skill under every model, side by side, until it is whole or somebody ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from skillc.evaluate.job import Job
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, EndpointAway
from skillc.optimize.final import RETRIES, Compared, measure_side_by_side, unmeasured
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.observer import Observer, Passing, cut_by
from skillc.run.stop import Stop


class Stoppable(Passing):
    """Passes the wish to stop on to where work is cancelled."""

    def __init__(self, observer: Observer, stop: Stop) -> None:
        super().__init__(observer)
        self._stop = stop

    def stop_wanted(self) -> str | None:
        """The user's wish or the clock's, else what the other observer wants."""
        return self._stop.reason or super().stop_wanted()


async def measured(
    job: Job, arms: Sequence[Compared], client: Client, observer: Observer, stop: Stop
) -> tuple[bool, str | None]:
    """Whether every example was tried under every arm, and what ended it early."""
    samples, todo, whole = job.plan.optimize.samples, list(job.examples), False
    async with client.connected():
        try:
            with stop.cuts(clock=True):
                for attempt in range(1 + RETRIES):
                    if stop.reason is not None:
                        return whole, stop.reason
                    name = job.split if attempt == 0 else "what failed, again"
                    observer.stage(name, len(todo) * len(arms) * samples)
                    await measure_side_by_side(arms, todo, samples=samples)
                    whole = True
                    todo = unmeasured(arms, todo, job.plan.goal.name, samples=samples)
                    if not todo:
                        break
        except BudgetReached as cap:
            return whole, cap.cap
        except EndpointAway:
            return whole, DOWN
        except asyncio.CancelledError:
            return whole, cut_by(observer)
    return whole, None
