"""Files that a git merge left open, with the text of both sides between marks."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.errors import SkillcError

_BEGIN, _BETWEEN, _END = "<<<<<<<", "=======", ">>>>>>>"
_BASE = "|||||||"


def is_mark(line: str) -> bool:
    """Whether a line is one that a merge writes between two sides."""
    return line.rstrip("\r\n") == _BETWEEN or line.startswith((_BEGIN + " ", _END + " ", _BASE + " ", _BASE + "\n"))


def has_marks(text: str) -> bool:
    """Whether a text holds both sides of a merge: the marks stand in their order, each on a line of its own."""
    wanted = [_BEGIN, _BETWEEN, _END]
    for line in text.splitlines():
        if wanted and is_mark(line) and line.startswith(wanted[0]):
            wanted.pop(0)
    return not wanted


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
