"""Merge conflicts that git left in a file, between conflict markers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.dataclass import dataclass
from skillc.errors import SkillcError

_MARK = re.compile(r"^(?:<{7} [^\n]*|\|{7}(?: [^\n]*|$)|={7}(?=\r?$)|>{7} [^\n]*)", re.MULTILINE)
_WRITTEN = re.compile(r"[^\r\n]")

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Conflict:
    """The ranges of the markers of one conflict.

    Attributes:
        begin: the first marker.
        theirs: the marker after our side, of the common ancestor or of their side.
        between: the marker before their side.
        end: the last marker.
    """

    begin: Range
    theirs: Range
    between: Range
    end: Range


def conflicts(text: str) -> Iterator[Conflict]:
    """Yield each conflict with markers in the right order, each on a separate line."""
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
    """Blank all but our side of each conflict; the length and the lines of the text stay the same."""
    pieces, place = [], 0
    for each in found:
        for start, end in (each.begin, (each.theirs[0], each.end[1])):
            pieces += [text[place:start], _WRITTEN.sub(" ", text[start:end])]
            place = end
    return "".join([*pieces, text[place:]])


def is_mark(line: str) -> bool:
    """Return whether a line is a conflict marker."""
    return _MARK.match(line) is not None


def has_marks(text: str) -> bool:
    """Return whether a text contains a conflict."""
    return next(conflicts(text), None) is not None


# ---- compiled skills ------------------------------------------------------------------------------


class UnmergedError(SkillcError):
    """A file of a compiled skill contains merge conflicts."""

    def __init__(self, path: Path, paths: ArtifactPaths) -> None:
        super().__init__(
            f"`{path}` contains merge conflicts: two branches compiled this skill",
            hint=f"`skillc resolve {paths.folder} --keep ours` writes one side whole; "
            "other choices: `--keep theirs`, `--keep better`",
        )


def refuse_unmerged(path: Path, text: str, paths: ArtifactPaths) -> None:
    """Reject a file of a compiled skill with conflict markers, unless the lock contains its digest.

    A skill may quote such markers; then its digest is that of the compiled file.

    Raises:
        UnmergedError: the file contains conflicts.
    """
    if has_marks(text) and not _is_as_compiled(path, text, paths):
        raise UnmergedError(path, paths)


def check_merged(paths: ArtifactPaths) -> None:
    """Reject a compiled skill with merge conflicts.

    Raises:
        UnmergedError: its lock, its SKILL.md or its module contains conflict markers.
    """
    for path in (paths.lock, paths.skill, paths.module, *_sections(paths)):
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            continue
        refuse_unmerged(path, text, paths)


def _sections(paths: ArtifactPaths) -> list[Path]:
    """Return the further markdown files of a skill's folder that its lock lists."""
    names = [name for name in _locked_files(paths) if name.startswith(f"{paths.name}/") and name.endswith(".md")]
    return [paths.base / name for name in names if paths.base / name != paths.skill]


def _is_as_compiled(path: Path, text: str, paths: ArtifactPaths) -> bool:
    return hashlib.sha256(text.encode()).hexdigest() == _locked_files(paths).get(paths.key(path))


def _locked_files(paths: ArtifactPaths) -> Mapping[str, object]:
    """Return the digests of files in a skill's lock; none from a lock that cannot be read."""
    try:
        found = json.loads(paths.lock.read_text(encoding="utf-8-sig"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
