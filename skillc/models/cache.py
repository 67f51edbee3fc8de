"""Cached replies: a folder of JSON texts without pickles and without eviction, and the single flight of its processes.

Of all processes that share a folder, one fetches a key and the others wait. A claim on a key is a POSIX record lock on
one byte of a file in the folder, at an offset derived from the key. The system releases it when its process ends in any
way. Two keys share an offset once in 2^60 pairs; then one of them waits in vain. Without such locks (Windows, some
network file systems) claims hold within the process only.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import diskcache
from diskcache.core import MODE_RAW, MODE_TEXT

from skillc.dataclass import dataclass
from skillc.errors import SkillcError

if sys.platform != "win32":
    import fcntl

T = TypeVar("T")

DATABASE = "cache.db"

_MEMORY_KEPT = 10_000
CACHE_ERRORS = (sqlite3.Error, OSError, diskcache.Timeout, ValueError)
# Seconds: one try, which blocks the event loop, and all tries together while another process writes.
_ONE_TRY, _ALL_TRIES, _PAUSE = 0.005, 60.0, 0.05
_END_OF_TIME = 253_402_300_800  # the year 10000


@dataclass(frozen=True, slots=True)
class ReplyLabel:
    """The origin of a cached reply, without key and prompt; entries of older versions have None and 0.

    `model` is `provider/name` as requested, `stored` in seconds since the epoch.
    """

    endpoint: str | None
    model: str | None
    stored: float = 0.0

    def as_text(self) -> str:
        """Return the form that `read_label` reads."""
        return json.dumps({"endpoint": self.endpoint, "model": self.model, "stored": self.stored})


def read_label(text: object) -> ReplyLabel:
    """Return the label in a text, or an empty one."""
    try:
        data = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        data = {}
    data = data if isinstance(data, dict) else {}
    endpoint, model, stored = (data.get(name) for name in ("endpoint", "model", "stored"))
    return ReplyLabel(
        endpoint if isinstance(endpoint, str) else None,
        model if isinstance(model, str) else None,
        stored if isinstance(stored, int | float) and 0 <= stored < _END_OF_TIME else 0,
    )


def whole_reply(stored: str) -> dict[str, Any] | None:
    """Return the reply in a stored text; None if it is damaged."""
    try:
        data = json.loads(stored)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    usage, calls = data.get("usage"), data.get("tool_calls", [])
    texts = all(isinstance(data.get(name), str) for name in ("text", "finish", "model"))
    counts = isinstance(usage, list) and len(usage) == 4 and all(type(count) is int and count >= 0 for count in usage)
    return data if texts and counts and isinstance(calls, list) else None


class _Texts(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Stores texts only: no other row is unpickled, and no file outside of the folder is used."""

    def put(self, key: Any) -> Any:
        _require_text(key)
        return super().put(key)

    def get(self, key: Any, raw: Any) -> Any:
        return super().get(key, raw) if raw else None

    def store(self, value: Any, read: Any, key: Any = diskcache.UNKNOWN) -> Any:
        _require_text(value)
        return super().store(value, read, key=key)

    def fetch(self, mode: Any, filename: Any, value: Any, read: Any) -> Any:
        if mode not in (MODE_RAW, MODE_TEXT) or (mode == MODE_RAW and not isinstance(value, str)):
            raise ValueError("the value is not a text")
        if filename is not None and not self._is_inside(filename):
            raise ValueError("the value is outside of the folder")
        return super().fetch(mode, filename, value, read)

    def remove(self, file_path: Any) -> None:
        if self._is_inside(file_path):
            super().remove(file_path)

    def _is_inside(self, name: str) -> bool:
        folder = Path(self._directory).resolve()
        return (folder / name).resolve().is_relative_to(folder)


def _require_text(value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError("only texts are cached")


class _Entry(NamedTuple):
    """A text to be written, with the text of its label."""

    key: str
    text: str
    tag: str | None


class _Batch(NamedTuple):
    """What is written together on one event loop; `written` ends with it."""

    loop: asyncio.AbstractEventLoop
    entries: list[_Entry]
    written: asyncio.Future[None]


class ReplyCache:
    """Texts by key. An error during the run is warned about once; it costs replies, never the run.

    Without a folder the latest replies are kept in memory. Raises `SkillcError` if the folder cannot be created or
    written, or is damaged. `sleep` waits for another process.
    """

    def __init__(self, folder: Path | None, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._folder = folder
        self._sleep = sleep
        self._memory: OrderedDict[str, str] = OrderedDict()
        self._disk: Any = open_cache(folder, _ONE_TRY) if folder is not None else None
        self._batch: _Batch | None = None
        self._late: set[asyncio.Task[None]] = set()
        self._warned = False

    async def get(self, key: str) -> str | None:
        """Return the text, or None."""
        if self._disk is None:
            return self._memory.get(key)
        try:
            found = await self._patiently(lambda: self._disk.get(key))
        except CACHE_ERRORS as problem:
            self._warn("read", problem)
            return None
        return found if isinstance(found, str) else None

    async def put(self, key: str, text: str, label: ReplyLabel | None = None) -> None:
        """Keep a text with a label for `skillc cache`."""
        if self._disk is None:
            self._memory[key] = text
            if len(self._memory) > _MEMORY_KEPT:
                self._memory.popitem(last=False)
            return
        entry = _Entry(key, text, label.as_text() if label is not None else None)
        loop = asyncio.get_running_loop()
        batch = self._batch
        if batch is None or batch.loop is not loop:
            batch = self._batch = _Batch(loop, [], loop.create_future())
            # No task, which could be cancelled: a reply that came must not be lost.
            loop.call_soon(self._flush, batch)
        batch.entries.append(entry)
        # A caller that is cancelled must not take the replies of the others with it.
        await asyncio.shield(batch.written)

    def _flush(self, batch: _Batch) -> None:
        """Write all that was put in one iteration of the event loop, in one transaction."""
        if self._batch is batch:
            self._batch = None
        try:
            self._write(batch.entries)
        except CACHE_ERRORS as problem:
            if _is_busy(problem):
                task = batch.loop.create_task(self._write_later(batch))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
                return
            self._write_each(batch.entries, problem)
        batch.written.set_result(None)

    async def _write_later(self, batch: _Batch) -> None:
        """Write a batch when another process leaves the database."""
        try:
            await self._patiently(lambda: self._write(batch.entries))
        except CACHE_ERRORS as problem:
            self._write_each(batch.entries, problem)
        finally:
            batch.written.set_result(None)

    def _write_each(self, entries: list[_Entry], problem: Exception) -> None:
        """Write one by one what could not be written together: one that cannot be written costs no other."""
        self._give_up(problem)
        for entry in entries if len(entries) > 1 else ():
            try:
                self._write([entry])
            except CACHE_ERRORS as again:
                self._give_up(again)

    def _write(self, entries: list[_Entry]) -> None:
        with self._disk.transact():
            for entry in entries:
                self._disk.set(entry.key, entry.text, tag=entry.tag)

    def _give_up(self, problem: Exception) -> None:
        self._warn("written", problem)
        # An open transaction would lock out all other processes.
        with contextlib.suppress(*CACHE_ERRORS):
            self._disk.close()

    def is_empty(self) -> bool:
        """Return whether it certainly has no text."""
        if self._disk is None:
            return not self._memory
        try:
            return len(self._disk) == 0
        except CACHE_ERRORS:
            return False

    def close(self) -> None:
        """Close the files."""
        if self._disk is not None:
            self._disk.close()

    async def _patiently(self, act: Callable[[], T]) -> T:
        """Retry while another process holds the database, with the event loop running in between."""
        waited = 0.0
        while True:
            try:
                return act()
            except (sqlite3.OperationalError, diskcache.Timeout) as problem:
                if not _is_busy(problem) or waited >= _ALL_TRIES:
                    raise
            await self._sleep(_PAUSE)
            waited += _PAUSE

    def _warn(self, done: str, problem: Exception) -> None:
        if not self._warned:
            self._warned = True
            why = problem.__context__ if isinstance(problem, diskcache.Timeout) else problem
            message = f"the cache `{self._folder}` cannot be {done} ({why}); calls may be paid for again"
            warnings.warn(message, stacklevel=3)


def _is_busy(problem: Exception) -> bool:
    """Whether another process has the lock; diskcache reports every error of a transaction as a timeout."""
    cause = problem.__context__ if isinstance(problem, diskcache.Timeout) else problem
    return isinstance(cause, sqlite3.OperationalError) and ("locked" in str(cause) or "busy" in str(cause))


def open_cache(folder: Path, timeout: float) -> Any:
    """Open the cache of a folder, which is created if missing; an operation waits `timeout` seconds for others."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # This writes its settings, and so fails if the folder cannot be written.
        return diskcache.Cache(
            str(folder),
            timeout=timeout,
            disk=_Texts,
            eviction_policy="none",
            size_limit=2**62,
            # Nothing expires, so nothing has to be looked for.
            cull_limit=0,
            statistics=0,
            # All texts in one database, whatever their size: a full disk leaves no partial file.
            disk_min_file_size=2**62,
        )
    except CACHE_ERRORS as problem:
        raise cache_error(folder, problem) from problem


def cache_error(folder: Path, problem: Exception) -> SkillcError:
    """Return the error of a cache that cannot be used."""
    if isinstance(problem, OSError | sqlite3.OperationalError | diskcache.Timeout):
        return SkillcError(
            f"the cache `{folder}` cannot be written: {problem}", hint="check the folder's permissions and the disk"
        )
    return SkillcError(
        f"the cache `{folder}` is damaged or not writable: {problem}",
        hint="move the folder away; its replies will be paid for again",
    )


# ---- claims on keys ----

_LOCK_FILE = "flights.lock"
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
            self._file = _open_locks(self._folder)
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
            _close_locks(file)


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


def _open_locks(folder: Path) -> _LockFile:
    """Open the lock file of a folder; if that fails, claims hold within the process only."""
    path = folder / _LOCK_FILE
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


def _close_locks(file: _LockFile) -> None:
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
    """Forget all claims: locks are not inherited, and a guard that another thread held would never be released."""
    global _GUARD
    _GUARD = threading.Lock()
    for file in _FILES.values():
        file.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
