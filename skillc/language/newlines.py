"""Which newlines end a statement: a filter between lark's lexer and its parser.

The other half of the rule, a line that goes on with an operator or a `{`, is the lookahead in the grammar's `_END`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lark import Token

DEPTH_LIMIT = 100
"""How deep brackets and operators may nest; later passes walk the tree by recursion."""

_OPENERS = {"LPAR", "LSQB", "LBRACE"}
_CLOSERS = {"RPAR", "RSQB", "RBRACE"}
GOES_ON = {"EQUAL", "COMMA", "COLON", "VBAR", "COMPARE", "SIGN", "SCALE", "DOT", "AND", "OR", "NOT"}
"""Tokens behind which a newline ends nothing."""

_DEEPER = {"SIGN", "SCALE", "DOT", "NOT"}
_AFRESH = {"COMMA", "COLON", "EQUAL", "AND", "OR", "VBAR", "_END"}


class TooDeepError(Exception):
    """The token at which the nesting passes `DEPTH_LIMIT`."""

    def __init__(self, token: Token) -> None:
        super().__init__(f"nested more than {DEPTH_LIMIT} deep")
        self.token = token


class Newlines:
    """Drops the newlines that end nothing, and bounds the depth of the tree.

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
        # How many operators each open bracket holds since its last comma: `a + b + c` nests as deeply as it is long.
        pending, total = [0], 0
        for token in stream:
            kind = token.type
            if kind == "_END" and token != ";" and self._goes_on():
                continue
            yield token
            # Only now, so that a token that the parser refuses has changed nothing.
            self.last = token
            if kind in _AFRESH:
                total -= pending[-1]
                pending[-1] = 0
            elif kind in _DEEPER:
                pending[-1] += 1
                total += 1
            elif kind in _OPENERS:
                opened.append(token)
                pending.append(0)
                total += 1
            elif kind in _CLOSERS and opened:
                opened.pop()
                # The bracket itself stays on the account: `f()()()`.
                total -= pending.pop()
                pending[-1] += 1
            if total > DEPTH_LIMIT:
                raise TooDeepError(token)

    def _goes_on(self) -> bool:
        if self.opened and self.opened[-1].type != "LBRACE":
            return True
        return self.last is not None and self.last.type in GOES_ON
