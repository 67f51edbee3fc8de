"""Group the tokens of a program into statements and blocks, which the layout traverses and may change.

Comments never change their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from skillc.dataclass import dataclass
from skillc.syntax.nodes import Comment
from skillc.syntax.reader import OPERANDS
from skillc.syntax.tokens import Token

_TIGHT_BEHIND = frozenset(("call", "(", "type", "[", ".", "sign"))
_TIGHT_BEFORE = frozenset((")", "]", ",", ".", "%"))
_ROLES = {
    **{each: each.lower() for each in ("NAME", "NUMBER", "MONEY", "STRING", "TEXT", "COMPARE", "SCALE")},
    **dict.fromkeys(("USE", "AS"), "name"),
}
_BEFORE_OPERANDS = frozenset(("or", "and", "compare", "sum", "scale", "|"))
_BEFORE_A_NEWLINE = frozenset(("=", ","))
# The grammar looks ahead nine lines for an operator that continues a statement.
_LINES_LIMIT = 8


class FormatToken(Token):
    """A token with its role in the layout.

    Attributes:
        role: `name`, `number`, `money`, `string`, `text`, `compare`, `sum`, `sign` (unary), `scale`, `call` and `type`
            for a `(` and a `[` after an operand, else the text of the token.
        glue: the separator before it on a line: a space or nothing.
    """

    __slots__ = ("glue", "role")

    def __init__(self, token: Token, role: str, glue: str) -> None:
        super().__init__(token.kind, token.text, token.start, token.line)
        self.above = token.above
        self.behind = token.behind
        self.blank = token.blank
        self.role = role
        self.glue = glue

    @property
    def commented(self) -> bool:
        """Whether it has a comment."""
        return bool(self.above) or self.behind is not None


@dataclass(slots=True)
class FormatStatement:
    """One statement: its tokens up to the block, and the block."""

    head: list[FormatToken]
    block: FormatBlock | None = None

    @property
    def first(self) -> FormatToken:
        """Its first token."""
        return self.head[0]

    @property
    def last(self) -> FormatToken:
        """Its last token."""
        return self.block.close if self.block else self.head[-1]


@dataclass(slots=True)
class FormatBlock:
    """`{ ... }`; the comments before the `}` are above `close`."""

    open: FormatToken
    statements: list[FormatStatement]
    close: FormatToken

    @property
    def on_one_line(self) -> bool:
        """Whether it may stay on one line: it is empty, or its author wrote it on one."""
        following = self.statements[0].first if self.statements else self.close
        commented = self.open.commented or following.above
        return not commented and (not self.statements or self.open.line == self.close.line)


def group_tokens(tokens: Iterable[Token]) -> FormatBlock:
    """Group the tokens of a valid program in a block; its `close` is the end of the text."""
    words = list(_words(tokens))
    end = words.pop()
    assert end is not None
    whole = FormatBlock(end, [], end)
    open_ = [whole]
    head: list[FormatToken] = []
    for word in words:
        if word is None or word.role == "}":
            if head:
                open_[-1].statements.append(FormatStatement(_plain(head)))
                head = []
            if word:
                open_.pop().close = word
        elif word.role == "{":
            block = FormatBlock(word, [], end)
            open_[-1].statements.append(FormatStatement(_plain(head), block))
            open_.append(block)
            head = []
        else:
            if head and head[-1].role == "," and word.role in (")", "]"):
                _drop_comma(head)
            head.append(word)
    if head:
        whole.statements.append(FormatStatement(_plain(head)))
    return whole


def _words(tokens: Iterable[Token]) -> Iterator[FormatToken | None]:
    """Yield the tokens, and None at the end of each statement."""
    open_: list[str] = []
    valued = False
    before, role = "", ""
    for token in tokens:
        kind = token.kind
        if kind == "_END":
            before, role, valued = "", "", False
            yield None
            continue
        operand, glue = before in OPERANDS, " "
        if not role or role in _TIGHT_BEHIND:
            glue = ""
        role = _ROLES.get(kind) or token.text
        if role in ("(", "["):
            open_.append(role)
            if operand:
                role, glue = ("call" if role == "(" else "type"), ""
        elif role == "{":
            open_.append(role)
            valued = False
        elif role in (")", "]", "}"):
            open_.pop()
        elif kind == "SIGN":
            role = "sum" if operand else "sign"
        elif role == "=":
            valued = valued or not open_ or open_[-1] == "{"
        elif role == ":" and not (valued and (not open_ or open_[-1] == "{")):
            glue = ""
        if role in _TIGHT_BEFORE:
            glue = ""
        yield FormatToken(token, role, glue)
        before = kind
        if role == "{":
            # A statement begins.
            before, role = "", ""


def walk(block: FormatBlock) -> Iterator[FormatStatement | FormatBlock]:
    """Yield every statement in the order of the text, and each block after its statements."""
    waiting: list[FormatStatement | FormatBlock] = list(reversed(block.statements))
    while waiting:
        item = waiting.pop()
        yield item
        if isinstance(item, FormatStatement) and item.block:
            waiting.append(item.block)
            waiting.extend(reversed(item.block.statements))


# ---- superfluous tokens ---------------------------------------------------------------------------


def _drop_comma(head: list[FormatToken]) -> None:
    """Remove a trailing comma; the layout adds one where it is needed."""
    comma, before = head[-1], head[-2]
    if comma.above or (comma.behind and before.behind):
        return
    before.behind = before.behind or comma.behind
    head.pop()


_BEFORE_GROUP = frozenset(("=", ",", "call", "(", "["))
_AFTER_GROUP = frozenset((",", ")", "]"))


def _plain(head: list[FormatToken]) -> list[FormatToken]:
    """Remove parentheses around a whole value, argument, item or other parentheses."""
    if not any(word.role == "(" for word in head):
        return head
    dropped: set[int] = set()
    for start, end in sorted(_groups(head)):
        follows = head[end + 1].role if end + 1 < len(head) else ")"
        if head[start - 1].role in _BEFORE_GROUP and follows in _AFTER_GROUP and _bare(head, start, end):
            dropped |= {start, end}
            head[start + 1].glue, head[start + 1].above = head[start].glue, head[start].above
            head[end - 1].behind = head[end].behind
    return [word for i, word in enumerate(head) if i not in dropped]


def _groups(head: list[FormatToken]) -> Iterator[tuple[int, int]]:
    open_: list[int] = []
    for i, word in enumerate(head):
        if word.role in ("(", "[", "call", "type"):
            open_.append(i)
        elif word.role in (")", "]"):
            start = open_.pop()
            if head[start].role == "(":
                yield start, i


def _bare(head: list[FormatToken], start: int, end: int) -> bool:
    inside = head[start + 1 : end]
    return head[start].behind is None and not head[end].above and not any(word.commented for word in inside)


# ---- comments inside a statement ------------------------------------------------------------------


def settle(statement: FormatStatement) -> None:
    """Move the comments at an operator, a comma or a `{` of a statement of several lines to the operand before it.

    This is idempotent and keeps the order of the comments. A `///` moves only if it still documents the same statement.
    """
    head = statement.head
    open_: list[str] = []
    settled: list[FormatToken] = []
    for i, word in enumerate(head):
        following = head[i + 1] if i + 1 < len(head) else None
        if word.role in ("(", "[", "call", "type"):
            open_.append(word.role)
        elif word.role in (")", "]") and open_.pop() in ("call", "[") and settled[-1].behind:
            _add_comma(settled, word)
        if settled and following:
            if word.role in _BEFORE_OPERANDS:
                _operator(settled[-1], word, following)
            elif word.role in _BEFORE_A_NEWLINE:
                _newline(settled[-1], word, following)
        settled.append(word)
    if statement.block:
        inside = statement.block.statements
        _newline(head[-1], statement.block.open, inside[0].first if inside else statement.block.close)
    statement.head = settled


def _add_comma(settled: list[FormatToken], close: FormatToken) -> None:
    """Add a trailing comma with the comment of the last item; without a comment the layout adds commas itself."""
    last = settled[-1]
    if last.role in ("call", "[", ","):
        return
    comma = FormatToken(Token("COMMA", ",", close.start, last.line), ",", "")
    comma.behind, last.behind = last.behind, None
    settled.append(comma)


def _operator(before: FormatToken, operator: FormatToken, following: FormatToken) -> None:
    lines = [*operator.above, *_own_line(operator.behind), *following.above]
    if not _movable(lines) or len(lines) > _LINES_LIMIT:
        return
    if before.behind is None and not operator.above and operator.behind:
        before.behind, lines = operator.behind, lines[1:]
    operator.above, operator.behind, following.above = lines, None, ()


def _newline(before: FormatToken, word: FormatToken, following: FormatToken) -> None:
    if not word.above and not word.behind:
        word.behind, before.behind = before.behind, None
        return
    lines = [*word.above, *_own_line(word.behind)]
    if (word.above or before.behind) and _movable(lines):
        word.behind, before.behind = before.behind, None
        word.above, following.above = (), [*lines, *following.above]


def _own_line(comment: Comment | None) -> list[Comment]:
    return [replace(comment, blank=False)] if comment else []


def _movable(lines: Sequence[Comment]) -> bool:
    return not any(comment.documents for comment in lines)
