"""Files that a git merge left open, with the text of both sides between marks."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from skillc.errors import SkillcError

_BEGIN, _BETWEEN, _END = "<<<<<<<", "=======", ">>>>>>>"
_BASE = "|||||||"
SKILL_FILE, LOCK_FILE = "SKILL.md", "skill.lock"


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

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"a merge left `{path}` open: two branches compiled this skill, and it holds a part of either",
            hint=f"`skillc resolve {path.parent} --keep ours` puts one side in whole; `theirs` and `better` are others",
        )


def refuse_unmerged(path: Path, text: str) -> None:
    """Refuses a file of a compiled skill that holds marks of a merge.

    A skill may well speak of such marks: one that its lock knows by its digest is as it was compiled.

    Raises:
        UnmergedError: it does.
    """
    if has_marks(text) and not _compiled_so(path, text):
        raise UnmergedError(path)


def check_merged(folder: Path) -> None:
    """Refuses the folder of a compiled skill that a merge left open.

    Raises:
        UnmergedError: its lock or its skill holds both sides.
    """
    for name in (LOCK_FILE, SKILL_FILE):
        try:
            text = (folder / name).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            continue
        refuse_unmerged(folder / name, text)


def _compiled_so(path: Path, text: str) -> bool:
    try:
        lock = json.loads(path.with_name(LOCK_FILE).read_text(encoding="utf-8-sig"))
        known = lock["files"][path.name]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(hashlib.sha256(text.encode()).hexdigest() == known)
