"""Pieces onto lines: on one where they fit, else broken at `and` and `or`, in brackets, or at other operators.

Every function takes the indentation of a line that has to begin inside the piece, and the columns that what follows
needs on the piece's last line.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillc.syntax.formatting.fences import STEP
from skillc.syntax.formatting.pieces import LEVELS, Bracket, Chain, Leaf, Piece, Run
from skillc.syntax.formatting.width import LIMIT, width
from skillc.syntax.formatting.writer import Writer


def write(writer: Writer, piece: Piece, indent: int, more: int) -> None:
    """Write a piece at the end of the line, as flat as it goes."""
    if piece.flat is not None and writer.fits(piece.glue + piece.flat, more):
        writer.put(piece.flat, piece.glue, indent)
    elif isinstance(piece, Leaf):
        writer.token(piece.token, indent)
    elif isinstance(piece, Run):
        _run(writer, piece.parts, (indent, indent + STEP), more)
    elif isinstance(piece, Chain):
        _chain(writer, piece, indent, more)
    elif isinstance(piece, Bracket):
        _bracket(writer, piece, indent)


def _run(writer: Writer, parts: Sequence[Piece], indents: tuple[int, int], more: int) -> None:
    """Write pieces one behind the other; the first and the others have an indentation each."""
    follows = [more]
    for part in reversed(parts[1:]):
        columns, breaks = _least(part)
        follows.append(columns if breaks else columns + follows[-1])
    for i, part in enumerate(parts):
        write(writer, part, indents[min(i, 1)], follows[-1 - i])


def _least(piece: Piece) -> tuple[int, bool]:
    """The columns that a piece needs on the line on which it begins, and whether it may break behind them."""
    if isinstance(piece, Bracket) and piece.items:
        return len(piece.glue) + 1, True
    if isinstance(piece, Run):
        columns = 0
        for part in piece.parts:
            least, breaks = _least(part)
            columns += least
            if breaks:
                return columns, True
        return columns, False
    return width(piece.glue + (piece.flat or "")), False


def _chain(writer: Writer, chain: Chain, indent: int, more: int) -> None:
    if not _breaks(chain, indent):
        parts = [chain.operands[0]]
        for operator, operand in zip(chain.operators, chain.operands[1:], strict=True):
            parts += Leaf(operator), operand
        _run(writer, parts, (indent, indent), more)
        return
    write(writer, chain.operands[0], indent + STEP, 0)
    for i, operator in enumerate(chain.operators, 1):
        writer.newline(indent)
        writer.token(operator, indent)
        write(writer, chain.operands[i], indent + STEP, more if i == len(chain.operators) else 0)


def _breaks(chain: Chain, indent: int) -> bool:
    """Whether each operand gets a line: conditions and labels always, sums and comparisons where that is enough."""
    if LEVELS["|"] <= chain.level <= LEVELS["and"]:
        return True
    return all(each.flat is not None and indent + 3 + width(each.flat) <= LIMIT for each in chain.operands)


def _bracket(writer: Writer, bracket: Bracket, indent: int) -> None:
    writer.token(bracket.open, indent)
    base = writer.indent
    inner = base + STEP
    for item, comma in zip(bracket.items, bracket.commas, strict=True):
        writer.newline(inner)
        write(writer, item, inner, 1)
        if comma is not None:
            writer.token(comma, inner)
        elif bracket.listed:
            writer.put(",", "", inner)
    writer.above(bracket.close, inner)
    writer.newline(base)
    writer.put(bracket.close.text, "", base)
    if bracket.close.behind is not None:
        writer.behind(bracket.close.behind)
