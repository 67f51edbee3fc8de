"""Which newlines end a statement: a filter between lark's lexer and its parser.

The other half of the rule, a line that goes on with an operator or a `{`, is the lookahead in the grammar's `_END`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from lark import Token

DEPTH_LIMIT = 100
"""How deep brackets and operators may nest; later passes walk the tree by recursion."""

LENGTH_LIMIT = 10_000
"""How many operators of arithmetic may follow each other, as in `a + b * c - d`, which has three."""

_OPENERS = {"LPAR", "LSQB", "LBRACE"}
_CLOSERS = {"RPAR", "RSQB", "RBRACE"}
GOES_ON = {"EQUAL", "COMMA", "COLON", "VBAR", "COMPARE", "SIGN", "SCALE", "DOT", "AND", "OR", "NOT"}
"""Tokens behind which a newline ends nothing."""

_OPERANDS = {"NAME", "NUMBER", "MONEY", "STRING", "TEXT", "PERCENT", "RPAR", "RSQB"}
"""Tokens that end an operand: a sign behind one joins two operands, any other belongs to the next operand."""

_AFRESH = {"COMMA", "COLON", "EQUAL", "AND", "OR", "VBAR", "_END"}


class TooLargeError(Exception):
    """The token at which an expression passes `DEPTH_LIMIT`, or `LENGTH_LIMIT`.

    Attributes:
        token: where it does.
        kind: `DEEP` or `LONG`.
    """

    def __init__(self, token: Token, kind: Literal["DEEP", "LONG"]) -> None:
        super().__init__(kind)
        self.token = token
        self.kind = kind


class _Level:
    """What is open between two brackets.

    Attributes:
        deep: how many signs, dots and calls the current operand has: each nests the operand once more.
        nots: how many `not` the current condition has.
        long: how many operators of arithmetic are behind each other.
    """

    __slots__ = ("deep", "long", "nots")

    def __init__(self) -> None:
        self.deep = self.nots = self.long = 0


class Newlines:
    """Drops the newlines that end nothing, and bounds the depth and the length of expressions.

    Attributes:
        opened: the brackets that are open where reading stopped, outermost first.
        last: the last token that the parser was given.
    """

    always_accept = ("_END", "UNCLOSED")

    def __init__(self) -> None:
        self.opened: list[Token] = []
        self.last: Token | None = None

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Pass on what the parser is to see."""
        opened: list[Token] = []
        self.opened, self.last = opened, None
        # An operator ends the operand before it, so that `-a + -b + -c` is long and not deep.
        levels = [_Level()]
        total = 0
        for token in stream:
            kind = token.type
            if kind == "_END" and token != ";" and self._goes_on():
                continue
            yield token
            # Only now, so that a token that the parser refuses has changed nothing.
            before: Token | None = self.last
            self.last = token
            level = levels[-1]
            joins = kind == "SCALE" or (kind == "SIGN" and before is not None and before.type in _OPERANDS)
            if joins or kind == "COMPARE":
                total -= level.deep
                level.deep = 0
                level.long = level.long + 1 if joins else 0
            elif kind in _AFRESH:
                total -= level.deep + level.nots
                level.deep = level.nots = level.long = 0
            elif kind in ("SIGN", "DOT"):
                level.deep += 1
                total += 1
            elif kind == "NOT":
                level.nots += 1
                total += 1
            elif kind in _OPENERS:
                opened.append(token)
                levels.append(_Level())
                total += 1
            elif kind in _CLOSERS and opened:
                opened.pop()
                closed = levels.pop()
                # The bracket itself stays on the account: `f()()()`.
                total -= closed.deep + closed.nots
                levels[-1].deep += 1
            if total > DEPTH_LIMIT:
                raise TooLargeError(token, "DEEP")
            if level.long > LENGTH_LIMIT:
                raise TooLargeError(token, "LONG")

    def _goes_on(self) -> bool:
        if self.opened and self.opened[-1].type != "LBRACE":
            return True
        return self.last is not None and self.last.type in GOES_ON
