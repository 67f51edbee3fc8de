"""A cache folder for `skillc cache`: list, prune, export and import replies, also while a compile uses it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.models.cache.replies import DATABASE, TROUBLE, ReplyLabel, open_cache, read_label, trouble, whole_reply

T = TypeVar("T")

_WAIT = 60.0  # seconds for a compile that is writing
_BATCH = 500  # entries in one transaction, so that a compile waits milliseconds
_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One reply.

    Attributes:
        text: as stored; None where it cannot be read.
    """

    key: str
    label: ReplyLabel
    text: str | None

    @property
    def size(self) -> int:
        """The bytes of its text."""
        return len(self.text.encode()) if self.text is not None else 0


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """The entries of one endpoint and model; times in seconds since the epoch."""

    endpoint: str | None
    model: str | None
    entries: int
    size: int
    oldest: float
    newest: float


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be: entries, bytes of their texts, and bytes that the folder became smaller."""

    entries: int
    size: int
    freed: int = 0


@dataclass(frozen=True, slots=True)
class Transfer:
    """How many entries were exported or imported, and how many were left out: unreadable, or there already."""

    entries: int
    left_out: int


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """A filter of entries: all conditions that are given have to hold. `before` in seconds since the epoch."""

    before: float | None = None
    model: str | None = None
    endpoint: str | None = None

    def __call__(self, entry: Entry) -> bool:
        """Return whether an entry is meant."""
        return (
            (self.before is None or entry.label.stored < self.before)
            and (self.model is None or entry.label.model == self.model)
            and (self.endpoint is None or entry.label.endpoint == self.endpoint)
        )


def find_folder(path: Path, *, new: bool = False) -> Path:
    """Find the cache folder of a path: itself, or the one beside a program, in a program's folder or in `.skillc`.

    Args:
        path: what the user named.
        new: whether one that a compile would make is good too.

    Raises:
        SkillcError: there is none.
    """
    here = path.parent if path.suffix == ".skill" else path
    for folder in (here, here / "cache", here / ".skillc" / "cache"):
        if (folder / DATABASE).is_file():
            return folder
    if new:
        return here / "cache" if here.name == ".skillc" else here / ".skillc" / "cache"
    raise SkillcError(
        f"there is no cache in `{path}`",
        hint="a compile keeps one in `.skillc/cache` beside its program; name the program or its folder",
    )


def entries(folder: Path) -> Iterator[Entry]:
    """Yield all replies, ordered by key.

    Raises:
        SkillcError: the folder cannot be used.
    """
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
                continue  # pruned meanwhile, or its file is gone
            label = read_label(tag)
            if label.model is None:
                # An entry of an older version: the reply has at least the name that its model gave itself.
                label = replace(label, model=(whole_reply(text) or {}).get("model"))
            yield Entry(key, label, text)


def groups(found: Iterable[Entry]) -> list[EntryGroup]:
    """Return the entries by endpoint and model, the largest first."""
    by_model: dict[tuple[str | None, str | None], EntryGroup] = {}
    for entry in found:
        name, stored = (entry.label.endpoint, entry.label.model), entry.label.stored
        known = by_model.get(name, EntryGroup(*name, 0, 0, stored, stored))
        by_model[name] = EntryGroup(
            *name,
            known.entries + 1,
            known.size + entry.size,
            min(known.oldest, stored),
            max(known.newest, stored),
        )
    return sorted(by_model.values(), key=lambda group: (-group.size, str((group.endpoint, group.model))))


def prune(folder: Path, wanted: Callable[[Entry], bool], *, dry: bool = False) -> Pruned:
    """Remove the wanted entries and give their space back to the disk.

    Raises:
        SkillcError: the folder cannot be used.
    """
    chosen = [(entry.key, entry.size) for entry in entries(folder) if wanted(entry)]
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
    """Return the bytes of the folder's files."""
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def export_replies(folder: Path, path: Path) -> Transfer:
    """Write all replies of a folder into a file of JSON lines, whole or not at all.

    Raises:
        SkillcError: the folder cannot be read, or the file not be written.
    """
    written = left_out = 0

    def lines() -> Iterator[str]:
        nonlocal written, left_out
        for entry in entries(folder):
            reply = whole_reply(entry.text) if entry.text is not None else None
            if reply is None:
                left_out += 1
                continue
            written += 1
            yield _as_line(entry.key, entry.label, reply)

    try:
        write_atomically(path, lines())
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem
    return Transfer(written, left_out)


def import_replies(folder: Path, path: Path) -> Transfer:
    """Add the replies of a file to a folder, which is made where it is missing; what is there stays as it is.

    Raises:
        SkillcError: a line of the file is no entry, and nothing was added; or the folder cannot be written.
    """
    for _ in _lines(path):
        pass
    added = seen = 0
    with _opened(folder) as cache:
        for batch in _batches(_lines(path)):
            with cache.transact():
                added += sum(cache.add(entry.key, entry.text, tag=entry.label.as_text()) for entry in batch)
            seen += len(batch)
    return Transfer(added, seen - added)


def utc_text(stored: float) -> str:
    """Return a time as it is in the file: UTC, to the millisecond."""
    return datetime.fromtimestamp(stored, UTC).isoformat(timespec="milliseconds")


def _as_line(key: str, label: ReplyLabel, reply: dict[str, Any]) -> str:
    stored = utc_text(label.stored)
    entry = {"key": key, "endpoint": label.endpoint, "model": label.model, "stored": stored, "reply": reply}
    return json.dumps(entry, ensure_ascii=False) + "\n"


def _lines(path: Path) -> Iterator[Entry]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                line = _entry(text)
                if line is None:
                    raise SkillcError(
                        f"`{path}`, line {number}: no entry of a cache",
                        hint="`skillc cache export` writes such a file; nothing was added",
                    )
                yield line
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise SkillcError(f"`{path}` is not in UTF-8", hint="`skillc cache export` writes such a file") from problem


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
    except TROUBLE as problem:
        raise trouble(folder, problem) from problem
    finally:
        cache.close()
