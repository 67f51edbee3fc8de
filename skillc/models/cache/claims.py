"""Single flight between processes: of all that share a cache folder, one fetches a key and the others wait.

A claim is a POSIX record lock on one byte of a file in the cache folder, at an offset derived from the key. The system
releases it when its process ends in any way. Two keys share an offset once in 2^60 pairs; then one of them waits in
vain. Without such locks (Windows, some network file systems) claims hold within the process only.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_NAME = "flights.lock"
_SHORTEST, _LONGEST = 0.002, 0.25


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed key."""

    file: _LockFile
    offset: int

    def free(self) -> None:
        """Release the key."""
        self.file.free(self.offset)


class Claims:
    """Claims of one client on the keys of a cache folder; none without a folder, where no other process fetches."""

    def __init__(self, folder: Path | None, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._folder = folder
        self._sleep = sleep
        self._file: _LockFile | None = None

    @property
    def shared(self) -> bool:
        """Whether other processes may fetch the same keys, so that a claimed key must be looked up again."""
        return self._folder is not None

    async def take(self, key: str, patience: float) -> Claim | None:
        """Claim a hex digest as soon as no other claims it, and return the claim, to be freed.

        Returns None if nothing is shared, and after `patience` seconds: another holder may be suspended, as by Ctrl-Z.
        """
        if self._folder is None:
            return None
        if self._file is None:
            self._file = _open(self._folder)
        file, offset, waited = self._file, int(key[:15], 16), 0.0
        while not file.take(offset):
            if waited >= patience:
                return None
            # A tenth of the time so far: few checks of a long flight, little delay for a short one.
            pause = min(max(waited / 10, _SHORTEST), _LONGEST)
            await self._sleep(pause)
            waited += pause
        return Claim(file, offset)

    def close(self) -> None:
        """Close the lock file, which is kept."""
        file, self._file = self._file, None
        if file is not None:
            _close(file)


class _LockFile:
    """The lock file of a folder, open once in this process.

    Record locks belong to the process: its threads share them, and closing any descriptor of the file releases all.
    """

    def __init__(self, handle: int | None) -> None:
        self.handle = handle
        self.users = 0
        self.forget()

    def forget(self) -> None:
        """Forget the claims of the parent process."""
        self._guard = threading.Lock()
        self._taken: set[int] = set()

    def take(self, offset: int) -> bool:
        with self._guard:
            if offset in self._taken or not self._lock(offset):
                return False
            self._taken.add(offset)
            return True

    def free(self, offset: int) -> None:
        with self._guard:
            self._taken.discard(offset)
            if sys.platform != "win32" and self.handle is not None:
                with contextlib.suppress(OSError):
                    fcntl.lockf(self.handle, fcntl.LOCK_UN, 1, offset)

    def close(self) -> None:
        with self._guard:
            handle, self.handle = self.handle, None
            if handle is not None:
                os.close(handle)

    def _lock(self, offset: int) -> bool:
        if sys.platform != "win32" and self.handle is not None:
            try:
                fcntl.lockf(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
            except (BlockingIOError, PermissionError):
                return False
            except OSError:
                pass  # a file system without record locks
        return True


_FILES: dict[tuple[int, int] | str, _LockFile] = {}
_GUARD = threading.Lock()


def _open(folder: Path) -> _LockFile:
    """Open the lock file of a folder; if that fails, claims hold within the process only."""
    path = folder / _NAME
    with _GUARD:
        file = _FILES.get(_identity(path))
        if file is None:
            handle = None
            if sys.platform != "win32":
                with contextlib.suppress(OSError):
                    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            # The file has its identity only now, if it was created.
            file = _FILES.setdefault(_identity(path), _LockFile(handle))
        file.users += 1
        return file


def _close(file: _LockFile) -> None:
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


def _reset_after_fork() -> None:
    """Locks are not inherited, and a guard that another thread held would never be released."""
    global _GUARD
    _GUARD = threading.Lock()
    for file in _FILES.values():
        file.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
