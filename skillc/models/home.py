"""The one event loop on which a client's calls run, reachable from every thread and from other loops."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from skillc.models import wire

T = TypeVar("T")


class Home:
    """Binds to the first loop that uses it, so that an async caller pays nothing.

    A synchronous first caller binds it to the loop of a thread, which all clients of the process share from then on.
    When the bound loop is closed, as after `asyncio.run`, the next caller's loop takes its place.
    """

    def __init__(self, on_move: Callable[[], None]) -> None:
        self._on_move = on_move
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    async def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs on the home loop, whichever loop asks."""
        here = asyncio.get_running_loop()
        home = self._choose(here)
        if home is here:
            return await start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(start(), home))

    def run_sync(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs on the home loop and waits.

        Raises:
            RuntimeError: called on the home loop itself, where waiting would stop the loop for ever.
        """
        home = self._choose(None)
        if home is _running():
            raise RuntimeError("a synchronous model call inside the event loop that would answer it; await `acall`")
        return asyncio.run_coroutine_threadsafe(start(), home).result()

    def bind(self) -> None:
        """Chooses the home loop now, the running one where it is free to."""
        self._choose(_running())

    def post(self, action: Callable[[], None]) -> None:
        """Does something on the home loop: at once where it is the running one, else soon."""
        home = self._loop
        if home is None or home.is_closed() or home is _running():
            action()
        else:
            home.call_soon_threadsafe(action)

    def _choose(self, caller: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                running = _SHARED.running()
                self._loop = running or (caller if caller is not None else _SHARED.loop())
                self._on_move()
            return self._loop


class _Background:
    """A loop on a thread of its own. One for the process: litellm's own worker complains when loops take turns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def running(self) -> asyncio.AbstractEventLoop | None:
        """The loop, if it was started."""
        with self._lock:
            return self._loop if self._thread is not None and self._thread.is_alive() else None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop, started at the first call."""
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="skillc models", daemon=True)
                self._thread.start()
                # A loop that the interpreter's end interrupts complains of its open tasks.
                atexit.register(_stop, self._loop, self._thread)
            return self._loop


_SHARED = _Background()


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if thread.is_alive() and not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(wire.disconnect())
    finally:
        loop.close()
