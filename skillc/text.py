"""Counts, lists and long values in messages; unique names; columns of a text."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence

_STEPS = ("bytes", "KB", "MB", "GB", "TB")


def counted(number: int, noun: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 row`, `1,200 rows`; `many` is an irregular plural."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def joined(parts: Sequence[str], word: str = "and") -> str:
    """Return parts as prose: `a, b and c`."""
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}" if len(parts) > 1 else "".join(parts)


def listed(names: Iterable[object], word: str | None = None, *, most: int | None = None) -> str:
    """Return names in backticks: `` `a`, `b` ``.

    Args:
        names: the names, in order.
        word: what to put before the last: `or` gives `` `a`, `b` or `c` ``.
        most: how many names to show; `and 5 more` replaces the rest.
    """
    every = [f"`{name}`" for name in names]
    if most is not None and len(every) > most:
        return f"{', '.join(every[:most])} and {len(every) - most:,} more"
    return joined(every, word) if word else ", ".join(every)


def cut(text: str, most: int) -> str:
    """Return a text on one line, cut after `most` characters."""
    line = " ".join(text.split())
    return f"{line[:most]}…" if len(line) > most else line


def shown(text: str, most: int = 60) -> str:
    """Return a value in backticks, on one line and cut after `most` characters."""
    return f"`{cut(text, most)}`"


def in_bytes(count: int) -> str:
    """Return bytes in decimal units: `123 bytes`, `4.5 MB`."""
    size, step = float(count), 0
    while size >= 999.95 and step + 1 < len(_STEPS):
        size, step = size / 1000, step + 1
    return f"{size:,.1f} {_STEPS[step]}" if step else counted(count, "byte")


def free_name(name: str, taken: Collection[object], sign: str = "_") -> str:
    """Return a name that is not taken: the name, else `name_2`, `name_3` and so on."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}{sign}{number}", number + 1
    return free


def text_width(text: str) -> int:
    """Return the columns of a text: wide characters have two, combining and invisible ones none.

    >>> text_width("naïve"), text_width("精度")
    (5, 4)
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
