"""Lay out statements and blocks: one statement a line, blocks on one or several lines as their authors wrote them.

Adjacent lines of one shape are aligned (`=`, names and `{` in columns) up to a blank line, a separate comment, a
statement of several lines or one of another shape. Comments at line ends are aligned across shapes. Lines that would
become too long are not aligned.
"""

from __future__ import annotations

from itertools import groupby

from skillc.dataclass import dataclass
from skillc.syntax.formatting.lines import LIMIT, STEP, Writer, write
from skillc.syntax.formatting.pieces import Bracket, Chain, Leaf, Piece
from skillc.syntax.formatting.pieces import pieces as pieces_of
from skillc.syntax.formatting.words import FormatBlock, FormatStatement, FormatToken, settle
from skillc.syntax.nodes import Comment
from skillc.text import text_width

_GAP = 2
_SHAPES = frozenset(("=", ":", "{"))
_OPENS = " {"


@dataclass(slots=True)
class FlatStatement:
    """A statement on one line.

    Attributes:
        words: its leading words, each a cell.
        shape: the aligned sign after the words, `=`, `:` or `{`; else empty.
        rest: everything after the words, with the space before it.
        comment: the comment that ends the line.
    """

    words: list[str]
    shape: str
    rest: str
    comment: Comment | None = None

    @property
    def text(self) -> str:
        """The line without alignment and comment."""
        return " ".join(self.words) + self.rest


def lay_out(program: FormatBlock) -> str:
    """Return the formatted text of a program. Comments may be moved to other tokens."""
    lines = _statements(program, 0)
    return "\n".join(lines) + "\n" if lines else ""


def _statements(block: FormatBlock, indent: int) -> list[str]:
    """Return the lines of a block's statements, with the comments before its end."""
    made: list[str] = []
    rows: list[FlatStatement] = []
    for statement in block.statements:
        first = statement.first
        if first.above or (first.blank and (made or rows)):
            _flush(rows, made, indent)
            _comments(first, made, indent)
            first.above = ()
        laid = _statement(statement, indent)
        if isinstance(laid, FlatStatement):
            rows.append(laid)
        else:
            _flush(rows, made, indent)
            made += laid
    _flush(rows, made, indent)
    block.close.blank = False
    _comments(block.close, made, indent)
    block.close.above = ()
    return made


def _flush(rows: list[FlatStatement], made: list[str], indent: int) -> None:
    if rows:
        made += _aligned_lines(rows, indent)
        rows.clear()


def _comments(word: FormatToken, made: list[str], indent: int) -> None:
    """Add the comments above a token, and at most one blank line before each and before the token."""
    for comment in word.above:
        if comment.blank and made:
            made.append("")
        made.append(" " * indent + comment.text)
    if word.blank and made:
        made.append("")


def _statement(statement: FormatStatement, indent: int) -> FlatStatement | list[str]:
    comment, statement.last.behind = statement.last.behind, None
    one_line = statement.first.line == statement.last.line and "\n" not in statement.last.text
    if one_line:
        pieces, flat = None, True
    else:
        settle(statement)
        pieces = pieces_of(statement.head)
        flat = all(piece.flat is not None for piece in pieces) and (not statement.block or statement.block.on_one_line)
    if flat:
        row = _row(statement)
        if row is not None and indent + text_width(row.text) <= LIMIT:
            row.comment = comment
            return row
    broken = _Broken(statement, pieces or pieces_of(statement.head), indent)
    if comment is None or not one_line or comment.documents:
        return broken.lines(comment)
    # The comment concerns the whole line; what `skillc: ignore` suppresses must not depend on where it is broken.
    lines = broken.lines(None)
    return [f"{lines[0]}  {comment.text}"] if len(lines) == 1 else [" " * indent + comment.text, *lines]


# ---- one line -------------------------------------------------------------------------------------


def _row(statement: FormatStatement) -> FlatStatement | None:
    """Return the statement on one line; None if its block needs several, or it exceeds any line."""
    head, count = statement.head, 0
    if len(head) > LIMIT:
        return None
    while count < len(head) and head[count].role == "name":
        count += 1
    rest = "".join([word.glue + word.text for word in head[count:]])
    shape = head[count].role if count < len(head) else "{" if statement.block else ""
    if statement.block:
        inside = _flat_block(statement.block)
        if inside is None:
            return None
        rest += inside
    return FlatStatement([word.text for word in head[:count]], shape if shape in _SHAPES else "", rest)


def _flat_block(block: FormatBlock) -> str | None:
    """Return a block on one line with a space before it; None if it needs several, or exceeds any line."""
    if not block.on_one_line:
        return None
    texts, room = [], LIMIT
    for statement in block.statements:
        row = _row(statement)
        if row is None or (room := room - len(row.text)) < 0:
            return None
        texts.append(row.text)
    return " { " + "; ".join(texts) + " }" if texts else " {}"


# ---- columns --------------------------------------------------------------------------------------


def _aligned_lines(rows: list[FlatStatement], indent: int) -> list[str]:
    texts: list[str] = []
    for (shape, _), group in groupby(rows, lambda row: (row.shape, len(row.words))):
        same = list(group)
        aligned = _aligned(same) if shape and len(same) > 1 else []
        if not aligned or any(indent + text_width(text) > LIMIT for text in aligned):
            aligned = [row.text for row in same]
        texts += aligned
    return _with_comments([" " * indent + text for text in texts], [row.comment for row in rows])


def _aligned(rows: list[FlatStatement]) -> list[str]:
    columns = [max(map(text_width, column)) for column in zip(*(row.words for row in rows), strict=True)]
    if rows[0].shape == ":":
        # A colon follows its name directly, so the last words are not padded.
        columns[-1] = 0
    padded = (" ".join(_padded(word, size) for word, size in zip(row.words, columns, strict=True)) for row in rows)
    return [text + row.rest for text, row in zip(padded, rows, strict=True)]


def _with_comments(texts: list[str], comments: list[Comment | None]) -> list[str]:
    column = max((text_width(text) for text, comment in zip(texts, comments, strict=True) if comment), default=0)
    pairs = list(zip(texts, comments, strict=True))
    aligned = all(
        column + _GAP + text_width(comment.text) <= max(LIMIT, text_width(text) + _GAP + text_width(comment.text))
        for text, comment in pairs
        if comment
    )
    size = column if aligned else 0
    return [_padded(text, size) + " " * _GAP + comment.text if comment else text for text, comment in pairs]


def _padded(text: str, size: int) -> str:
    return text + " " * (size - text_width(text))


# ---- several lines --------------------------------------------------------------------------------


class _Broken:
    """Writes a statement on several lines."""

    def __init__(self, statement: FormatStatement, pieces: list[Piece], indent: int) -> None:
        self.block = statement.block
        self.pieces = pieces
        self.indent = indent
        self.writer = Writer(indent)

    def lines(self, comment: Comment | None) -> list[str]:
        """Return the lines; the comment ends the last one."""
        # A block may begin on the last line of the head, so leave room for its brace.
        more = len(_OPENS) if self.block else 0
        behind = ""
        for i, piece in enumerate(self.pieces):
            last = i == len(self.pieces) - 1
            if behind in (":", "="):
                self._operand(piece, more if last else len(_OPENS))
            else:
                write(self.writer, piece, self.indent + STEP, more if last else 0)
            behind = piece.word.role if isinstance(piece, Leaf) else ""
        if self.block:
            self._block(self.block)
        if comment is not None:
            self.writer.behind(comment)
        return self.writer.done()

    def _operand(self, piece: Piece, more: int) -> None:
        """Write a value or type after its sign, or on the next line."""
        writer, inner = self.writer, self.indent + STEP
        text = piece.glue + piece.flat if piece.flat is not None else None
        if text is not None and writer.fits(text, more):
            write(writer, piece, inner, more)
            return
        alone = text is not None and inner + text_width(text.lstrip()) + more <= LIMIT
        if isinstance(piece, Chain) or (alone and not _opens(piece)):
            writer.newline(inner)
        write(writer, piece, inner, more)

    def _block(self, block: FormatBlock) -> None:
        writer = self.writer
        flat = _flat_block(block) if not block.open.commented else None
        if flat is not None and writer.fits(flat):
            writer.put(flat[1:], " ", self.indent + STEP)
            return
        if writer.indent != self.indent:
            # The head ends on an indented line, below which the block would be hard to see.
            writer.newline(self.indent)
        writer.word(block.open, self.indent)
        inside = _statements(block, self.indent + STEP)
        writer.newline(self.indent)
        writer.lines += inside
        writer.put("}", "", self.indent)


def _opens(piece: Piece) -> bool:
    """Return whether a piece ends in a bracket that can be broken."""
    last = getattr(piece, "parts", [piece])[-1]
    return isinstance(last, Bracket) and bool(last.items)
