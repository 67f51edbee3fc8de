"""Replies that were paid for once: a database of JSON texts, never pickles, from which nothing is evicted."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import diskcache
from diskcache.core import MODE_RAW, MODE_TEXT

from skillc.errors import SkillcError

T = TypeVar("T")

DATABASE = "cache.db"

_MEMORY_KEPT = 10_000
_TROUBLE = (sqlite3.Error, OSError, diskcache.Timeout, ValueError)
# Seconds: how long one try may hold up the event loop, and how long all of them wait for another process.
_ONE_TRY, _ALL_TRIES, _PAUSE = 0.005, 60.0, 0.05


class _Texts(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Stores texts only. A row that holds anything else, as a stranger may have planted, is never unpickled."""

    def put(self, key: Any) -> Any:
        _require_text(key)
        return super().put(key)

    def get(self, key: Any, raw: Any) -> Any:
        if not raw:
            raise ValueError("the key is no text")
        return super().get(key, raw)

    def store(self, value: Any, read: Any, key: Any = diskcache.UNKNOWN) -> Any:
        _require_text(value)
        return super().store(value, read, key=key)

    def fetch(self, mode: Any, filename: Any, value: Any, read: Any) -> Any:
        if mode not in (MODE_RAW, MODE_TEXT) or (mode == MODE_RAW and not isinstance(value, str)):
            raise ValueError("the value is no text")
        return super().fetch(mode, filename, value, read)


def _require_text(value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError("only texts are cached")


class ReplyCache:
    """Texts by key. Trouble in mid-run is warned about once and costs money, never the run.

    Args:
        folder: where the replies are kept; None keeps the latest of them in memory.
        sleep: how a wait for another process passes, in seconds.

    Raises:
        SkillcError: the folder cannot be made or written, or what stands in it is damaged.
    """

    def __init__(self, folder: Path | None, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._folder = folder
        self._sleep = sleep
        self._memory: OrderedDict[str, str] = OrderedDict()
        self._disk: Any = _open(folder) if folder is not None else None
        self._warned = False

    async def get(self, key: str) -> str | None:
        """The text, or None."""
        if self._disk is None:
            return self._memory.get(key)
        try:
            found = await self._patiently(lambda: self._disk.get(key))
        except _TROUBLE as problem:
            self._warn("read", problem)
            return None
        return found if isinstance(found, str) else None

    async def put(self, key: str, text: str, label: str | None = None) -> None:
        """Keeps a text, and beside it a label, for those who look into the folder."""
        if self._disk is None:
            self._memory[key] = text
            if len(self._memory) > _MEMORY_KEPT:
                self._memory.popitem(last=False)
            return
        try:
            await self._patiently(lambda: self._disk.set(key, text, tag=label))
        except _TROUBLE as problem:
            self._warn("written", problem)
            # What could not be committed must not stay open, where it would lock all others out.
            with contextlib.suppress(*_TROUBLE):
                self._disk.close()

    def close(self) -> None:
        """Closes the files."""
        if self._disk is not None:
            self._disk.close()

    async def _patiently(self, act: Callable[[], T]) -> T:
        """Tries again while another process holds the database, and lets the event loop run in between."""
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
            message = f"the cache `{self._folder}` could not be {done} ({why}); calls may be paid for again"
            warnings.warn(message, stacklevel=3)


def _is_busy(problem: Exception) -> bool:
    """Whether another process has the lock; diskcache calls all that hinders a transaction a timeout."""
    cause = problem.__context__ if isinstance(problem, diskcache.Timeout) else problem
    return isinstance(cause, sqlite3.OperationalError) and ("locked" in str(cause) or "busy" in str(cause))


def _open(folder: Path) -> Any:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Writes its settings, and so finds out what cannot be written.
        return diskcache.Cache(
            str(folder),
            timeout=_ONE_TRY,
            disk=_Texts,
            eviction_policy="none",
            size_limit=2**62,
            statistics=0,
            # All texts in the one database, whatever their size: a full disk leaves no half of a file.
            disk_min_file_size=2**62,
        )
    except (OSError, sqlite3.OperationalError, diskcache.Timeout) as problem:
        raise SkillcError(
            f"the cache `{folder}` cannot be written: {problem}", hint="check the folder's permissions and the disk"
        ) from problem
    except (sqlite3.DatabaseError, ValueError) as problem:
        raise SkillcError(
            f"the cache `{folder}` is damaged or not writable: {problem}",
            hint="move the folder away; the replies in it will be paid for again",
        ) from problem
