"""The one reading of a text as tokens: parser, formatter, recovery, editor and colours use it.

The terminals are those of the grammar, so any text has tokens: what begins none is one of the kind `CHARACTER`. A
comment is no token. It belongs to the last token of the line that it ends, else to the next token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from skillc.syntax.nodes import Comment
from skillc.syntax.source import Span

WORDS = {"and": "AND", "or": "OR", "not": "NOT", "use": "USE", "as": "AS"}
"""The kinds of the words of the grammar. Where the parser takes no such word, each is a `NAME`."""

_COLUMN_0 = re.compile(r"^[^\W\d]|^\}", re.MULTILINE)
_OPENS = re.compile(r"[=({\[,][ \t]*\Z")
_FENCE = '"""'


class Token:
    """One word, number, string or mark.

    Attributes:
        kind: the grammar's name of the terminal, `CHARACTER` where there is none, `$END` at the end of the text. A
            newline is `_END` unless the next line continues its statement, when it is no token.
        start: the offset of its first character.
        end: the offset behind its last character.
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
        """The token as one of another kind."""
        found = Token(kind, self.text, self.start, self.line)
        found.above, found.behind, found.blank = self.above, self.behind, self.blank
        return found


@dataclass(frozen=True, slots=True)
class Fault:
    """A text whose end is wrong.

    Attributes:
        kind: `unclosed`, or `fence` when the closing fence shares its line with words.
        span: the part of the source that the text is taken to be.
        fence: the fence that looked like its end, None if there is none.
    """

    kind: Literal["unclosed", "fence"]
    span: Span
    fence: Span | None


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as tokens.

    Attributes:
        text: the text, with an empty string in place of each text that is never closed, as long as before.
        found: the tokens; the last is `$END`.
        comments: in the order of the text.
        above: documentation above code, by the offset at which the documented code begins.
        behind: documentation that ends a line, by the offset of the last character of code before it.
        faults: texts with a wrong end.
    """

    text: str
    found: Sequence[Token]
    comments: tuple[Comment, ...]
    above: Mapping[int, str]
    behind: Mapping[int, str]
    faults: tuple[Fault, ...]


@cache
def table() -> Mapping[str, Any]:
    """The terminals and the parser's tables, as `grammar/make.py` wrote them."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("table.json").read_bytes())
    return found


def terminals() -> Mapping[str, str]:
    """The grammar's terminals as regular expressions, in the order of precedence; words are names."""
    return {name: pattern for name, pattern in table()["terminals"].items() if name not in WORDS.values()}


@cache
def _lexer() -> tuple[re.Pattern[str], list[str]]:
    """A pattern that matches one token, and the kind of each of its groups."""
    known = dict(terminals())
    # The commonest first.
    end, name = known.pop("_END"), known.pop("NAME")
    rest = "|".join(f"({pattern})" for pattern in known.values())
    pattern = re.compile(
        rf"[ \t\f]*+(?:({name})|({end})|((?:\r?\n[ \t\f]*+)++)|{rest}|(\Z)|((?s:.)))",
    )
    return pattern, ["", "NAME", "_END", "NEWLINE", *known, "$END", "CHARACTER"]


_SPECIAL = frozenset(("NEWLINE", "_END", "COMMENT", "TEXT", "UNCLOSED", "$END"))


def tokenize(text: str, *, whole: bool = True) -> Tokens:
    """Read a text.

    Args:
        text: any text.
        whole: look for texts that are never closed. A part of a text whose ends are known to be right has none.
    """
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
    """Find only the texts, strings and comments, which takes a tenth of the time of all tokens.

    A text that is never closed is only its first three quotes.
    """
    return _coarse().finditer(text)


def parts(text: str) -> Iterator[re.Match[str]]:
    """Find the same, brackets, separators and words in the first column: a fifth of the time of all tokens."""
    return _coarse(_OUTLINE).finditer(text)


def _fault(text: str, start: int, end: int | None) -> Fault | None:
    """Judge a text that begins with a fence, and ends before `end` if there is another one."""
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
    """The text with an empty string and blanks in place of a span."""
    blank = "".join(c if c == "\n" else " " for c in text[span.start + 2 : span.end])
    return f'{text[: span.start]}""{blank}{text[span.end :]}'
