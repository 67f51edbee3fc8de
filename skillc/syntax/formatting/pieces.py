"""Split a statement into pieces between which a line may be broken, with the parser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from skillc.syntax.formatting.words import FormatToken
from skillc.syntax.reader import Derivation, derive
from skillc.syntax.tokens import Token


class Piece:
    """A part of a line.

    Attributes:
        glue: the separator before it on a line: a space or nothing.
        flat: the piece on one line; None if a comment, a text of several lines or its author broke it.
    """

    __slots__ = ()

    glue: str
    flat: str | None
    first: FormatToken
    last: FormatToken


class Leaf(Piece):
    """One token."""

    __slots__ = ("first", "flat", "glue", "last", "word")

    def __init__(self, word: FormatToken) -> None:
        self.word = self.first = self.last = word
        self.glue = word.glue
        self.flat = None if word.commented or "\n" in word.text else word.text


class Run(Piece):
    """Consecutive pieces without line breaks between them: `f(x)`, `800 tokens`, `by = team`, `-x`."""

    __slots__ = ("first", "flat", "glue", "last", "parts")

    def __init__(self, parts: list[Piece]) -> None:
        self.parts = parts
        self.first, self.last = parts[0].first, parts[-1].last
        self.glue = parts[0].glue
        self.flat = _joined(parts)


class Chain(Piece):
    """Operands with operators of one kind between them.

    Attributes:
        operators: the operators.
        alternatives: whether each operand gets a line if the chain is broken, as in conditions and labels.
    """

    __slots__ = ("_flat", "alternatives", "broken", "first", "glue", "operands", "operators")

    def __init__(self, operands: list[Piece], operators: list[FormatToken], *, broken: bool = False) -> None:
        self.operands = operands
        self.operators = operators
        self.broken = broken
        self.alternatives = operators[0].kind in ("AND", "OR", "VBAR")
        self.glue = operands[0].glue
        self.first = operands[0].first
        self._flat: str | Literal[False] | None = None if broken else False

    def grow(self, operator: FormatToken, operand: Piece) -> None:
        """Add an operand."""
        self.operators.append(operator)
        self.operands.append(operand)

    @property
    def last(self) -> FormatToken:  # type: ignore[override]
        """Its last word."""
        return self.operands[-1].last

    @property
    def flat(self) -> str | None:  # type: ignore[override]
        """The chain on one line."""
        if self._flat is False:
            self._flat = _joined(self.parts())
        return self._flat

    def parts(self) -> list[Piece]:
        """Return operands and operators in order."""
        pairs = zip(self.operators, self.operands[1:], strict=True)
        return [self.operands[0], *(part for operator, operand in pairs for part in (Leaf(operator), operand))]


class Bracket(Piece):
    """`( ... )` or `[ ... ]`.

    Attributes:
        items: its pieces; a group, and the item of a type, are one piece.
        commas: the comma after each item; the last is None without a trailing comma.
        listed: whether each item gets a line and a comma if the bracket is broken.
    """

    __slots__ = ("close", "commas", "first", "flat", "glue", "items", "last", "listed", "open")

    def __init__(
        self, open_: FormatToken, items: list[Piece], commas: list[FormatToken | None], close: FormatToken
    ) -> None:
        self.open = self.first = open_
        self.items = items
        self.commas = commas
        self.close = self.last = close
        self.listed = open_.role in ("call", "[")
        self.glue = open_.glue
        broken = bool(items) and self.listed and items[0].first.line > open_.line
        commented = any(comma and comma.commented for comma in commas)
        self.flat = None if broken or commented else self._flat()

    def _flat(self) -> str | None:
        if self.open.commented or self.close.commented:
            return None
        flats = [item.flat for item in self.items if item.flat is not None]
        return self.open.text + ", ".join(flats) + self.close.text if len(flats) == len(self.items) else None


def pieces(head: Sequence[FormatToken]) -> list[Piece]:
    """Return the pieces of a statement without its block: words, parameters, `:` and type, `=` and value."""
    last = head[-1]
    found = derive([*head, Token("$END", "", last.end, last.line)], _MAKERS)
    assert isinstance(found, Derivation)
    made: list[Piece] = found.value
    return made


def _joined(parts: list[Piece]) -> str | None:
    flats = [part.glue + part.flat for part in parts if part.flat is not None]
    return "".join(flats).removeprefix(parts[0].glue) if len(flats) == len(parts) else None


# ---- one maker a rule -----------------------------------------------------------------------------


def _piece(child: Any) -> Piece:
    return Leaf(child) if isinstance(child, FormatToken) else child


def _row(children: list[Any]) -> list[Piece]:
    found: list[Piece] = []
    for child in children:
        if isinstance(child, list):
            found += child
        elif child is not None:
            found.append(_piece(child))
    return found


def _header(children: list[Any]) -> list[Piece]:
    words, literal, _ = children
    return [*words, *(literal.parts if isinstance(literal, Run) else [literal])]


def _run(children: list[Any]) -> Piece:
    """Join pieces; a call or a member extends the run before it."""
    parts: list[Piece] = []
    for i, child in enumerate(children):
        if i == 0 and isinstance(child, Run):
            parts += child.parts
        elif child is not None:
            parts.append(_piece(child))
    return parts[0] if len(parts) == 1 else Run(parts)


def _chain(children: list[Any]) -> Piece:
    operands, operators = [_piece(each) for each in children[::2]], children[1::2]
    # Line breaks that an author put into a condition are kept.
    broken = operators[0].kind in ("AND", "OR") and any(
        before.last.line < operator.line or operator.line < after.first.line
        for before, operator, after in zip(operands, operators, operands[1:], strict=False)
    )
    return Chain(operands, operators, broken=broken)


def _binary(children: list[Any]) -> Piece:
    left, operator, right = children
    if isinstance(left, Chain) and left.operators[0].kind == operator.kind:
        left.grow(operator, _piece(right))
        return left
    return Chain([_piece(left), _piece(right)], [operator])


def _bracket(children: list[Any]) -> Bracket:
    open_, *inside, close = children
    inside = [each for each in inside if each is not None]
    commas = inside[1::2]
    items = [_piece(each) for each in inside[::2]]
    return Bracket(open_, items, [*commas, *[None] * (len(items) - len(commas))], close)


_MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    # A program of one statement.
    "start": lambda children: next(each for each in children if isinstance(each, list)),
    "header": _header,
    **dict.fromkeys(("declaration", "use", "words", "path"), _row),
    **dict.fromkeys(("params", "items", "group"), _bracket),
    **dict.fromkeys(("param", "argument", "member", "quantity"), _run),
    "binary": _binary,
    **dict.fromkeys(("union", "ratio", "logic", "comparison"), _chain),
    **dict.fromkeys(("label", "unit", "reference", "money", "string", "text"), lambda children: _piece(children[0])),
    # `text`, `list[text]`.
    "named": lambda children: _run([children[0], *([_bracket(children[1:])] if children[1] is not None else [])]),
    "call": lambda children: _run([children[0], _bracket(children[1:])]),
    "unary": lambda children: Run([_piece(each) for each in children]),
}
