"""Slots for attempts: so many at once, and work that may turn out useless only where nothing better waits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

_AHEAD: ContextVar[bool] = ContextVar("skillc_ahead", default=False)


@contextmanager
def ahead() -> Iterator[None]:
    """Calls made inside are made ahead of need: they wait for a slot behind all others. Travels with the context."""
    token = _AHEAD.set(True)
    try:
        yield
    finally:
        _AHEAD.reset(token)


class Slots:
    """At most `count` holders at once, on one event loop; first come, first served within a rank."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: tuple[deque[asyncio.Future[None]], ...] = (deque(), deque())

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Holds a slot for as long as the block runs."""
        await self._take()
        try:
            yield
        finally:
            self._give()

    async def _take(self) -> None:
        if self._free:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[_AHEAD.get()].append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._give()
            raise

    def _give(self) -> None:
        for rank in self._waiting:
            while rank:
                place = rank.popleft()
                if not place.done():
                    place.set_result(None)
                    return
        self._free += 1
