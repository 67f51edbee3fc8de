"""Cached replies: a folder of JSON texts without pickles and without eviction."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import diskcache
from diskcache.core import MODE_RAW, MODE_TEXT

from skillc.errors import SkillcError

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
        try:
            await self._patiently(lambda: self._disk.set(key, text, tag=label.as_text() if label is not None else None))
        except CACHE_ERRORS as problem:
            self._warn("written", problem)
            # An open transaction would lock out all other processes.
            with contextlib.suppress(*CACHE_ERRORS):
                self._disk.close()

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
