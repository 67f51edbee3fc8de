"""Source text and positions in it. Offsets count characters from 0; `end` is exclusive."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

from skillc.dataclass import dataclass

_LINE_END = re.compile("\n")
_IN_LINE = re.compile(r"[^\n]")


def blank(text: str) -> str:
    """Return a text of the same length and lines that consists of spaces."""
    return _IN_LINE.sub(" ", text)


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of characters, `start <= end`."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """Return the smallest span that contains both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True)
class Source:
    """One file of a program: its name for messages, and its text without a byte-order mark."""

    name: str
    text: str

    @cached_property
    def line_starts(self) -> Sequence[int]:
        """The offset of the first character of each line."""
        # An array, because a tuple of ten million numbers takes 400 MB.
        starts = array("q", [0])
        starts.extend(match.end() for match in _LINE_END.finditer(self.text))
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both from 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return a line, counted from 1, without its line end."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def line_start(self, offset: int) -> int:
        """Return the start of the line of an offset."""
        return self.text.rfind("\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """Return the end of the line of an offset, before its line feed."""
        end = self.text.find("\n", offset)
        return end if end >= 0 else len(self.text)

    def slice(self, span: Span) -> str:
        """Return the text of a span."""
        return self.text[span.start : span.end]
