"""One attempt to read one text: either its statements, or where and in front of what reading stopped."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from skillc.diagnostics.diagnostic import Diagnostic
from skillc.syntax import grammar, nodes
from skillc.syntax.newlines import Newlines, TooLargeError
from skillc.syntax.scan import TEXT, Scan
from skillc.syntax.source import Source
from skillc.syntax.transform import Builder


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A token: the grammar's name for it, and its place in the text that was read."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A text that was read to its end."""

    statements: tuple[nodes.Statement, ...]
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Where reading stopped.

    Attributes:
        at: what stood there; its kind is `CHARACTER` where nothing begins with that, `DEEP` where the nesting is too
            deep, `LONG` where too many operators follow each other, `$END` at the end.
        accepts: the grammar's names for what could have stood there.
        last: the token before.
        opened: the brackets that were open, outermost first.
    """

    at: Lexeme
    accepts: frozenset[str]
    last: Lexeme | None
    opened: tuple[Lexeme, ...]


@cache
def _engine() -> tuple[Lark, Builder, Newlines]:
    builder, newlines = Builder(), Newlines()
    return grammar.load(builder, newlines), builder, newlines


@cache
def table() -> Any:
    """The parser's own tables: lark's `ParseConf`, with what each state does on each terminal."""
    return _engine()[0].parse_interactive("").parser_state.parse_conf


_WHOLE = re.compile(rf'(?P<text>{TEXT})|(?P<string>"(?!"")(?:[^"\\\n]|\\[^\n])*+")', re.DOTALL)
_LOCK = threading.Lock()


def read(source: Source, text: str, places: Sequence[int], scanned: Scan) -> Reading | Failure:
    """Read a text whose i-th character stands at `places[i]` in the source; `places` has one more for the end."""
    with _LOCK:
        parser, builder, newlines = _engine()
        builder.begin(source, places, scanned)
        try:
            statements: tuple[nodes.Statement, ...] = parser.parse(text)  # type: ignore[assignment]
        except UnexpectedToken as error:
            at = _refused(text, error.token)
            return _failure(at, frozenset(error.accepts or error.expected), newlines)
        except UnexpectedCharacters as error:
            start = error.pos_in_stream or 0
            at = Lexeme("CHARACTER", start, start + 1)
            return _failure(at, frozenset(error.allowed or ()), newlines)
        except TooLargeError as error:
            token = _lexeme(error.token)
            return _failure(Lexeme(error.kind, token.start, token.end), frozenset(), newlines)
        return Reading(statements, tuple(builder.diagnostics))


@dataclass(frozen=True, slots=True)
class Prefix:
    """The tokens of the beginning of a text, and the grammar's names for what may come next."""

    tokens: tuple[Lexeme, ...]
    accepts: frozenset[str]


def read_prefix(text: str) -> Prefix | Failure:
    """Read a text that may break off anywhere between two tokens: for completion."""
    places = range(len(text) + 1)
    with _LOCK:
        parser, builder, newlines = _engine()
        builder.begin(Source("", text), places, Scan((), {}, {}, ()))
        try:
            interactive = parser.parse_interactive(text)
            tokens = tuple(_lexeme(token) for token in interactive.iter_parse())
            return Prefix(tokens, frozenset(interactive.accepts()))  # type: ignore[no-untyped-call]
        except UnexpectedToken as error:
            return _failure(_refused(text, error.token), frozenset(), newlines)
        except UnexpectedCharacters as error:
            start = error.pos_in_stream or 0
            return _failure(Lexeme("CHARACTER", start, start + 1), frozenset(), newlines)
        except TooLargeError as error:
            token = _lexeme(error.token)
            return _failure(Lexeme(error.kind, token.start, token.end), frozenset(), newlines)


def _refused(text: str, token: Token) -> Lexeme:
    if token.type == "$END":
        return Lexeme("$END", len(text), len(text))
    if token.type == "UNCLOSED" and (whole := _WHOLE.match(text, token.start_pos or 0)):
        # A sound string where the parser wants none.
        return Lexeme("STRING" if whole["string"] else "TEXT", whole.start(), whole.end())
    return _lexeme(token)


def _failure(at: Lexeme, accepts: frozenset[str], newlines: Newlines) -> Failure:
    last = _lexeme(newlines.last) if newlines.last else None
    return Failure(at, accepts, last, tuple(_lexeme(token) for token in newlines.opened))


def _lexeme(token: Token) -> Lexeme:
    return Lexeme(token.type, token.start_pos or 0, token.end_pos or 0)
