"""Lines, written token by token; a comment ends its line wherever it stands."""

from __future__ import annotations

from skillc.syntax.formatting.fences import indented
from skillc.syntax.formatting.tokens import Token
from skillc.syntax.formatting.width import LIMIT, width


class Writer:
    """The lines of one statement, as far as they are written.

    Attributes:
        lines: those that are complete.
        indent: of the line that is being written.
        fresh: whether nothing stands on that line yet.
    """

    def __init__(self, indent: int) -> None:
        self.lines: list[str] = []
        self.indent = indent
        self.fresh = True
        self._line = ""
        self._ended = False

    @property
    def column(self) -> int:
        """Where the next token would begin, its glue aside."""
        return self.indent + width(self._line)

    def fits(self, text: str, more: int = 0) -> bool:
        """Whether a text and `more` columns have room on this line."""
        return not self._ended and self.column + width(text) + more <= LIMIT

    def newline(self, indent: int) -> None:
        """Begin a line; one on which nothing stands is taken over."""
        if not self.fresh:
            self.lines.append(" " * self.indent + self._line)
        self.indent, self.fresh, self._line, self._ended = indent, True, "", False

    def put(self, text: str, glue: str, indent: int) -> None:
        """Write words that hold no newline; `indent` is that of the line that a comment may make necessary."""
        if self._ended:
            self.newline(indent)
        self._line += text if self.fresh else glue + text
        self.fresh = False

    def token(self, token: Token, indent: int) -> None:
        """Write a token with its comments."""
        self.above(token, indent)
        if token.kind == "text" and "\n" in token.text:
            self._text(token, indent)
        else:
            self.put(token.text, token.glue, indent)
        if token.behind is not None:
            self.behind(token.behind)

    def above(self, token: Token, indent: int) -> None:
        """Write the comments above a token, each on a line of its own."""
        for _, comment in token.above:
            self.newline(indent)
            self.put(comment, "", indent)
            self.newline(indent)

    def behind(self, comment: str) -> None:
        """Write a comment that ends the line."""
        self._line += "  " + comment
        self._ended = True

    def done(self) -> list[str]:
        """All lines."""
        self.newline(0)
        return self.lines

    def _text(self, token: Token, indent: int) -> None:
        if self._ended:
            self.newline(indent)
        first, *rest = indented(token.text, self.indent)
        self.put(first, token.glue, indent)
        for line in rest[:-1]:
            self.lines.append(" " * self.indent + self._line)
            # Whole as it is: the lines of a text hold their own indentation.
            self.indent, self._line = 0, line
        if rest:
            self.lines.append(" " * self.indent + self._line)
            self.indent, self._line = len(rest[-1]) - len(rest[-1].lstrip(" ")), rest[-1].lstrip(" ")
