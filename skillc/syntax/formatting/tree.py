"""Statements and blocks of a text, made of its tokens: what the layout walks over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skillc.syntax.formatting.tokens import Token


@dataclass(slots=True)
class Statement:
    """One statement: its tokens up to the block, and the block."""

    head: list[Token]
    block: Block | None = None

    @property
    def first(self) -> Token:
        """Its first token."""
        return self.head[0]

    @property
    def last(self) -> Token:
        """Its last token."""
        return self.block.close if self.block else self.head[-1]


@dataclass(slots=True)
class Block:
    """`{ ... }`; the comments before the `}` stand above `close`."""

    open: Token
    statements: list[Statement]
    close: Token

    @property
    def on_one_line(self) -> bool:
        """Whether it may stay on one line: it holds nothing, or its author wrote it on one."""
        following = self.statements[0].first if self.statements else self.close
        commented = self.open.commented or following.above
        return not commented and (not self.statements or self.open.line == self.close.line)


def read(tokens: Iterable[Token | None], end: Token) -> Block:
    """Group the tokens of a sound text into statements, in a block around them; its `close` is the end of the file."""
    whole = Block(end, [], end)
    open_ = [whole]
    head: list[Token] = []
    for token in tokens:
        if token is None or token.kind == "}":
            if head:
                open_[-1].statements.append(Statement(_plain(head)))
                head = []
            if token:
                open_.pop().close = token
        elif token.kind == "{":
            block = Block(token, [], end)
            open_[-1].statements.append(Statement(_plain(head), block))
            open_.append(block)
            head = []
        else:
            if head and head[-1].kind == "," and token.kind in (")", "]"):
                _drop_comma(head)
            head.append(token)
    if head:
        whole.statements.append(Statement(_plain(head)))
    return whole


def walk(block: Block) -> Iterator[Statement | Block]:
    """Every statement in the order of the text; a block stands behind what is in it, as its `}` does."""
    waiting: list[Statement | Block] = list(reversed(block.statements))
    while waiting:
        item = waiting.pop()
        yield item
        if isinstance(item, Statement) and item.block:
            waiting.append(item.block)
            waiting.extend(reversed(item.block.statements))


# ---- what the canonical form leaves out -----------------------------------------------------------


def _drop_comma(head: list[Token]) -> None:
    """Takes a trailing comma away; where one belongs is up to the layout."""
    comma, before = head[-1], head[-2]
    if comma.above or (comma.behind and before.behind):
        return
    before.behind = before.behind or comma.behind
    head.pop()


_OPENS_WHOLE = frozenset(("=", ",", "call", "(", "["))
_ENDS_WHOLE = frozenset((",", ")", "]"))


def _plain(head: list[Token]) -> list[Token]:
    """The tokens without parentheses around the whole of a value, an argument, an item or other parentheses."""
    if not any(token.kind == "(" for token in head):
        return head
    dropped: set[int] = set()
    for start, end in sorted(_groups(head)):
        follows = head[end + 1].kind if end + 1 < len(head) else ")"
        if head[start - 1].kind in _OPENS_WHOLE and follows in _ENDS_WHOLE and _bare(head, start, end):
            dropped |= {start, end}
            head[start + 1].glue, head[start + 1].above = head[start].glue, head[start].above
            head[end - 1].behind = head[end].behind
    return [token for i, token in enumerate(head) if i not in dropped]


def _groups(head: list[Token]) -> Iterator[tuple[int, int]]:
    open_: list[int] = []
    for i, token in enumerate(head):
        if token.kind in ("(", "[", "call", "type"):
            open_.append(i)
        elif token.kind in (")", "]"):
            start = open_.pop()
            if head[start].kind == "(":
                yield start, i


def _bare(head: list[Token], start: int, end: int) -> bool:
    """Whether no comment stands inside of parentheses."""
    inside = head[start + 1 : end]
    return head[start].behind is None and not head[end].above and not any(token.commented for token in inside)
