"""Statements of one line, one below the other: what stands in columns, and when.

Adjacent lines of one shape are aligned, `=` under `=`, name under name, `{` under `{`: until a blank line, a comment on
a line of its own, a statement of several lines or one of another shape. Comments that end lines are aligned too, over
all shapes. Nothing is aligned where a line would become too long by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from skillc.syntax.formatting.width import LIMIT, width

_GAP = 2


@dataclass(slots=True)
class Row:
    """A statement on one line.

    Attributes:
        words: its words, each a cell.
        shape: what follows the words where that is aligned: `=`, `:` or `{`; else empty.
        rest: all behind the words, the blank before it included.
        comment: the one that ends the line.
    """

    words: list[str]
    shape: str
    rest: str
    comment: str | None = None

    @property
    def text(self) -> str:
        """The line without its comment, nothing aligned."""
        return " ".join(self.words) + self.rest


def lines(rows: list[Row], indent: int) -> list[str]:
    """The lines of adjacent rows."""
    if len(rows) == 1:
        row = rows[0]
        comment = "" if row.comment is None else " " * _GAP + row.comment
        return [" " * indent + row.text + comment]
    texts: list[str] = []
    for (shape, _), group in groupby(rows, lambda row: (row.shape, len(row.words))):
        same = list(group)
        aligned = _aligned(same) if shape and len(same) > 1 else []
        if not aligned or any(indent + width(text) > LIMIT for text in aligned):
            aligned = [row.text for row in same]
        texts += aligned
    return _with_comments([" " * indent + text for text in texts], [row.comment for row in rows])


def _aligned(rows: list[Row]) -> list[str]:
    columns = [max(map(width, column)) for column in zip(*(row.words for row in rows), strict=True)]
    if rows[0].shape == ":":
        # The colon stands at the name, and the type right behind it.
        columns[-1] = 0
    padded = (" ".join(_padded(word, size) for word, size in zip(row.words, columns, strict=True)) for row in rows)
    return [text + row.rest for text, row in zip(padded, rows, strict=True)]


def _with_comments(texts: list[str], comments: list[str | None]) -> list[str]:
    column = max((width(text) for text, comment in zip(texts, comments, strict=True) if comment), default=0)
    pairs = list(zip(texts, comments, strict=True))
    aligned = all(
        column + _GAP + width(comment) <= max(LIMIT, width(text) + _GAP + width(comment))
        for text, comment in pairs
        if comment
    )
    size = column if aligned else 0
    return [_padded(text, size) + " " * _GAP + comment if comment else text for text, comment in pairs]


def _padded(text: str, size: int) -> str:
    return text + " " * (size - width(text))
