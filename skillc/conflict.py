"""Conflicts that a git merge left in a file: both sides between marks."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.errors import SkillcError

_MARK = re.compile(r"^(?:<{7} [^\n]*|\|{7}(?: [^\n]*|$)|={7}(?=\r?$)|>{7} [^\n]*)", re.MULTILINE)
_WRITTEN = re.compile(r"[^\r\n]")

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Conflict:
    """The places of the marks of one conflict.

    Attributes:
        begin: the first mark.
        theirs: the mark of the part that is not read: the common ancestor, or the other side.
        between: the mark between both sides.
        end: the last mark.
    """

    begin: Range
    theirs: Range
    between: Range
    end: Range


def conflicts(text: str) -> Iterator[Conflict]:
    """Find each conflict whose marks are in their order, each on its own line."""
    begin: Range | None = None
    base: Range | None = None
    between: Range | None = None
    for match in _MARK.finditer(text):
        place, sign = (match.start(), match.start() + len(match[0].rstrip())), match[0][0]
        if sign == "<":
            begin, base, between = place, None, None
        elif begin is not None and sign == "|" and between is None:
            base = place
        elif begin is not None and sign == "=" and between is None:
            between = place
        elif begin is not None and sign == ">" and between is not None:
            yield Conflict(begin, base or between, between, place)
            begin = None


def keep_ours(text: str, found: Iterable[Conflict]) -> str:
    """The text with our side alone of each conflict, of the same length and with the same lines."""
    pieces, place = [], 0
    for each in found:
        for start, end in (each.begin, (each.theirs[0], each.end[1])):
            pieces += [text[place:start], _WRITTEN.sub(" ", text[start:end])]
            place = end
    return "".join([*pieces, text[place:]])


def is_mark(line: str) -> bool:
    """Whether a line is one that a merge writes between two sides."""
    return _MARK.match(line) is not None


def has_marks(text: str) -> bool:
    """Whether a text holds both sides of a merge."""
    return next(conflicts(text), None) is not None


# ---- compiled skills ------------------------------------------------------------------------------


class UnmergedError(SkillcError):
    """A file of a compiled skill holds both sides of a merge."""

    def __init__(self, path: Path, paths: ArtifactPaths) -> None:
        super().__init__(
            f"a merge left `{path}` open: two branches compiled this skill, and it holds a part of either",
            hint=f"`skillc resolve {paths.folder} --keep ours` writes one side whole; "
            "other choices: `--keep theirs`, `--keep better`",
        )


def refuse_unmerged(path: Path, text: str, paths: ArtifactPaths) -> None:
    """Refuse a file of a compiled skill that holds conflict marks.

    The text of a skill may quote such marks: a file with the digest of its lock is as it was compiled.

    Raises:
        UnmergedError: the file holds them.
    """
    if has_marks(text) and not _compiled_so(path, text, paths):
        raise UnmergedError(path, paths)


def check_merged(paths: ArtifactPaths) -> None:
    """Refuse a compiled skill that a merge left open.

    Raises:
        UnmergedError: its lock, its SKILL.md or its module holds conflict marks.
    """
    for path in (paths.lock, paths.skill, paths.module):
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            continue
        refuse_unmerged(path, text, paths)


def _compiled_so(path: Path, text: str, paths: ArtifactPaths) -> bool:
    try:
        lock = json.loads(paths.lock.read_text(encoding="utf-8-sig"))
        known = lock["files"][paths.key(path)]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(hashlib.sha256(text.encode()).hexdigest() == known)
