"""One start at a time, among all processes that would share a server."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from filelock import FileLock, Timeout

from skillc.models.failures import PermanentFailure

_POLL = 0.2


class Stopped(Exception):  # noqa: N818
    """The run ended while its server was starting."""


class Turn:
    """A lock for starting servers of one kind, so that one process starts and the others find what it published."""

    def __init__(self, path: Path, closed: threading.Event, seconds: float) -> None:
        self._lock = FileLock(path, thread_local=False)
        self._closed = closed
        self._seconds = seconds

    def __enter__(self) -> None:
        last = time.monotonic() + self._seconds
        while True:
            try:
                self._lock.acquire(timeout=0)
                return
            except Timeout:
                if self._closed.wait(_POLL):
                    raise Stopped from None
                if time.monotonic() > last:
                    raise PermanentFailure(
                        "another skillc has been starting the same server for too long",
                        hint=f"see what it does, or remove `{self._lock.lock_file}`",
                    ) from None

    def __exit__(self, *_: object) -> None:
        if self._lock.is_locked:
            self._lock.release()
