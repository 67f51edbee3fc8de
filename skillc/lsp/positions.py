"""Between offsets of characters, as the compiler counts, and lines with code units, as an editor does."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import lru_cache

from lsprotocol import types

from skillc.syntax.source import Span

_LINE_END = re.compile(r"\r\n|\n|\r")

Encoding = types.PositionEncodingKind

UTF_16 = Encoding.Utf16


def _utf8(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _utf16(text: str) -> int:
    return len(text) + sum(c > "\uffff" for c in text)


_UNITS: Mapping[Encoding, Callable[[str], int]] = {Encoding.Utf8: _utf8, Encoding.Utf16: _utf16, Encoding.Utf32: len}


class Positions:
    """The lines of one text, in the units that were agreed with the editor.

    A line ends at a line feed, a carriage return or both, and nowhere else: `str.splitlines` knows eight more ends,
    which an editor takes for characters.
    """

    def __init__(self, text: str, encoding: Encoding = UTF_16) -> None:
        self._text = text
        self._units = _UNITS[encoding]
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        self._plain = text.isascii()

    def position(self, offset: int) -> types.Position:
        """The position of a character; one past the end is at the end."""
        offset = min(max(offset, 0), len(self._text))
        line = bisect_right(self._starts, offset) - 1
        start = self._starts[line]
        return types.Position(line, offset - start if self._plain else self._units(self._text[start:offset]))

    def range(self, span: Span) -> types.Range:
        """The range of a span."""
        return types.Range(self.position(span.start), self.position(span.end))

    def offset(self, position: types.Position) -> int:
        """The character at a position; one past the end of a line, or of the text, is at that end.

        A position between the two halves of a character is taken for its beginning.
        """
        if position.line >= len(self._starts):
            return len(self._text)
        start = self._starts[position.line]
        end = self._starts[position.line + 1] if position.line + 1 < len(self._starts) else len(self._text)
        line = self._text[start:end].rstrip("\r\n")
        if self._plain:
            return start + min(position.character, len(line))
        counted = 0
        for index, character in enumerate(line):
            counted += self._units(character)
            if counted > position.character:
                return start + index
        return start + len(line)

    def span(self, range_: types.Range) -> Span:
        """The span of a range."""
        start = self.offset(range_.start)
        return Span(start, max(start, self.offset(range_.end)))

    def length(self, span: Span) -> int:
        """How many units a span has, of one line."""
        return span.end - span.start if self._plain else self._units(self._text[span.start : span.end])

    def lines(self, span: Span) -> list[Span]:
        """A span cut at line ends, which semantic tokens may not cross; empty pieces are left out."""
        pieces, start = [], span.start
        for match in _LINE_END.finditer(self._text, span.start, span.end):
            pieces.append(Span(start, match.start()))
            start = match.end()
        pieces.append(Span(start, span.end))
        return [piece for piece in pieces if piece.end > piece.start]


@lru_cache(maxsize=64)
def positions(text: str, encoding: Encoding = UTF_16) -> Positions:
    """The lines of a text; those of the last few texts are kept."""
    return Positions(text, encoding)
