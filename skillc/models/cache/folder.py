"""A cache folder seen from outside: what is in it, and taking entries out, also while a compile uses it.

The rows are read straight from the table that diskcache keeps: opened through diskcache, a folder is written to.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from skillc.errors import SkillcError
from skillc.models.cache.replies import DATABASE
from skillc.models.cache.stored import Label, read_label, whole_reply

_WAIT = 60.0  # seconds for a compile that is writing
_BATCH = 500  # rows in one transaction, so that a compile waits milliseconds
_KEY = 64
_ROWS = (
    "SELECT rowid, key, store_time, tag, filename, CASE WHEN tag IS NULL THEN value END,"
    " CASE WHEN value IS NULL THEN size ELSE length(CAST(value AS BLOB)) END"
    f" FROM Cache WHERE raw = 1 AND length(key) = {_KEY} ORDER BY key"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One reply.

    Attributes:
        row: its number in the table.
        stored: when, in seconds since the epoch.
        size: bytes of its text.
        file: where its text lies if it is not in the table, as older versions kept long ones.
    """

    row: int
    key: str
    label: Label
    stored: float
    size: int
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The entries of one endpoint and model; times in seconds since the epoch."""

    label: Label
    entries: int
    size: int
    oldest: float
    newest: float


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was taken out, or would be: entries, bytes of their texts, and bytes that the folder became smaller."""

    entries: int
    size: int
    freed: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries: all conditions that are given have to hold. `before` in seconds since the epoch."""

    before: float | None = None
    model: str | None = None
    endpoint: str | None = None

    def __call__(self, entry: Entry) -> bool:
        """Whether an entry is meant."""
        return (
            (self.before is None or entry.stored < self.before)
            and (self.model is None or entry.label.model == self.model)
            and (self.endpoint is None or entry.label.endpoint == self.endpoint)
        )


def find_folder(path: Path, *, new: bool = False) -> Path:
    """The cache folder that a path means: itself, or the one beside a program, in a program's folder or in `.skillc`.

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
    """All replies, ordered by key. Nothing is written.

    Raises:
        SkillcError: the database cannot be read.
    """
    with reading(folder) as base:
        for row, key, stored, tag, file, value, size in base.execute(_ROWS):
            label = read_label(tag)
            if label.model is None and isinstance(value, str):
                # An entry of an older version: the reply says at least how its model names itself.
                label = replace(label, model=(whole_reply(value) or {}).get("model"))
            yield Entry(row, key, label, stored, size, file)


def groups(found: Iterable[Entry]) -> list[Group]:
    """The entries by endpoint and model, the largest first."""
    by_label: dict[Label, Group] = {}
    for entry in found:
        known = by_label.get(entry.label, Group(entry.label, 0, 0, entry.stored, entry.stored))
        by_label[entry.label] = Group(
            entry.label,
            known.entries + 1,
            known.size + entry.size,
            min(known.oldest, entry.stored),
            max(known.newest, entry.stored),
        )
    return sorted(by_label.values(), key=lambda group: (-group.size, str(group.label)))


def prune(folder: Path, wanted: Callable[[Entry], bool], *, dry: bool = False) -> Pruned:
    """Takes out the wanted entries and gives their space back to the disk.

    Raises:
        SkillcError: the database cannot be written.
    """
    chosen = [entry for entry in entries(folder) if wanted(entry)]
    size = sum(entry.size for entry in chosen)
    if dry or not chosen:
        return Pruned(len(chosen), size)
    before = disk_used(folder)
    with writing(folder) as base:
        for start in range(0, len(chosen), _BATCH):
            rows = [(entry.row, entry.key) for entry in chosen[start : start + _BATCH]]
            with transaction(base):
                base.executemany("DELETE FROM Cache WHERE rowid = ? AND key = ?", rows)
        # The table shrinks with each commit (diskcache sets `auto_vacuum`); the file when the log is worked in.
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for entry in chosen:
        _remove_file(folder, entry)
    return Pruned(len(chosen), size, max(0, before - disk_used(folder)))


def disk_used(folder: Path) -> int:
    """Bytes that the folder's files take."""
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database, to read from.

    Raises:
        SkillcError: it cannot be read.
    """
    with _told(folder), closing(sqlite3.connect(_address(folder, "ro"), uri=True, timeout=_WAIT)) as base:
        yield base


@contextmanager
def writing(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database, to change; each statement for itself unless `transaction` says otherwise.

    Raises:
        SkillcError: it cannot be written.
    """
    address = _address(folder, "rw")
    with _told(folder), closing(sqlite3.connect(address, uri=True, timeout=_WAIT, isolation_level=None)) as base:
        yield base


@contextmanager
def transaction(base: sqlite3.Connection) -> Iterator[None]:
    """All or nothing of what is changed inside."""
    base.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        base.rollback()
        raise
    base.commit()


def _address(folder: Path, mode: str) -> str:
    return f"{(folder / DATABASE).absolute().as_uri()}?mode={mode}"


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as problem:
        raise SkillcError(
            f"the cache `{folder}` cannot be used: {problem}", hint="check the folder's permissions and the disk"
        ) from problem
    except sqlite3.DatabaseError as problem:
        raise SkillcError(
            f"the cache `{folder}` is damaged: {problem}",
            hint="move the folder away; the replies in it will be paid for again",
        ) from problem


def _remove_file(folder: Path, entry: Entry) -> None:
    if entry.file is None:
        return
    path = (folder / entry.file).resolve()
    if path.is_relative_to(folder.resolve()):
        path.unlink(missing_ok=True)
