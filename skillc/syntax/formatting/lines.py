"""Write pieces on one line if they fit, else break at `and` and `or`, inside brackets, or at other operators."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.syntax.formatting.pieces import Bracket, Chain, Leaf, Piece, Run
from skillc.syntax.formatting.words import FormatToken
from skillc.syntax.literals import dedented
from skillc.syntax.nodes import Comment
from skillc.text import text_width

LIMIT = 120
"""Columns of a line without its comment."""
FENCE = '"""'
STEP = 2
"""Columns of one level of indentation."""


def indented(raw: str, indent: int) -> list[str]:
    r'''Return the lines of a text, fences included, for a line with that indentation.

    A text on one line is unchanged. Others have both fences on separate lines, the closing one indented like the line
    of the opening one, and the text between them indented one more step.

    >>> indented('"""\n      You route.\n    """', 2)
    ['"""', '    You route.', '  """']
    '''
    if "\n" not in raw:
        return [raw]
    lines = dedented(raw)
    margin = " " * (indent + STEP)
    body = [margin + line if line else "" for line in lines]
    made = _protected([FENCE, *(body if lines != [""] else ()), " " * indent + FENCE])
    # A text that begins on the line of its fence may have an indentation that no other layout can keep.
    return made if dedented("\n".join(made)) == lines else _protected(raw.replace("\r\n", "\n").split("\n"))


def _protected(lines: list[str]) -> list[str]:
    """Double carriage returns at line ends, which would otherwise be read as part of the line end."""
    return [line + "\r" if line.endswith("\r") else line for line in lines]


class Writer:
    """Collects the lines of one statement; a comment ends its line.

    Attributes:
        lines: the complete lines.
        indent: the indentation of the current line.
        fresh: whether the current line is empty.
    """

    def __init__(self, indent: int) -> None:
        self.lines: list[str] = []
        self.indent = indent
        self.fresh = True
        self._line = ""
        self._ended = False

    @property
    def column(self) -> int:
        """The column at which the next text would begin, without its glue."""
        return self.indent + text_width(self._line)

    def fits(self, text: str, more: int = 0) -> bool:
        """Return whether a text and `more` columns fit on the current line."""
        return not self._ended and self.column + text_width(text) + more <= LIMIT

    def newline(self, indent: int) -> None:
        """Begin a line, unless the current one is empty."""
        if not self.fresh:
            self.lines.append(" " * self.indent + self._line)
        self.indent, self.fresh, self._line, self._ended = indent, True, "", False

    def put(self, text: str, glue: str, indent: int) -> None:
        """Write a text without newlines; `indent` is for the new line that a comment may require."""
        if self._ended:
            self.newline(indent)
        self._line += text if self.fresh else glue + text
        self.fresh = False

    def word(self, word: FormatToken, indent: int) -> None:
        """Write a token with its comments."""
        self.above(word, indent)
        if word.kind == "TEXT" and "\n" in word.text:
            self._text(word, indent)
        else:
            self.put(word.text, word.glue, indent)
        if word.behind is not None:
            self.behind(word.behind)

    def above(self, word: FormatToken, indent: int) -> None:
        """Write the comments above a token, each on a separate line."""
        for comment in word.above:
            self.newline(indent)
            self.put(comment.text, "", indent)
            self.newline(indent)

    def behind(self, comment: Comment) -> None:
        """Write a comment that ends the line."""
        self._line += "  " + comment.text
        self._ended = True

    def done(self) -> list[str]:
        """Return all lines."""
        self.newline(0)
        return self.lines

    def _text(self, word: FormatToken, indent: int) -> None:
        if self._ended:
            self.newline(indent)
        first, *rest = indented(word.text, self.indent)
        self.put(first, word.glue, indent)
        for line in rest[:-1]:
            self.lines.append(" " * self.indent + self._line)
            # The lines of a text include their indentation.
            self.indent, self._line = 0, line
        if rest:
            self.lines.append(" " * self.indent + self._line)
            self.indent, self._line = len(rest[-1]) - len(rest[-1].lstrip(" ")), rest[-1].lstrip(" ")


# ---- breaking -------------------------------------------------------------------------------------


def write(writer: Writer, piece: Piece, indent: int, more: int) -> None:
    """Write a piece at the end of the line, as flat as possible.

    Args:
        writer: the lines so far.
        piece: the piece.
        indent: the indentation of new lines inside the piece.
        more: the columns needed after the piece on its last line.
    """
    if piece.flat is not None and writer.fits(piece.glue + piece.flat, more):
        writer.put(piece.flat, piece.glue, indent)
    elif isinstance(piece, Leaf):
        writer.word(piece.word, indent)
    elif isinstance(piece, Run):
        _run(writer, piece.parts, (indent, indent + STEP), more)
    elif isinstance(piece, Chain):
        _chain(writer, piece, indent, more)
    elif isinstance(piece, Bracket):
        _bracket(writer, piece, indent)


def _run(writer: Writer, parts: Sequence[Piece], indents: tuple[int, int], more: int) -> None:
    """Write consecutive pieces; the first has one indentation and the others another."""
    follows = [more]
    for part in reversed(parts[1:]):
        columns, breaks = _least(part, indents[1])
        follows.append(columns if breaks else columns + follows[-1])
    for i, part in enumerate(parts):
        write(writer, part, indents[min(i, 1)], follows[-1 - i])


def _least(piece: Piece, indent: int) -> tuple[int, bool]:
    """Return the columns that a piece needs on its first line, and whether it may break after them."""
    if isinstance(piece, Bracket) and piece.items:
        return len(piece.glue) + 1, True
    if isinstance(piece, Chain) and _breaks(piece, indent):
        return _least(piece.operands[0], indent)[0], True
    if isinstance(piece, Run | Chain):
        columns = 0
        for part in piece.parts if isinstance(piece, Run) else piece.parts():
            least, breaks = _least(part, indent)
            columns += least
            if breaks:
                return columns, True
        return columns, False
    return text_width(piece.glue + (piece.flat or "")), False


def _chain(writer: Writer, chain: Chain, indent: int, more: int) -> None:
    if not _breaks(chain, indent):
        _run(writer, chain.parts(), (indent, indent), more)
        return
    write(writer, chain.operands[0], indent + STEP, 0)
    for i, operator in enumerate(chain.operators, 1):
        writer.newline(indent)
        writer.word(operator, indent)
        write(writer, chain.operands[i], indent + STEP, more if i == len(chain.operators) else 0)


def _breaks(chain: Chain, indent: int) -> bool:
    """Return whether each operand gets a line: conditions and labels always, others if all then fit."""
    return chain.alternatives or all(
        each.flat is not None and indent + 3 + text_width(each.flat) <= LIMIT for each in chain.operands
    )


def _bracket(writer: Writer, bracket: Bracket, indent: int) -> None:
    writer.word(bracket.open, indent)
    base = writer.indent
    inner = base + STEP
    for item, comma in zip(bracket.items, bracket.commas, strict=True):
        writer.newline(inner)
        write(writer, item, inner, 1)
        if comma is not None:
            writer.word(comma, inner)
        elif bracket.listed:
            writer.put(",", "", inner)
    writer.above(bracket.close, inner)
    writer.newline(base)
    writer.put(bracket.close.text, "", base)
    if bracket.close.behind is not None:
        writer.behind(bracket.close.behind)
