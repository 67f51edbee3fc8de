"""The only tokenizer: parser, formatter, recovery, editor and highlighting use it.

The terminals come from the grammar. Any text has tokens: a character that begins no terminal is a token of the kind
`CHARACTER`. A comment is not a token; it belongs to the last token of the line that it ends, or else to the next token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from skillc.dataclass import dataclass
from skillc.syntax.nodes import Comment
from skillc.syntax.source import Span, blank

WORDS = {"and": "AND", "or": "OR", "not": "NOT", "use": "USE", "as": "AS"}
"""The kinds of the keywords. Where the parser accepts no keyword, each is a `NAME`."""

_COLUMN_0 = re.compile(r"^[^\W\d]|^\}", re.MULTILINE)
_OPENS = re.compile(r"[=({\[,][ \t]*\Z")
_FENCE = '"""'


class Token:
    """One token.

    Attributes:
        kind: the name of the terminal, `CHARACTER` if there is none, `$END` at the end of the text. A newline is
            `_END`, or no token if the next line continues its statement.
        line: the line on which it begins, from 0.
        above: comments on lines above it.
        behind: the comment that ends its line.
        blank: whether a blank line precedes it, below the comments above.
    """

    __slots__ = ("above", "behind", "blank", "end", "kind", "line", "start", "text")

    def __init__(self, kind: str, text: str, start: int, line: int) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.end = start + len(text)
        self.line = line
        self.above: Sequence[Comment] = ()
        self.behind: Comment | None = None
        self.blank = False

    def of_kind(self, kind: str) -> Token:
        """Return the token with another kind."""
        found = Token(kind, self.text, self.start, self.line)
        found.above, found.behind, found.blank = self.above, self.behind, self.blank
        return found


@dataclass(frozen=True, slots=True)
class Fault:
    """An error at the end of a text.

    Attributes:
        kind: `unclosed`, or `fence` if the closing fence follows other words on its line.
        span: the assumed extent of the text.
        fence: the fence that looked like its end, None if there is none.
    """

    kind: Literal["unclosed", "fence"]
    span: Span
    fence: Span | None


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text.

    Attributes:
        text: the text; each unclosed text is replaced with an empty string and blanks of the same length.
        found: the tokens; the last is `$END`.
        comments: in the order of the text.
        above: documentation above code, by the offset of the documented code.
        behind: documentation that ends a line, by the offset of the last character of code before it.
        faults: unclosed texts, and texts with a misplaced closing fence.
    """

    text: str
    found: Sequence[Token]
    comments: tuple[Comment, ...]
    above: Mapping[int, str]
    behind: Mapping[int, str]
    faults: tuple[Fault, ...]


@cache
def table() -> Mapping[str, Any]:
    """Load the terminals and the parser's tables, which `grammar/make.py` generates."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("table.json").read_bytes())
    return found


def terminals() -> Mapping[str, str]:
    """Return the grammar's terminals as regular expressions, in the order of precedence; keywords are names."""
    return {name: pattern for name, pattern in table()["terminals"].items() if name not in WORDS.values()}


@cache
def _lexer() -> tuple[re.Pattern[str], list[str]]:
    """Return a pattern that matches one token, and the kind of each of its groups."""
    known = dict(terminals())
    # The most frequent kinds first.
    end, name = known.pop("_END"), known.pop("NAME")
    rest = "|".join(f"({pattern})" for pattern in known.values())
    pattern = re.compile(
        rf"[ \t\f]*+(?:({name})|({end})|((?:\r?\n[ \t\f]*+)++)|{rest}|(\Z)|((?s:.)))",
    )
    return pattern, ["", "NAME", "_END", "NEWLINE", *known, "$END", "CHARACTER"]


_SPECIAL = frozenset(("NEWLINE", "_END", "COMMENT", "TEXT", "UNCLOSED", "$END"))


def tokenize(text: str, *, whole: bool = True) -> Tokens:
    """Tokenize any text; `whole` looks for unclosed texts, and is off for a part of a text that has none."""
    pattern, kinds = _lexer()
    tokens: list[Token] = []
    comments: list[Comment] = []
    faults: list[Fault] = []
    docs_above: dict[int, str] = {}
    docs_behind: dict[int, str] = {}
    above: list[Comment] = []
    docs: list[str] = []
    last: Token | None = None
    line = gap = 0
    last_line = -1
    matches = pattern.finditer(text)
    while True:
        match = next(matches)
        group: int = match.lastindex  # type: ignore[assignment]
        kind, words = kinds[group], match[group]
        start = match.end() - len(words)
        if kind in _SPECIAL:
            if kind == "NEWLINE":
                count = words.count("\n")
                line += count
                gap += count
                continue
            if kind == "COMMENT":
                words = words.rstrip()
                comment = Comment(Span(start, start + len(words)), words, gap > 1)
                comments.append(comment)
                gap = 0
                if last is not None and last_line == line:
                    last.behind = comment
                    if comment.documents:
                        docs_behind[last.end - 1] = words[3:].removeprefix(" ")
                else:
                    above.append(comment)
                    if comment.documents:
                        docs.append(words[3:].removeprefix(" "))
                continue
            if whole and (kind == "TEXT" or text.startswith(_FENCE, start)):
                fault = _fault(text, start, match.end() if kind == "TEXT" else None)
                if fault:
                    faults.append(fault)
                    if fault.kind == "unclosed":
                        text = _closed(text, fault.span)
                        matches = pattern.finditer(text, start)
                        continue
        elif kind == "NAME" and words in WORDS:
            kind = WORDS[words]
        token = Token(kind, words, start, line)
        tokens.append(token)
        if kind == "_END" and words != ";":
            count = words.count("\n")
            line += count
            gap += count
            continue
        if docs:
            docs_above[start] = "\n".join(docs)
            docs = []
        if kind == "_END":
            continue
        if above:
            token.above, above = tuple(above), []
        if gap:
            token.blank = gap > 1
            gap = 0
        if kind == "$END":
            return Tokens(text, tokens, tuple(comments), docs_above, docs_behind, tuple(faults))
        last, last_line = token, line
        if kind == "TEXT":
            line += words.count("\n")
            last_line = line


@cache
def _coarse(more: str = "") -> re.Pattern[str]:
    known = terminals()
    return re.compile(
        rf'(?P<text>{known["TEXT"]}|""")|(?P<string>{known["STRING"]}|{known["UNCLOSED"]})|(?P<comment>{known["COMMENT"]})'
        + more,
        re.MULTILINE,
    )


_OUTLINE = r"|(?P<open>[({\[])|(?P<close>[)}\]])|(?P<newline>\n)|(?P<semicolon>;)|(?P<head>^[^\W\d]\w*)"


def opaque(text: str) -> Iterator[re.Match[str]]:
    """Find only texts, strings and comments, in a tenth of the time of `tokenize`.

    An unclosed text is only its first three quotes.
    """
    return _coarse().finditer(text)


def parts(text: str) -> Iterator[re.Match[str]]:
    """Find the same, brackets, separators and words in the first column, in a fifth of the time of `tokenize`."""
    return _coarse(_OUTLINE).finditer(text)


def _fault(text: str, start: int, end: int | None) -> Fault | None:
    """Return the error of a text that begins at `start`, and whose closing fence, if any, ends at `end`."""
    if end is None:
        stop = _COLUMN_0.search(text, start + 3)
        limit = stop.start() if stop else len(text)
        return Fault("unclosed", Span(start, start + max(3, len(text[start:limit].rstrip()))), None)
    line = text.rfind("\n", start, end - 3) + 1
    if line <= start or not (before := text[line : end - 3]).strip():
        return None
    fence = Span(end - 3, end)
    if _OPENS.search(before):
        return Fault("unclosed", Span(start, start + max(3, len(text[start:line].rstrip()))), fence)
    return Fault("fence", Span(start, end), fence)


def _closed(text: str, span: Span) -> str:
    """Replace a span with an empty string and blanks."""
    return f'{text[: span.start]}""{blank(text[span.start + 2 : span.end])}{text[span.end :]}'
