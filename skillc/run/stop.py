"""Stop request: by the user or by the deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction


class Stop:
    """Stop request that cancels work in flight, so that only earlier decisions count.

    Args:
        seconds: until the deadline, counted from `begin`; None for no deadline.
    """

    def __init__(self, seconds: Fraction | float | None = None) -> None:
        self._seconds = None if seconds is None else float(seconds)
        self._end: float | None = None
        self._reason: str | None = None
        self._cut: Callable[[], object] | None = None
        self._moved: Callable[[], object] | None = None

    @property
    def reason(self) -> str | None:
        """`interrupted` or `time`; None without a request."""
        if self._reason is None and self._end is not None and time.monotonic() >= self._end:
            self._reason = "time"
        return self._reason

    @property
    def left(self) -> float | None:
        """Seconds until the deadline; None without one, or before it is started."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def ask(self) -> None:
        """Request a stop for the user; safe in a signal handler."""
        self._reason = "interrupted"
        if self._cut is not None:
            self._cut()

    def begin(self) -> None:
        """Start the clock unless it is running. Thread-safe."""
        if self._seconds is not None and self._end is None:
            self._end = time.monotonic() + self._seconds
            self._rearm()

    def excuse(self, seconds: float) -> None:
        """Extend the deadline by time that does not count, such as a server's start. Thread-safe."""
        if self._end is not None:
            self._end += seconds
            self._rearm()

    def _rearm(self) -> None:
        if self._moved is not None:
            self._moved()

    @contextmanager
    def cuts(self, *, clock: bool) -> Iterator[None]:
        """Cancel the running task on a request; on the deadline only if `clock` is set."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        cancel = task.cancel
        timer: asyncio.TimerHandle | None = None

        def arm() -> None:
            nonlocal timer
            if timer is not None:
                timer.cancel()
            left = self.left
            timer = None if left is None or self._moved is None else loop.call_later(left, cancel)

        self._cut = lambda: loop.call_soon_threadsafe(cancel)
        self._moved = lambda: loop.call_soon_threadsafe(arm)
        if not clock:
            self._seconds = self._end = None
        arm()
        try:
            yield
        finally:
            self._cut = self._moved = None
            if timer is not None:
                timer.cancel()
