"""One flight per key: equal calls that overlap wait for one reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Flights(Generic[K, T]):
    """Runs each key once at a time; all on one event loop. A flight that nobody waits for any more is cancelled."""

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[T]] = {}
        self._waiting: dict[K, int] = {}

    async def join(self, key: K, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the flight under way, or of a new one."""
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(start())
            self._tasks[key] = task
            self._waiting[key] = 0
        self._waiting[key] += 1
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._tasks.get(key) is task and self._waiting[key] == 1:
                self._forget(key)
                task.cancel()
                # Whoever is cancelled has to know that nothing of it runs on.
                await asyncio.wait({task})
            raise
        finally:
            self._leave(key, task)

    def _leave(self, key: K, task: asyncio.Task[T]) -> None:
        if self._tasks.get(key) is not task:
            return
        self._waiting[key] -= 1
        if task.done():
            self._forget(key)

    def _forget(self, key: K) -> None:
        del self._tasks[key]
        del self._waiting[key]
