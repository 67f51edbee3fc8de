"""Statements and blocks in the canonical form: one statement a line, blocks as their authors wrote them."""

from __future__ import annotations

from skillc.syntax.formatting.comments import settle
from skillc.syntax.formatting.fences import STEP
from skillc.syntax.formatting.pieces import LEVELS, Bracket, Chain, Leaf, Piece, Reader
from skillc.syntax.formatting.rows import Row
from skillc.syntax.formatting.rows import lines as aligned
from skillc.syntax.formatting.tokens import Token
from skillc.syntax.formatting.tree import Block, Statement
from skillc.syntax.formatting.width import LIMIT, width
from skillc.syntax.formatting.wrapping import write
from skillc.syntax.formatting.writer import Writer

_SHAPES = frozenset(("=", ":", "{"))
_OPENS = " {"


def lay_out(program: Block) -> str:
    """The text of a program in its canonical form. Comments of the tree may be moved by it."""
    lines = _statements(program, 0)
    return "\n".join(lines) + "\n" if lines else ""


def _statements(block: Block, indent: int) -> list[str]:
    """The lines of what stands in a block, with the comments before its end."""
    made: list[str] = []
    rows: list[Row] = []
    for statement in block.statements:
        first = statement.first
        if first.above or (first.blank and (made or rows)):
            _flush(rows, made, indent)
            _comments(first, made, indent)
            first.above = ()
        laid = _statement(statement, indent)
        if isinstance(laid, Row):
            rows.append(laid)
        else:
            _flush(rows, made, indent)
            made += laid
    _flush(rows, made, indent)
    block.close.blank = False
    _comments(block.close, made, indent)
    block.close.above = ()
    return made


def _flush(rows: list[Row], made: list[str], indent: int) -> None:
    if rows:
        made += aligned(rows, indent)
        rows.clear()


def _comments(token: Token, made: list[str], indent: int) -> None:
    """The comments above a token, and at most one blank line before each and before the token."""
    for blank, comment in token.above:
        if blank and made:
            made.append("")
        made.append(" " * indent + comment)
    if token.blank and made:
        made.append("")


def _statement(statement: Statement, indent: int) -> Row | list[str]:
    comment, statement.last.behind = statement.last.behind, None
    one_line = statement.first.line == statement.last.line and "\n" not in statement.last.text
    if one_line:
        pieces, flat = None, True
    else:
        settle(statement)
        pieces = _pieces(statement.head)
        flat = all(piece.flat is not None for piece in pieces) and (not statement.block or statement.block.on_one_line)
    if flat:
        row = _row(statement)
        if row is not None and indent + width(row.text) <= LIMIT:
            row.comment = comment
            return row
    broken = _Broken(statement, pieces or _pieces(statement.head), indent)
    if comment is None or not one_line or comment.startswith("///"):
        return broken.lines(comment)
    # It spoke of the whole line, and what `skillc: ignore` suppresses must not depend on where that was broken.
    lines = broken.lines(None)
    return [f"{lines[0]}  {comment}"] if len(lines) == 1 else [" " * indent + comment, *lines]


# ---- one line -------------------------------------------------------------------------------------


def _row(statement: Statement) -> Row | None:
    """The statement on one line; None where its block can't stand on one, or it is longer than any line."""
    head, count = statement.head, 0
    if len(head) > LIMIT:
        return None
    while count < len(head) and head[count].kind == "name":
        count += 1
    rest = "".join([token.glue + token.text for token in head[count:]])
    shape = head[count].kind if count < len(head) else "{" if statement.block else ""
    if statement.block:
        inside = _flat_block(statement.block)
        if inside is None:
            return None
        rest += inside
    return Row([token.text for token in head[:count]], shape if shape in _SHAPES else "", rest)


def _flat_block(block: Block) -> str | None:
    """A block on one line with the blank before it; None where it can't stand on one, or is longer than any line."""
    if not block.on_one_line:
        return None
    texts, room = [], LIMIT
    for statement in block.statements:
        row = _row(statement)
        if row is None or (room := room - len(row.text)) < 0:
            return None
        texts.append(row.text)
    return " { " + "; ".join(texts) + " }" if texts else " {}"


# ---- several lines --------------------------------------------------------------------------------


def _pieces(head: list[Token]) -> list[Piece]:
    """A head as pieces: words, parameters, a type behind its `:`, a value behind its `=`."""
    reader, pieces = Reader(head), list[Piece]()
    while kind := reader.kind:
        if kind == "call":
            pieces.append(reader.bracket())
            continue
        pieces.append(Leaf(reader.take()))
        if kind == ":":
            pieces.append(reader.expression(LEVELS["|"]))
        elif kind == "=":
            pieces.append(reader.expression())
    return pieces


class _Broken:
    """The writing of a statement that takes several lines."""

    def __init__(self, statement: Statement, pieces: list[Piece], indent: int) -> None:
        self.block = statement.block
        self.pieces = pieces
        self.indent = indent
        self.writer = Writer(indent)

    def lines(self, comment: str | None) -> list[str]:
        """The lines, with the comment that ends the last."""
        # A block may begin on the last line of the head, which leaves room for its brace.
        more = len(_OPENS) if self.block else 0
        behind = ""
        for i, piece in enumerate(self.pieces):
            last = i == len(self.pieces) - 1
            if behind in (":", "="):
                self._operand(piece, more if last else len(_OPENS))
            else:
                write(self.writer, piece, self.indent + STEP, more if last else 0)
            behind = piece.token.kind if isinstance(piece, Leaf) else ""
        if self.block:
            self._block(self.block)
        if comment is not None:
            self.writer.behind(comment)
        return self.writer.done()

    def _operand(self, piece: Piece, more: int) -> None:
        """A value or a type: behind its sign, or from the next line on."""
        writer, inner = self.writer, self.indent + STEP
        text = piece.glue + piece.flat if piece.flat is not None else None
        if text is not None and writer.fits(text, more):
            write(writer, piece, inner, more)
            return
        alone = text is not None and inner + width(text.lstrip()) + more <= LIMIT
        if isinstance(piece, Chain) or (alone and not _opens(piece)):
            writer.newline(inner)
        write(writer, piece, inner, more)

    def _block(self, block: Block) -> None:
        writer = self.writer
        flat = _flat_block(block) if not block.open.commented else None
        if flat is not None and writer.fits(flat):
            writer.put(flat[1:], " ", self.indent + STEP)
            return
        if writer.indent != self.indent:
            # The head ends on a line of its own indentation, below which a block would not stand out.
            writer.newline(self.indent)
        writer.token(block.open, self.indent)
        inside = _statements(block, self.indent + STEP)
        writer.newline(self.indent)
        writer.lines += inside
        writer.put("}", "", self.indent)


def _opens(piece: Piece) -> bool:
    """Whether a piece ends in a bracket, so that it can be broken where it stands."""
    last = getattr(piece, "parts", [piece])[-1]
    return isinstance(last, Bracket) and bool(last.items)
