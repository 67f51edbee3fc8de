"""Pieces onto lines: on one where they fit, else broken at `and` and `or`, in brackets, or at other operators.

Every function takes the indentation of a line that has to begin inside the piece, and the columns that what follows
needs on the piece's last line.
"""

from __future__ import annotations

from skillc.language.formatting.fences import STEP
from skillc.language.formatting.pieces import LEVELS, Bracket, Chain, Leaf, Piece, Run
from skillc.language.formatting.width import LIMIT, width
from skillc.language.formatting.writer import Writer


def write(writer: Writer, piece: Piece, indent: int, more: int) -> None:
    """Write a piece at the end of the line, as flat as it goes."""
    if piece.flat is not None and writer.fits(piece.glue + piece.flat, more):
        writer.put(piece.flat, piece.glue, indent)
    elif isinstance(piece, Leaf):
        writer.token(piece.token, indent)
    elif isinstance(piece, Run):
        _run(writer, piece, indent, more)
    elif isinstance(piece, Chain):
        _chain(writer, piece, indent, more)
    elif isinstance(piece, Bracket):
        _bracket(writer, piece, indent)


def _run(writer: Writer, run: Run, indent: int, more: int) -> None:
    # What has to stand behind each part: all up to the next bracket, which may be broken.
    follows = [more]
    for part in reversed(run.parts[1:]):
        follows.append(1 if isinstance(part, Bracket) else width(part.glue + (part.flat or "")) + follows[-1])
    for i, part in enumerate(run.parts):
        write(writer, part, indent + STEP if i else indent, follows[-1 - i])


def _chain(writer: Writer, chain: Chain, indent: int, more: int) -> None:
    if not _breaks(chain, indent):
        write(writer, chain.operands[0], indent, width(chain.operators[0].text) + 1)
        for i, operator in enumerate(chain.operators, 1):
            writer.token(operator, indent)
            last = i == len(chain.operators)
            write(writer, chain.operands[i], indent, more if last else width(chain.operators[i].text) + 1)
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
