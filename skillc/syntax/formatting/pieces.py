"""An expression, a type or a list of parameters as pieces that a line may be broken between."""

from __future__ import annotations

from skillc.syntax.formatting.tokens import Token

LEVELS = {":": 1, "|": 2, "or": 3, "and": 4, "compare": 5, "sum": 6, "scale": 7}
"""How tightly an operator binds. `|` and a ratio's `:` stand in no other operator."""

_CONDITIONS = ("or", "and")


class Piece:
    """A part of a line.

    Attributes:
        glue: what stands before it on a line: a blank or nothing.
        flat: the piece on one line; None where a comment, a text of several lines or the author broke it.
    """

    __slots__ = ("flat", "glue")

    glue: str
    flat: str | None


class Leaf(Piece):
    """One token."""

    __slots__ = ("token",)

    def __init__(self, token: Token) -> None:
        self.token = token
        self.glue = token.glue
        self.flat = None if token.commented or "\n" in token.text else token.text


class Run(Piece):
    """Pieces in a row, between which no line breaks: `f(x)`, `800 tokens`, `by = team`, `-x`."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Piece]) -> None:
        self.parts = parts
        self.glue = parts[0].glue
        self.flat = _joined(parts)


class Chain(Piece):
    """Operands of one level with the operators between them."""

    __slots__ = ("level", "operands", "operators")

    def __init__(self, level: int, operands: list[Piece], operators: list[Token], *, broken: bool) -> None:
        self.level = level
        self.operands = operands
        self.operators = operators
        self.glue = operands[0].glue
        pieces = [operands[0]]
        for operator, operand in zip(operators, operands[1:], strict=True):
            pieces += Leaf(operator), operand
        self.flat = None if broken else _joined(pieces)


class Bracket(Piece):
    """`( ... )` or `[ ... ]`.

    Attributes:
        items: what stands in it. A group and the item of a type are one piece.
        commas: those behind the items; the last one is None where the text has no trailing comma.
        listed: whether each item has a line of its own and a comma, once the bracket is broken.
    """

    __slots__ = ("close", "commas", "items", "listed", "open")

    def __init__(self, open_: Token, items: list[Piece], commas: list[Token | None], close: Token, first: int) -> None:
        self.open = open_
        self.items = items
        self.commas = commas
        self.close = close
        self.listed = open_.kind in ("call", "[")
        self.glue = open_.glue
        broken = bool(items) and self.listed and first > open_.line
        commented = any(comma and comma.commented for comma in commas)
        self.flat = None if broken or commented else self._flat()

    def _flat(self) -> str | None:
        if self.open.commented or self.close.commented:
            return None
        flats = [item.flat for item in self.items]
        if None in flats:
            return None
        return self.open.text + ", ".join(flat for flat in flats if flat is not None) + self.close.text


def _joined(parts: list[Piece]) -> str | None:
    found = []
    for part in parts:
        if part.flat is None:
            return None
        found.append(part.glue + part.flat)
    found[0] = parts[0].flat or ""
    return "".join(found)


class Reader:
    """Reads pieces from the tokens of one statement, which is sound."""

    def __init__(self, tokens: list[Token], place: int = 0) -> None:
        self.tokens = tokens
        self.place = place

    @property
    def kind(self) -> str:
        """Of the next token; empty at the end."""
        return self.tokens[self.place].kind if self.place < len(self.tokens) else ""

    def take(self) -> Token:
        """The next token."""
        self.place += 1
        return self.tokens[self.place - 1]

    def expression(self, least: int = 1) -> Piece:
        """An expression or a type, of operators that bind at least so tightly."""
        left = self._operand()
        while (level := LEVELS.get(self.kind, 0)) >= least:
            operands, operators, broken = [left], [], False
            while LEVELS.get(self.kind) == level:
                before = self.tokens[self.place - 1]
                operator = self.take()
                if operator.kind in _CONDITIONS:
                    broken = broken or before.line < operator.line or operator.line < self.tokens[self.place].line
                operators.append(operator)
                operands.append(self.expression(level + 1))
            left = Chain(level, operands, operators, broken=broken)
        return left

    def bracket(self) -> Bracket:
        """A bracket with all that stands in it, parameters included."""
        open_ = self.take()
        first = self.tokens[self.place].line
        items: list[Piece] = []
        commas: list[Token | None] = []
        while self.kind not in (")", "]"):
            parts: list[Piece] = [self.expression(LEVELS["|"])]
            while self.kind in (":", "="):
                parts.append(Leaf(self.take()))
                parts.append(self.expression())
            items.append(parts[0] if len(parts) == 1 else Run(parts))
            commas.append(self.take() if self.kind == "," else None)
        return Bracket(open_, items, commas, self.take(), first)

    def _operand(self) -> Piece:
        token = self.take()
        if token.kind == "not":
            return Run([Leaf(token), self.expression(LEVELS["compare"])])
        if token.kind == "sign":
            return Run([Leaf(token), self._operand()])
        if token.kind in ("(", "["):
            self.place -= 1
            parts: list[Piece] = [self.bracket()]
        else:
            parts = [Leaf(token)]
            if token.kind == "number" and self.kind in ("name", "%"):
                parts.append(Leaf(self.take()))
        while self.kind in ("call", "type", "."):
            parts.append(Leaf(self.take()) if self.kind == "." else self.bracket())
            if self.tokens[self.place - 1].kind == ".":
                parts.append(Leaf(self.take()))
        return parts[0] if len(parts) == 1 else Run(parts)
