"""The statements of a text that does not parse, found by brackets, line ends and indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillc.dataclass import dataclass
from skillc.syntax.reader import CLOSERS, DEPTH_LIMIT, OPENERS
from skillc.syntax.tokens import parts, tokenize

_CONTINUATION = re.compile(r"(?:\s|#[^\n]*+)*+(?:[-+*|<>=!:.,{]|/(?!/)|(?:and|or)\b)")
_UNFINISHED = re.compile(r"(?:[-+*/|<>=:.,!&]|\b(?:and|or|not))[ \t\r]*\Z")
_NEXT_AT_COLUMN_0 = re.compile(r"[ \t\r]*(?:#[^\n]*)?\n(?:[ \t\r]*(?:#[^\n]*)?\n)*(?=[^\W\d]|\})")
_INDENT = re.compile(r"(?:[ \t\r]*\n)*([ \t]*)(\S?)")
_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"\s*")
_PAIRS = {")": "(", "]": "[", "}": "{"}


@dataclass(slots=True)
class _OpenBracket:
    bracket: str
    at: int
    statement: int
    indent: int = 0


def chunks(text: str) -> list[tuple[int, int]]:
    """Split a text into parts that can be parsed separately: one for each name in the first column, outside texts.

    A block whose first line is in the first column too is not split.
    """
    starts = [0]
    open_: list[bool] = []
    for match in parts(text):
        if match.lastgroup == "open":
            open_.append(_NEXT_AT_COLUMN_0.match(text, match.end()) is not None)
        elif match.lastgroup == "close" and open_:
            open_.pop()
        elif match.lastgroup == "head" and not (open_ and open_[-1]) and match[0] not in ("and", "or"):
            open_.clear()
            starts.append(match.start())
    return [(a, b) for a, b in zip(starts, [*starts[1:], len(text)], strict=True) if b > a]


def statement_at(text: str, place: int) -> tuple[int, int]:
    """Return start and end of the innermost statement that contains an offset."""
    for start, end in _statements(text):
        if start <= place < max(end, start + 1):
            return start, end
    return place, place


def indentation(text: str, place: int) -> int:
    """Return the indentation of the line of an offset, in characters."""
    start = text.rfind("\n", 0, place) + 1
    match = _BLANK.match(text, start)
    return match.end() - start if match else 0


class _Indents:
    """`indentation` for mostly increasing offsets, in linear time also for a line of megabytes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begin = self._seen = 0

    def at(self, place: int) -> int:
        if place < self._begin:
            return indentation(self._text, place)
        if place > self._seen:
            self._begin = max(self._begin, self._text.rfind("\n", self._seen, place) + 1)
            self._seen = place
        match = _BLANK.match(self._text, self._begin)
        return match.end() - self._begin if match else 0


def braces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of each pair of braces, in the order of the `}`."""
    opened: list[int] = []
    for match in parts(text):
        if match[0] == "{":
            opened.append(match.start())
        elif match[0] == "}" and opened:
            yield opened.pop(), match.start()


def separators(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the offsets of commas of a range that are outside brackets."""
    depth = 0
    for token in tokenize(text[start:end], whole=False).found:
        if token.kind in OPENERS:
            depth += 1
        elif token.kind in CLOSERS:
            depth -= 1
        elif token.kind == "COMMA" and depth <= 0:
            yield start + token.start


def _statements(text: str) -> Iterator[tuple[int, int]]:
    """Yield every statement, those of a block before the statement with the block."""
    frames, indents = [_OpenBracket("", 0, 0)], _Indents(text)
    comment = -1
    for match in parts(text):
        kind, at = match.lastgroup, match.start()
        frame = frames[-1]
        if kind == "comment":
            comment = at
        elif kind == "open":
            first = _SPACE.match(text, frame.statement)
            frames.append(_OpenBracket(match[0], at, match.end(), indents.at(first.end() if first else at)))
        elif kind == "close":
            yield from _close(text, frames, match[0], at)
        elif kind == "semicolon" and frame.bracket in ("", "{"):
            yield _trimmed(text, frame.statement, at)
            frame.statement = match.end()
        elif kind == "newline":
            if _ends(text, frames, comment, at):
                while frames[-1].bracket in ("(", "["):
                    frames.pop()
                yield _trimmed(text, frames[-1].statement, at)
                frames[-1].statement = match.end()
            comment = -1
    for frame in reversed(frames):
        if frame.bracket in ("", "{"):
            yield _trimmed(text, frame.statement, len(text))


def _close(text: str, frames: list[_OpenBracket], bracket: str, at: int) -> Iterator[tuple[int, int]]:
    wanted = _PAIRS[bracket]
    # A `)` does not match a `(` outside its block; anything deeper is not parsed anyway.
    near = "".join(frame.bracket for frame in frames[-2 * DEPTH_LIMIT :])
    if wanted not in (near if wanted == "{" else near.rpartition("{")[2]):
        return
    while frames[-1].bracket != wanted:
        frames.pop()
    frame = frames.pop()
    if wanted == "{":
        yield _trimmed(text, frame.statement, at)


def _ends(text: str, frames: list[_OpenBracket], comment: int, at: int) -> bool:
    """Return whether the newline at `at` ends a statement, including one with an unclosed `(`."""
    code = text[text.rfind("\n", 0, at) + 1 : comment if comment >= 0 else at]
    if not code.strip():
        return False
    if frames[-1].bracket in ("(", "["):
        following = _INDENT.match(text, at + 1)
        return bool(following and following[2] not in (")", "]", "") and len(following[1]) <= frames[-1].indent)
    return not _UNFINISHED.search(code) and not _CONTINUATION.match(text, at)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    return start, start + len(text[start:end].rstrip())
