"""The words of a text, with the comments that stand at them and the blank that the canonical form puts before each.

Comments are no tokens: one that ends a line is kept `behind` the last token of that line, all others `above` the next
token. Nothing that the formatter does moves a comment over another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from skillc import resources
from skillc.syntax.scan import TEXT

_WORDS_OF_THE_GRAMMAR = ("_END", "NAME", "NUMBER", "MONEY", "STRING", "COMMENT")


@cache
def _pattern() -> re.Pattern[str]:
    """One match a token, from the terminals of the grammar, so that the two can't disagree."""
    grammar = (resources.folder("grammar") / "skill.lark").read_text("utf-8")
    found = dict(re.findall(r"^(\w+)(?:\.-?\d+)?: /(.*)/$", grammar, re.MULTILINE))
    end, name, number, money, string, comment = (found[word] for word in _WORDS_OF_THE_GRAMMAR)
    return re.compile(
        r"[ \t\f\r]*+(?:"
        rf"(?P<end>{end})|(?P<newline>(?:\r?\n[ \t\f\r]*+)++)"
        rf"|(?P<name>{name})|(?P<text>(?s:{TEXT}))|(?P<string>{string})|(?P<comment>{comment})"
        rf"|(?P<number>{number})|(?P<money>{money})|(?P<compare><=|>=|==|!=|<|>)"
        r"|(?P<mark>[-+*/=(){}\[\],.:|%])|(?P<eof>\Z))"
    )


_GOES_ON = frozenset(("=", ",", ":", "|", "compare", "sum", "sign", "scale", ".", "and", "or", "not"))
_OPERANDS = frozenset(("name", "number", "money", "string", "text", ")", "]", "%"))
_TIGHT_BEHIND = frozenset(("call", "(", "type", "[", ".", "sign"))
_TIGHT_BEFORE = frozenset((")", "]", ",", ".", "%"))
_WORDS = frozenset(("and", "or", "not"))


class UnknownTokenError(Exception):
    """A place at which nothing begins that the grammar knows."""

    def __init__(self, place: int) -> None:
        super().__init__(f"no token at {place}")
        self.place = place


class Token:
    """One word, number, string or mark.

    Attributes:
        kind: `name`, `number`, `money`, `string`, `text`, `compare`, `sum`, `sign` (of one operand), `scale`, `and`,
            `or`, `not`, `call` and `type` for a `(` and a `[` behind an operand, else the mark itself.
        glue: what stands before it on a line: a blank or nothing.
        start: its offset in the text.
        line: the line on which it begins, from 0.
        above: comments on lines of their own before it, each with whether a blank line stands before it.
        behind: the comment that ends its line.
        blank: whether a blank line stands before it, below the comments above.
    """

    __slots__ = ("above", "behind", "blank", "glue", "kind", "line", "start", "text")

    def __init__(self, kind: str, text: str, glue: str, start: int, line: int) -> None:
        self.kind = kind
        self.text = text
        self.glue = glue
        self.start = start
        self.line = line
        self.above: Sequence[tuple[bool, str]] = ()
        self.behind: str | None = None
        self.blank = False

    @property
    def commented(self) -> bool:
        """Whether a comment stands at it."""
        return bool(self.above) or self.behind is not None


def tokenize(text: str) -> tuple[list[Token | None], Token]:
    """The tokens of a sound text, None where a statement ends; and the end of the file, for the comments above it.

    Raises:
        UnknownTokenError: the text is not sound.
    """
    found: list[Token | None] = []
    above: list[tuple[bool, str]] = []
    open_: list[str] = []
    last: Token | None = None
    last_line, line, gap, place = -1, 0, 0, 0
    valued = False
    kind = ""
    match_at = _pattern().match
    while True:
        match = match_at(text, place)
        if match is None:
            raise UnknownTokenError(place)
        group = match.lastgroup
        place = match.end()
        words: str = match[group]  # type: ignore[index]
        if group == "end" or group == "newline":
            count = words.count("\n")
            line += count
            gap += count
            if group == "end" and not (count and (kind in _GOES_ON or (open_ and open_[-1] != "{"))):
                if found and found[-1] is not None:
                    found.append(None)
                kind, valued = "", False
            continue
        if group == "comment":
            if last is not None and last_line == line:
                last.behind = words.rstrip()
            else:
                above.append((gap > 1, words.rstrip()))
            gap = 0
            continue
        before, glue = kind, " "
        operand = before in _OPERANDS
        if group == "mark":
            kind = words
            if words in "([":
                open_.append(words)
                if operand:
                    kind, glue = ("call" if words == "(" else "type"), ""
            elif words == "{":
                open_.append(words)
                valued = False
            elif words in ")]}":
                if open_:
                    open_.pop()
            elif words in "+-":
                kind = "sum" if operand else "sign"
            elif words in "*/":
                kind = "scale"
            elif words == "=":
                valued = valued or not open_ or open_[-1] == "{"
            elif words == ":" and not (valued and (not open_ or open_[-1] == "{")):
                glue = ""
            if kind in _TIGHT_BEFORE:
                glue = ""
        elif group == "name" and words in _WORDS:
            kind = words
        else:
            kind = group  # type: ignore[assignment]
        if not before or before in _TIGHT_BEHIND:
            glue = ""
        token = Token(kind, words, glue, place - len(words), line)
        if above:
            token.above, above = tuple(above), []
        token.blank = gap > 1
        gap = 0
        if kind == "eof":
            return found, token
        if kind == "text":
            line += words.count("\n")
        elif kind == "{" or kind == "}":
            # What follows begins a statement, or ends one.
            kind = "" if kind == "{" else "}"
        found.append(token)
        last, last_line = token, line
