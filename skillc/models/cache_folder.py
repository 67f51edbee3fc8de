"""`skillc cache`: list, prune, export and import the replies of a folder, also while a compile uses it.

All functions raise `SkillcError` if the folder or the file cannot be used.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.models.cache import (
    CACHE_ERRORS,
    DATABASE,
    ReplyLabel,
    cache_error,
    open_cache,
    read_label,
    whole_reply,
)

T = TypeVar("T")

_WAIT = 60.0  # seconds for a compile that is writing
_BATCH = 500  # entries in one transaction, so that a compile waits milliseconds
_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One reply; `text` is None if it cannot be read."""

    key: str
    label: ReplyLabel
    text: str | None

    @property
    def size(self) -> int:
        """Bytes of its text."""
        return len(self.text.encode()) if self.text is not None else 0


@dataclass(slots=True)
class EntryGroup:
    """The entries of one endpoint and model; times in seconds since the epoch."""

    endpoint: str | None
    model: str | None
    entries: int = 0
    size: int = 0
    oldest: float = math.inf
    newest: float = 0.0


@dataclass(frozen=True, slots=True)
class Pruned:
    """Removed entries, bytes of their texts, and freed bytes of the disk."""

    entries: int
    size: int
    freed: int = 0


@dataclass(frozen=True, slots=True)
class Transfer:
    """Entries that were exported or imported, and entries left out: unreadable, or already in the folder."""

    entries: int
    left_out: int


def find_folder(path: Path, *, new: bool = False) -> Path:
    """Find the cache folder of a path: itself, or the one beside a program, in a program's folder or in `.skillc`.

    If none exists, return the folder that a compile would create if `new` is set, else raise `SkillcError`.
    """
    here = path.parent if path.suffix == ".skill" else path
    for folder in (here, here / "cache", here / ".skillc" / "cache"):
        if (folder / DATABASE).is_file():
            return folder
    if new:
        return here / "cache" if here.name == ".skillc" else here / ".skillc" / "cache"
    raise SkillcError(
        f"no cache in `{path}`",
        hint="name the program or its folder; a compile keeps its cache in `.skillc/cache` beside the program",
    )


def entries(folder: Path) -> Iterator[Entry]:
    """Yield all replies, ordered by key."""
    with _opened(folder) as cache:
        for key in cache.iterkeys():
            if not isinstance(key, str) or _HEX.fullmatch(key) is None:
                continue
            try:
                text, tag = cache.get(key, tag=True)
            except ValueError:
                yield Entry(key, ReplyLabel(None, None), None)
                continue
            if text is None:
                continue  # removed meanwhile
            label = read_label(tag)
            if label.model is None:
                # An entry of an older version: the reply names its model at least.
                label = replace(label, model=(whole_reply(text) or {}).get("model"))
            yield Entry(key, label, text)


def groups(found: Iterable[Entry]) -> list[EntryGroup]:
    """Return the entries by endpoint and model, the largest first."""
    by_model: dict[tuple[str | None, str | None], EntryGroup] = {}
    for entry in found:
        name = entry.label.endpoint, entry.label.model
        group = by_model.setdefault(name, EntryGroup(*name))
        group.entries += 1
        group.size += entry.size
        group.oldest = min(group.oldest, entry.label.stored)
        group.newest = max(group.newest, entry.label.stored)
    return sorted(by_model.values(), key=lambda group: (-group.size, str((group.endpoint, group.model))))


def prune(
    folder: Path,
    *,
    older: float | None = None,
    model: str | None = None,
    endpoint: str | None = None,
    dry: bool = False,
) -> Pruned:
    """Remove the entries for which all given conditions hold, and free their disk space; with `dry` only count them.

    `older` entries are those stored before that time, in seconds since the epoch.
    """
    chosen = [
        (entry.key, entry.size)
        for entry in entries(folder)
        if (older is None or entry.label.stored < older)
        and (model is None or entry.label.model == model)
        and (endpoint is None or entry.label.endpoint == endpoint)
    ]
    size = sum(each for _, each in chosen)
    if dry or not chosen:
        return Pruned(len(chosen), size)
    before = disk_used(folder)
    with _opened(folder) as cache:
        for batch in _batches(chosen):
            with cache.transact():
                for key, _ in batch:
                    cache.delete(key)
        # The database shrinks with each commit (diskcache sets `auto_vacuum`), its file with a checkpoint of the log.
        cache.reset("sqlite_wal_checkpoint", "TRUNCATE", update=False)
    return Pruned(len(chosen), size, max(0, before - disk_used(folder)))


def disk_used(folder: Path) -> int:
    """Return the total bytes of the folder's files."""
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def export_replies(folder: Path, path: Path) -> Transfer:
    """Write all replies of a folder atomically into a file of JSON lines."""
    written = left_out = 0

    def lines() -> Iterator[str]:
        nonlocal written, left_out
        for entry in entries(folder):
            reply = whole_reply(entry.text) if entry.text is not None else None
            if reply is None:
                left_out += 1
                continue
            written += 1
            label = entry.label
            row = {"key": entry.key, "endpoint": label.endpoint, "model": label.model, "stored": utc_text(label.stored)}
            yield json.dumps({**row, "reply": reply}, ensure_ascii=False) + "\n"

    try:
        write_atomically(path, lines())
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem
    return Transfer(written, left_out)


def import_replies(folder: Path, path: Path) -> Transfer:
    """Add the replies of a file to a folder, which is created if missing; an invalid line adds nothing."""
    seen, added = sum(1 for _ in _lines(path)), 0
    with _opened(folder) as cache:
        for batch in _batches(_lines(path)):
            with cache.transact():
                added += sum(cache.add(entry.key, entry.text, tag=entry.label.as_text()) for entry in batch)
    return Transfer(added, seen - added)


def utc_text(stored: float) -> str:
    """Return a time in the file's format: UTC, to the millisecond."""
    return datetime.fromtimestamp(stored, UTC).isoformat(timespec="milliseconds")


def _lines(path: Path) -> Iterator[Entry]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                line = _entry(text)
                if line is None:
                    raise SkillcError(
                        f"`{path}`, line {number}: not a cache entry",
                        hint="`skillc cache export` writes such a file; nothing was added",
                    )
                yield line
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise SkillcError(f"`{path}` is not UTF-8", hint="`skillc cache export` writes such a file") from problem


def _entry(text: str) -> Entry | None:
    try:
        data = json.loads(text)
        key, stored = data["key"], datetime.fromisoformat(data["stored"]).timestamp()
        label = ReplyLabel(data["endpoint"], data["model"], stored)
        reply = json.dumps(data["reply"])
    except (ValueError, TypeError, KeyError):
        return None
    names = all(name is None or isinstance(name, str) for name in (label.endpoint, label.model))
    known = isinstance(key, str) and _HEX.fullmatch(key) and names and whole_reply(reply) is not None
    return Entry(key, label, reply) if known else None


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        yield batch


@contextmanager
def _opened(folder: Path) -> Iterator[Any]:
    cache = open_cache(folder, _WAIT)
    try:
        yield cache
    except CACHE_ERRORS as problem:
        raise cache_error(folder, problem) from problem
    finally:
        cache.close()
