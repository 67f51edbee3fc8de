"""Where comments inside a statement go that stand at an operator, a comma or a `{`: to the operand before.

The order of the comments stays, and a `///` moves only where it documents the same statement before and after.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillc.syntax.formatting.tokens import Token
from skillc.syntax.formatting.tree import Statement

_BEFORE_OPERANDS = frozenset(("or", "and", "compare", "sum", "scale", "|"))
_BEFORE_A_NEWLINE = frozenset(("=", ","))
# The grammar looks over nine lines for an operator that goes on with a statement.
_LINES_LIMIT = 8


def settle(statement: Statement) -> None:
    """Move the comments of a statement that spans several lines; done twice, nothing moves the second time."""
    head = statement.head
    open_: list[str] = []
    settled: list[Token] = []
    for i, token in enumerate(head):
        following = head[i + 1] if i + 1 < len(head) else None
        if token.kind in ("(", "[", "call", "type"):
            open_.append(token.kind)
        elif token.kind in (")", "]") and open_.pop() in ("call", "[") and settled[-1].behind:
            _comma_for_the_last(settled, token)
        if settled and following:
            if token.kind in _BEFORE_OPERANDS:
                _operator(settled[-1], token, following)
            elif token.kind in _BEFORE_A_NEWLINE:
                _newline(settled[-1], token, following)
        settled.append(token)
    if statement.block:
        inside = statement.block.statements
        _newline(head[-1], statement.block.open, inside[0].first if inside else statement.block.close)
    statement.head = settled


def _comma_for_the_last(settled: list[Token], close: Token) -> None:
    """A trailing comma that takes the comment over; without a comment the layout makes one where it needs it."""
    last = settled[-1]
    if last.kind in ("call", "[", ","):
        return
    comma = Token(",", ",", "", close.start, last.line)
    comma.behind, last.behind = last.behind, None
    settled.append(comma)


def _operator(before: Token, operator: Token, following: Token) -> None:
    lines = [*operator.above, *_own_line(operator.behind), *following.above]
    if not _movable(lines) or len(lines) > _LINES_LIMIT:
        return
    if before.behind is None and not operator.above and operator.behind:
        before.behind, lines = operator.behind, lines[1:]
    operator.above, operator.behind, following.above = lines, None, ()


def _newline(before: Token, token: Token, following: Token) -> None:
    if not token.above and not token.behind:
        token.behind, before.behind = before.behind, None
        return
    lines = [*token.above, *_own_line(token.behind)]
    if (token.above or before.behind) and _movable(lines):
        token.behind, before.behind = before.behind, None
        token.above, following.above = (), [*lines, *following.above]


def _own_line(comment: str | None) -> list[tuple[bool, str]]:
    return [(False, comment)] if comment else []


def _movable(lines: Sequence[tuple[bool, str]]) -> bool:
    return not any(comment.startswith("///") for _, comment in lines)
