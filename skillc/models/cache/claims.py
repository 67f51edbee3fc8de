"""Single flight between processes: of all that share a cache folder, one fetches a key and the others wait.

A claim is a POSIX record lock on one byte of a file in the cache folder, at an offset taken from the key. The system
drops it with the process that holds it, however that ends. Two keys share a byte once in 2^60 pairs; then one of them
waits for nothing. Where there are no such locks (Windows, some network file systems) claims hold within the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_NAME = "flights.lock"
_SHORTEST, _LONGEST = 0.002, 0.25


class Claim:
    """A claimed key."""

    __slots__ = ("_file", "_place")

    def __init__(self, file: _LockFile, place: int) -> None:
        self._file = file
        self._place = place

    def free(self) -> None:
        """Release the key."""
        self._file.free(self._place)


class Claims:
    """Claims of one client.

    Args:
        folder: of the cache; None, where the cache is this client's alone, claims nothing.
        sleep: how a wait passes, in seconds.
    """

    def __init__(self, folder: Path | None, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._folder = folder
        self._sleep = sleep
        self._file: _LockFile | None = None

    @property
    def shared(self) -> bool:
        """Whether other processes may fetch the same keys, so that a claimed key must be looked up again."""
        return self._folder is not None

    async def take(self, key: str, patience: float) -> Claim | None:
        """Claim a key as soon as no other claims it.

        Args:
            key: hex digest.
            patience: seconds to wait for another holder. One that has stopped without ending, as by Ctrl-Z, would
                otherwise stop everybody.

        Returns:
            The claim, which has to be freed; None if the patience ran out, or nothing is shared.
        """
        if self._folder is None:
            return None
        if self._file is None:
            self._file = _opened(self._folder)
        file, place, waited = self._file, int(key[:15], 16), 0.0
        while not file.take(place):
            if waited >= patience:
                return None
            # A tenth of what has passed: few looks at a long flight, and a short one is not made much longer.
            pause = min(max(waited / 10, _SHORTEST), _LONGEST)
            await self._sleep(pause)
            waited += pause
        return Claim(file, place)

    def close(self) -> None:
        """Close the lock file, which is kept."""
        file, self._file = self._file, None
        if file is not None:
            _closed(file)


class _LockFile:
    """The lock file of a folder, open once in this process.

    Record locks belong to the process: they do not tell its threads apart, and closing any descriptor of the file
    would drop them all.
    """

    def __init__(self, handle: int | None) -> None:
        self.handle = handle
        self.users = 0
        self.forget()

    def forget(self) -> None:
        """Forget the claims of the parent process."""
        self._guard = threading.Lock()
        self._taken: set[int] = set()

    def take(self, place: int) -> bool:
        with self._guard:
            if place in self._taken or not self._lock(place):
                return False
            self._taken.add(place)
            return True

    def free(self, place: int) -> None:
        with self._guard:
            self._taken.discard(place)
            self._unlock(place)

    def close(self) -> None:
        with self._guard:
            handle, self.handle = self.handle, None
            if handle is not None:
                os.close(handle)

    def _lock(self, place: int) -> bool:
        if sys.platform != "win32" and self.handle is not None:
            try:
                fcntl.lockf(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except (BlockingIOError, PermissionError):
                return False
            except OSError:
                pass  # a file system without record locks: the process alone
        return True

    def _unlock(self, place: int) -> None:
        if sys.platform != "win32" and self.handle is not None:
            with contextlib.suppress(OSError):
                fcntl.lockf(self.handle, fcntl.LOCK_UN, 1, place)


_FILES: dict[tuple[int, int] | str, _LockFile] = {}
_GUARD = threading.Lock()


def _opened(folder: Path) -> _LockFile:
    """Open the lock file of a folder; if that fails, claims hold within the process only."""
    with _GUARD:
        name = _identity(folder / _NAME)
        file = _FILES.get(name)
        if file is None:
            handle = _handle(folder / _NAME)
            # The file may have come into being just now.
            file = _FILES.setdefault(_identity(folder / _NAME), _LockFile(handle))
        file.users += 1
        return file


def _closed(file: _LockFile) -> None:
    with _GUARD:
        file.users -= 1
        if file.users:
            return
        for name in [name for name, other in _FILES.items() if other is file]:
            del _FILES[name]
        file.close()


def _identity(path: Path) -> tuple[int, int] | str:
    try:
        found = path.stat()
    except OSError:
        return str(path.absolute())
    return found.st_dev, found.st_ino


def _handle(path: Path) -> int | None:
    if sys.platform == "win32":
        return None
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return None


def _forked() -> None:
    """Reset after a fork: locks are not inherited, and a guard that another thread held would never be released."""
    global _GUARD
    _GUARD = threading.Lock()
    for file in _FILES.values():
        file.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
