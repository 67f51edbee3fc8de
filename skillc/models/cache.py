"""Replies that were paid for once: a folder of JSON texts, never pickles, from which nothing is evicted."""

from __future__ import annotations

import sqlite3
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import diskcache
from diskcache.core import MODE_RAW, MODE_TEXT

from skillc.errors import SkillcError

_MEMORY_KEPT = 10_000
_TROUBLE = (sqlite3.Error, OSError, diskcache.Timeout, ValueError)


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

    Raises:
        SkillcError: the folder cannot be made or written, or what stands in it is damaged.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._memory: OrderedDict[str, str] = OrderedDict()
        self._disk: Any = _open(folder) if folder is not None else None
        self._warned = False

    def get(self, key: str) -> str | None:
        """The text, or None."""
        if self._disk is None:
            return self._memory.get(key)
        try:
            found = self._disk.get(key)
        except _TROUBLE as problem:
            self._warn("read", problem)
            return None
        return found if isinstance(found, str) else None

    def put(self, key: str, text: str) -> None:
        """Keeps a text."""
        if self._disk is None:
            self._memory[key] = text
            if len(self._memory) > _MEMORY_KEPT:
                self._memory.popitem(last=False)
            return
        try:
            self._disk.set(key, text)
        except _TROUBLE as problem:
            self._warn("written", problem)

    def close(self) -> None:
        """Closes the files."""
        if self._disk is not None:
            self._disk.close()

    def _warn(self, done: str, problem: Exception) -> None:
        if not self._warned:
            self._warned = True
            message = f"the cache `{self._folder}` could not be {done} ({problem}); calls may be paid for again"
            warnings.warn(message, stacklevel=3)


def _open(folder: Path) -> Any:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        cache = diskcache.Cache(str(folder), disk=_Texts, eviction_policy="none", size_limit=2**62, statistics=0)
        cache.set("opened", "yes")
    except (OSError, sqlite3.OperationalError, diskcache.Timeout) as problem:
        raise SkillcError(
            f"the cache `{folder}` cannot be written: {problem}", hint="check the folder's permissions and the disk"
        ) from problem
    except (sqlite3.DatabaseError, ValueError) as problem:
        raise SkillcError(
            f"the cache `{folder}` is damaged or not writable: {problem}",
            hint="move the folder away; the replies in it will be paid for again",
        ) from problem
    return cache
