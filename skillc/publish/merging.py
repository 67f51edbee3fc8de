"""Merge edits by hand with an update, rule by rule.

A markdown file is a sequence of units: a key of the frontmatter, a heading, a list item with its nested lines, a
paragraph, a code block. A unit that one side changed is taken from that side; units that both sides added at one place
are all kept. A unit that both sides changed differently is a conflict. Other files are one unit each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from skillc.dataclass import dataclass
from skillc.document.markdown import heading, item_mark, prose

_KEY = re.compile(r"[^\s#:][^:]*:")
_SAME = 0.5


@dataclass(frozen=True, slots=True)
class Conflict:
    """A unit that both sides changed; None for a side that removed it.

    Attributes:
        file: its path in the skill's folder.
        base: the text of both before, None if both added it.
    """

    file: str
    base: str | None
    ours: str | None
    theirs: str | None


@dataclass(frozen=True, slots=True)
class Merged:
    """Merged files of a skill. Where there is a conflict, `files` contains the text of `theirs`."""

    files: Mapping[str, bytes]
    conflicts: tuple[Conflict, ...]


def merge(base: Mapping[str, bytes], ours: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> Merged:
    """Merge the changes from `base` to `ours` with those from `base` to `theirs`."""
    files, conflicts = dict[str, bytes](), list[Conflict]()
    for name in sorted({*base, *ours, *theirs}):
        old, mine, new = (_normal(each.get(name)) for each in (base, ours, theirs))
        if mine in (old, new):
            taken = new
        elif new == old:
            taken = mine
        elif name.endswith(".md") and mine is not None and new is not None:
            merged, found = merge_texts(name, (old or b"").decode(), mine.decode(), new.decode())
            conflicts += found
            taken = merged.encode()
        else:
            conflicts.append(Conflict(name, *(_shown(each) for each in (old, mine, new))))
            taken = new
        if taken is not None:
            files[name] = taken
    return Merged(files, tuple(conflicts))


def merge_texts(name: str, base: str, ours: str, theirs: str) -> tuple[str, list[Conflict]]:
    """Merge two versions of a markdown text; return it with the conflicts, where it contains the text of `theirs`."""
    if base in (ours, theirs) or ours == theirs:
        return (theirs if base == ours else ours), []
    old = units(base)
    mine, new = _Side(old, units(ours)), _Side(old, units(theirs))
    merged, conflicts = list[str](), list[Conflict]()
    blank = False
    for i in range(len(old) + 1):
        added = {each.strip() for each in new.added[i]}
        merged += [*new.added[i], *(each for each in mine.added[i] if each.strip() not in added)]
        if i == len(old):
            break
        before, one, other = old[i].strip(), mine.kept[i], new.kept[i]
        stripped = [None if each is None else each.strip() for each in (one, other)]
        if stripped[0] in (before, stripped[1]):
            taken = other
        elif stripped[1] == before:
            taken = one
        else:
            conflicts.append(Conflict(name, before, *stripped))
            taken = other
        if taken is None:
            # The blank line above a removed unit is that of the next one.
            blank = blank or old[i].startswith("\n")
            continue
        merged.append(f"\n{taken}" if blank and not taken.startswith("\n") else taken)
        blank = False
    text = "".join(each if each.endswith("\n") else f"{each}\n" for each in merged)
    return text.lstrip("\n"), conflicts


def units(text: str) -> list[str]:
    """Split a markdown text into units that join to the text; blank lines belong to the unit after them."""
    lines = text.splitlines(keepends=True)
    end = _end_of_frontmatter(lines)
    found, blank = list[str](), list[str]()
    for i, (line, is_prose) in enumerate(prose([each.rstrip("\r\n") for each in lines])):
        whole = lines[i]
        if i < end:
            starts = line == "---" or _KEY.match(line) is not None
        elif not line.strip() and is_prose:
            blank.append(whole)
            continue
        else:
            starts = is_prose and (heading(line) is not None or (not line[:1].isspace() and bool(item_mark(line))))
            # An indented line after a blank one belongs to the list item above it.
            starts = starts or (bool(blank) and not line[:1].isspace()) or i == end
            starts = starts or (bool(found) and heading(found[-1].strip()) is not None and not blank)
        if starts or not found:
            found.append("".join([*blank, whole]))
        else:
            found[-1] += "".join([*blank, whole])
        blank = []
    if blank and found:
        found[-1] += "".join(blank)
    return found


def _end_of_frontmatter(lines: Sequence[str]) -> int:
    """Return the index of the first line after the frontmatter, 0 without one."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((i + 1 for i, line in enumerate(lines) if i and line.rstrip() == "---"), 0)


class _Side:
    """Changes of one side to each unit of the base.

    Attributes:
        kept: the text of each unit, None if it is removed.
        added: the units before each one, and at the end.
    """

    def __init__(self, base: Sequence[str], side: Sequence[str]) -> None:
        self.kept: list[str | None] = [None] * len(base)
        self.added: list[list[str]] = [[] for _ in range(len(base) + 1)]
        matcher = SequenceMatcher(None, [each.strip() for each in base], [each.strip() for each in side], False)
        for what, i, end, j, stop in matcher.get_opcodes():
            if what == "equal":
                self.kept[i:end] = side[j:stop]
            elif what == "replace":
                self._pair(base, side, (i, end), (j, stop))
            elif what == "insert":
                self.added[i] += side[j:stop]

    def _pair(self, base: Sequence[str], side: Sequence[str], old: tuple[int, int], new: tuple[int, int]) -> None:
        """Find which of the replaced units were changed; the others were removed or added."""
        at = old[0]
        for unit in side[slice(*new)]:
            alike = [
                (SequenceMatcher(None, base[i].strip(), unit.strip(), False).ratio(), -i) for i in range(at, old[1])
            ]
            best, place = max(alike, default=(0.0, 0))
            if best >= _SAME:
                self.kept[-place] = unit
                at = -place + 1
            else:
                self.added[at].append(unit)


def _normal(content: bytes | None) -> bytes | None:
    return content.replace(b"\r\n", b"\n") if content is not None else None


def _shown(content: bytes | None) -> str | None:
    return content.decode(errors="replace") if content is not None else None
