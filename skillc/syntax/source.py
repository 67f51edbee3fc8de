"""Source text and places in it. Every offset counts characters from 0; `end` is exclusive."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_LINE_END = re.compile("\n")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of characters, `start <= end`."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that holds both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True)
class Source:
    """One file of a program: the name a user knows it by, and its text without a byte-order mark."""

    name: str
    text: str

    @cached_property
    def line_starts(self) -> Sequence[int]:
        """Offset of the first character of each line."""
        # A tuple of ten million numbers takes four hundred megabytes.
        starts = array("q", [0])
        starts.extend(match.end() for match in _LINE_END.finditer(self.text))
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its line end."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def line_end(self, offset: int) -> int:
        """Where the line of an offset ends, before its line feed."""
        end = self.text.find("\n", offset)
        return end if end >= 0 else len(self.text)

    def slice(self, span: Span) -> str:
        """The characters of a span."""
        return self.text[span.start : span.end]
