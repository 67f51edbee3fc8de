"""Differences of texts, by words and by lines."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

Kind = Literal["same", "old", "new"]
Part: TypeAlias = tuple[Kind, str]

_WORDS = re.compile(r"\s+|[^\s]+")


def by_words(old: str, new: str) -> tuple[Part, ...]:
    """Return the parts of two texts in order: those in both, only in the old one, only in the new one."""
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    parts: list[Part] = []
    for tag, i, j, k, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            parts.append(("same", "".join(before[i:j])))
            continue
        if j > i:
            parts.append(("old", "".join(before[i:j])))
        if end > k:
            parts.append(("new", "".join(after[k:end])))
    return tuple(parts)


def by_lines(old: str, new: str) -> tuple[Part, ...]:
    """Return the changed lines of two texts with `-` and `+` before them, and two lines around each change."""
    before, after = old.splitlines(), new.splitlines()
    parts: list[Part] = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(2):
        parts += [("same", "…")] if parts else []
        for tag, i, j, k, end in group:
            if tag == "equal":
                parts += [("same", f"  {line}") for line in before[i:j]]
                continue
            parts += [("old", f"- {line}") for line in before[i:j]]
            parts += [("new", f"+ {line}") for line in after[k:end]]
    return tuple(parts)
