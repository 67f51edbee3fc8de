"""How many columns a text takes on a screen."""

from __future__ import annotations

import unicodedata

LIMIT = 120
"""Columns of a line, its comment aside."""


def width(text: str) -> int:
    """The columns of a line: wide characters count as two, combining ones as none.

    >>> width("naïve"), width("精度")
    (5, 4)
    """
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
