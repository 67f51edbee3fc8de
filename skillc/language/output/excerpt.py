"""A line of source as a terminal shows it: tabs, wide characters, characters without a width, lines too long for it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 120
"""Characters of a line that are shown."""

_BEFORE = 40
_TAB = 4


@dataclass(frozen=True, slots=True)
class Window:
    """The visible part of a line.

    Attributes:
        shown: what is printed.
        cells: for each character of the line's visible part, the terminal column at which it begins, and one more.
        first: the character of the line with which the visible part begins.
    """

    shown: str
    cells: tuple[int, ...]
    first: int

    def underline(self, start: int, end: int) -> tuple[int, int]:
        """Column and length of the marks under the characters `start` to `end` of the line, at least one long."""
        last = len(self.cells) - 1
        a = self.cells[min(max(start - self.first, 0), last)]
        b = self.cells[min(max(end - self.first, 0), last)]
        return a, max(1, b - a)


def window(line: str, spans: Sequence[tuple[int, int]]) -> Window:
    """The part of a line that is shown: all of it, or the surroundings of the first span."""
    first, end = 0, len(line)
    if end > LONGEST:
        place = min((start for start, _ in spans), default=0)
        first = max(0, min(place - _BEFORE, end - LONGEST))
        end = min(end, first + LONGEST)
    shown, cells, column = [], [], 0
    if first:
        shown.append("…")
        column = 1
    for character in line[first:end]:
        cells.append(column)
        drawn = _drawn(character, column)
        shown.append(drawn)
        column += sum(_width(each) for each in drawn)
    cells.append(column)
    if end < len(line):
        shown.append("…")
    return Window("".join(shown), tuple(cells), first)


def printable(words: str) -> str:
    """Words without what would move the cursor or could not be encoded."""
    return "".join(character if character == " " else _drawn(character, 0) for character in words)


def _drawn(character: str, column: int) -> str:
    if character == "\t":
        return " " * (_TAB - column % _TAB)
    if character.isprintable() or unicodedata.combining(character):
        return character
    # A no-break space is not printable, and looks as it should; the rest would show as nothing, or do harm.
    if unicodedata.category(character) == "Zs":
        return " "
    if unicodedata.category(character) == "Cf":
        return "·"
    return "\ufffd"


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
