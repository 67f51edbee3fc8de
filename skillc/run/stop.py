"""The wish, from outside, that a run should end: the user's or the clock's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stop:
    """Cuts the work off where it stands, so that what was decided before is all that counts.

    Args:
        seconds: until the clock asks; None for never. They count from here.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._reason: str | None = None
        self._cut: Callable[[], object] | None = None

    @property
    def reason(self) -> str | None:
        """`interrupted` or `time`, None while nobody asked."""
        if self._reason is None and self._end is not None and time.monotonic() >= self._end:
            self._reason = "time"
        return self._reason

    def ask(self) -> None:
        """The user's wish; may come from a signal handler."""
        self._reason = "interrupted"
        if self._cut is not None:
            self._cut()

    @contextmanager
    def cuts(self, *, clock: bool) -> Iterator[None]:
        """Cancels the running task when somebody asks; the clock only where it counts."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        cancel = task.cancel
        self._cut = lambda: loop.call_soon_threadsafe(cancel)
        if not clock:
            self._end = None
        timer = None if self._end is None else loop.call_later(max(0.0, self._end - time.monotonic()), cancel)
        try:
            yield
        finally:
            self._cut = None
            if timer is not None:
                timer.cancel()
