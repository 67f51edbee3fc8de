"""Cached replies: a folder of JSON texts, never pickles, from which nothing is evicted."""

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
TROUBLE = (sqlite3.Error, OSError, diskcache.Timeout, ValueError)
# Seconds: how long one try may hold up the event loop, and how long all of them wait for another process.
_ONE_TRY, _ALL_TRIES, _PAUSE = 0.005, 60.0, 0.05
_END_OF_TIME = 253_402_300_800  # the year 10000


@dataclass(frozen=True, slots=True)
class ReplyLabel:
    """What a reply is, beside it in the cache; holds neither a key nor a prompt.

    Attributes:
        endpoint: id of the endpoint; None in entries of older versions.
        model: `provider/name` as asked for; None in entries of older versions.
        stored: when, in seconds since the epoch; 0 in entries of older versions.
    """

    endpoint: str | None
    model: str | None
    stored: float = 0.0

    def as_text(self) -> str:
        """Return the form that `read_label` reads."""
        return json.dumps({"endpoint": self.endpoint, "model": self.model, "stored": self.stored})


def read_label(text: object) -> ReplyLabel:
    """Return the label in a text; an empty one where there is none."""
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
    """Return the reply in a stored text, None where it is damaged or something else."""
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
    """Stores texts only. A row that holds anything else is never unpickled, and no file outside of the folder is used.

    A key that is no text reads as None.
    """

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
            raise ValueError("the value is no text")
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

    Args:
        folder: where the replies are kept; None keeps the latest of them in memory.
        sleep: how a wait for another process passes, in seconds.

    Raises:
        SkillcError: the folder cannot be made or written, or it is damaged.
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
        except TROUBLE as problem:
            self._warn("read", problem)
            return None
        return found if isinstance(found, str) else None

    async def put(self, key: str, text: str, label: ReplyLabel | None = None) -> None:
        """Keep a text, and beside it a label for those who look into the folder."""
        if self._disk is None:
            self._memory[key] = text
            if len(self._memory) > _MEMORY_KEPT:
                self._memory.popitem(last=False)
            return
        try:
            await self._patiently(lambda: self._disk.set(key, text, tag=label.as_text() if label is not None else None))
        except TROUBLE as problem:
            self._warn("written", problem)
            # What could not be committed must not stay open, where it would lock all others out.
            with contextlib.suppress(*TROUBLE):
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
            message = f"the cache `{self._folder}` could not be {done} ({why}); calls may be paid for again"
            warnings.warn(message, stacklevel=3)


def _is_busy(problem: Exception) -> bool:
    """Return whether another process has the lock; diskcache reports every error of a transaction as a timeout."""
    cause = problem.__context__ if isinstance(problem, diskcache.Timeout) else problem
    return isinstance(cause, sqlite3.OperationalError) and ("locked" in str(cause) or "busy" in str(cause))


def open_cache(folder: Path, timeout: float) -> Any:
    """Open the cache of a folder, which is made where it is missing.

    Args:
        folder: the folder.
        timeout: seconds that one operation waits for another process.

    Raises:
        SkillcError: the folder cannot be made or written, or it is damaged.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Writes its settings, and so finds out what cannot be written.
        return diskcache.Cache(
            str(folder),
            timeout=timeout,
            disk=_Texts,
            eviction_policy="none",
            size_limit=2**62,
            statistics=0,
            # All texts in the one database, whatever their size: a full disk leaves no half of a file.
            disk_min_file_size=2**62,
        )
    except TROUBLE as problem:
        raise trouble(folder, problem) from problem


def trouble(folder: Path, problem: Exception) -> SkillcError:
    """Return what to raise for a cache that cannot be used."""
    if isinstance(problem, OSError | sqlite3.OperationalError | diskcache.Timeout):
        return SkillcError(
            f"the cache `{folder}` cannot be written: {problem}", hint="check the folder's permissions and the disk"
        )
    return SkillcError(
        f"the cache `{folder}` is damaged or not writable: {problem}",
        hint="move the folder away; the replies in it will be paid for again",
    )
