"""The processes of a run's environments: started on demand, reused by later rollouts, replaced when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from skillc.tasks.environments.process import EnvironmentProcess, Opening


class EnvironmentPool:
    """Lends processes to rollouts; as many are alive as rollouts ran at once."""

    def __init__(self, opening: Opening, *, start_time: float) -> None:
        self._opening = opening
        self._start_time = start_time
        self._idle: list[EnvironmentProcess] = []
        self._alive: set[EnvironmentProcess] = set()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[EnvironmentProcess]:
        """Lend a process for one rollout; after any exception inside it is ended, since its state is unknown.

        Raises:
            EnvironmentFailed: no process could be started.
        """
        process = self._idle.pop() if self._idle else await EnvironmentProcess.start(self._opening, self._start_time)
        self._alive.add(process)
        try:
            yield process
        except BaseException:
            await process.kill()
            self._alive.discard(process)
            raise
        self._idle.append(process)

    async def close(self) -> None:
        """End all processes."""
        alive, self._alive = self._alive, set()
        self._idle.clear()
        await asyncio.gather(*(process.close() for process in alive))
