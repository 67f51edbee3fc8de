"""A cache as a file of JSON lines, to keep or to carry elsewhere: key, endpoint, model, time, reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from skillc.errors import SkillcError
from skillc.files import write_whole
from skillc.models.cache.folder import entries, reading, transaction, writing
from skillc.models.cache.replies import ReplyCache
from skillc.models.cache.stored import Label, whole_reply

_BATCH = 500
_HEX = re.compile(r"[0-9a-f]{64}")
_VALUE = "SELECT value FROM Cache WHERE rowid = ?"
_INSERT = (
    "INSERT OR IGNORE INTO Cache (key, raw, store_time, access_time, tag, size, mode, value)"
    " VALUES (?, 1, ?, ?, ?, 0, 1, ?)"
)


@dataclass(frozen=True, slots=True)
class Moved:
    """How many entries a file was given or gave, and how many were left out: unreadable, or there already."""

    entries: int
    left_out: int


@dataclass(frozen=True, slots=True)
class _Line:
    key: str
    label: Label
    stored: float
    reply: str


def export(folder: Path, path: Path) -> Moved:
    """Writes all replies of a folder into a file, whole or not at all.

    Raises:
        SkillcError: the folder cannot be read, or the file not be written.
    """
    written = left_out = 0

    def lines() -> Iterator[str]:
        nonlocal written, left_out
        with reading(folder) as base:
            for entry in entries(folder):
                found = base.execute(_VALUE, (entry.row,)).fetchone()
                text = found[0] if found else None
                if text is None and entry.file is not None:
                    text = _read(folder, entry.file)
                reply = whole_reply(text) if isinstance(text, str) else None
                if reply is None:
                    left_out += 1
                    continue
                written += 1
                yield _as_line(entry.key, entry.label, entry.stored, reply)

    try:
        write_whole(path, lines())
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem
    return Moved(written, left_out)


def take_in(folder: Path, path: Path) -> Moved:
    """Adds the replies of a file to a folder; what is there stays as it is. The folder is made where it is not there.

    Raises:
        SkillcError: a line of the file is no entry, and nothing was added; or the folder cannot be written.
    """
    for _ in _lines(path):
        pass
    ReplyCache(folder).close()
    added = seen = 0
    with writing(folder) as base:
        for batch in _batches(_lines(path)):
            rows = [(line.key, line.stored, line.stored, line.label.as_text(), line.reply) for line in batch]
            with transaction(base):
                added += base.executemany(_INSERT, rows).rowcount
            seen += len(batch)
    return Moved(added, seen - added)


def moment(stored: float) -> str:
    """A time as it stands in the file: UTC, to the millisecond."""
    return datetime.fromtimestamp(stored, UTC).isoformat(timespec="milliseconds")


def _as_line(key: str, label: Label, stored: float, reply: dict[str, Any]) -> str:
    entry = {"key": key, "endpoint": label.endpoint, "model": label.model, "stored": moment(stored), "reply": reply}
    return json.dumps(entry, ensure_ascii=False) + "\n"


def _lines(path: Path) -> Iterator[_Line]:
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


def _entry(text: str) -> _Line | None:
    try:
        data = json.loads(text)
        key, stored = data["key"], datetime.fromisoformat(data["stored"]).timestamp()
        label = Label(data["endpoint"], data["model"])
        reply = json.dumps(data["reply"])
    except (ValueError, TypeError, KeyError):
        return None
    names = all(name is None or isinstance(name, str) for name in (label.endpoint, label.model))
    known = isinstance(key, str) and _HEX.fullmatch(key) and names and whole_reply(reply) is not None
    return _Line(key, label, stored, reply) if known else None


def _batches(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    rest = iter(lines)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def _read(folder: Path, file: str) -> str | None:
    path = (folder / file).resolve()
    try:
        return path.read_text(encoding="utf-8") if path.is_relative_to(folder.resolve()) else None
    except (OSError, UnicodeDecodeError):
        return None
