"""The syntax tree: one frozen class for each construct of the grammar, with its span.

The tree carries no meaning: every statement is a `Declaration`, a `Header` or a `Use`, whatever its words are.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from skillc.dataclass import dataclass
from skillc.syntax.source import Source, Span


@dataclass(frozen=True, slots=True)
class Node:
    """Base class: anything with a span in a source."""

    span: Span


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A bare word."""

    text: str


# ---- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quantity(Node):
    """A number with an optional unit: `20`, `800 tokens`, `5%`, `2k`. `value` is exact, `k` and `M` applied."""

    value: Fraction
    unit: Name | None


@dataclass(frozen=True, slots=True)
class Money(Node):
    """Dollars: `$3`, `$0.50`."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class String(Node):
    """`"..."` on one line, escapes applied."""

    value: str


@dataclass(frozen=True, slots=True)
class Text(Node):
    r'''`"""..."""`, common indentation removed, `\"""` unescaped.'''

    value: str


@dataclass(frozen=True, slots=True)
class Reference(Node):
    """A bare name used as a value."""

    name: str


@dataclass(frozen=True, slots=True)
class List(Node):
    """`[a, b]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`state.metric`, `module.name`."""

    of: Expression
    name: Name


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """One argument of a call, positional when `name` is None."""

    name: Name | None
    value: Expression


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`function(argument, name = argument)`."""

    function: Expression
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`-x`, `+x`, `not x`."""

    operator: Literal["-", "+", "not"]
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Arithmetic: `a + b`, `a * b`."""

    operator: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression


def chain(node: Binary) -> list[Binary]:
    """Return the operators of `a + b - c` from left to right. Such a tree is deep, so do not recurse on it."""
    found = [node]
    while isinstance(found[-1].left, Binary):
        found.append(found[-1].left)
    return found[::-1]


def operands(node: Binary) -> list[Expression]:
    """Return `a`, `b` and `c` of `a + b - c`."""
    joined = chain(node)
    return [joined[0].left, *(each.right for each in joined)]


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """`a < b`; more than one operator (`a < x < b`) parses, and the checker reports it."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """`a and b`, `a or b or c`."""

    operator: Literal["and", "or"]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Ratio(Node):
    """`2 : 1 : 2`; only as a whole value."""

    parts: tuple[Expression, ...]


Expression = (
    Quantity | Money | String | Text | Reference | List | Member | Call | Unary | Binary | Compare | Logic | Ratio
)


# ---- types ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelType(Node):
    """A quoted label in a type."""

    value: str


@dataclass(frozen=True, slots=True)
class NamedType(Node):
    """`text`, `list[text]`."""

    name: str
    item: TypeExpression | None


@dataclass(frozen=True, slots=True)
class UnionType(Node):
    """`"a" | "b"`, `text | none`."""

    options: tuple[LabelType | NamedType, ...]


TypeExpression = LabelType | NamedType | UnionType


# ---- statements -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """`m: metric`, `most: share = 5%`."""

    name: Name
    type: TypeExpression | None
    default: Expression | None


@dataclass(frozen=True, slots=True)
class Block(Node):
    """`{ ... }`, braces included in the span."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Declaration(Node):
    """`words (params) : type = value { block }`. `doc` is the text of the `///` lines that document it."""

    words: tuple[Name, ...]
    parameters: tuple[Parameter, ...] | None
    type: TypeExpression | None
    value: Expression | None
    block: Block | None
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Header(Node):
    """`words value {block}` without `=`: `language 1`; with anything else the checker reports that `=` is missing."""

    words: tuple[Name, ...]
    value: Quantity | Money | String | Text
    block: Block | None
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Use(Node):
    """`use std.gates`, `use "./lab.skill" as lab`."""

    path: tuple[Name, ...] | None
    file: String | None
    alias: Name | None


Statement = Declaration | Header | Use


# ---- the whole ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comment(Node):
    """A comment with its `#` or `///`; `blank` if a blank line precedes it."""

    text: str
    blank: bool

    @property
    def documents(self) -> bool:
        """Whether it is documentation."""
        return self.text.startswith("///")


@dataclass(frozen=True, slots=True)
class Program(Node):
    """A whole file, with every statement that could be parsed."""

    source: Source
    statements: tuple[Statement, ...]
    comments: tuple[Comment, ...]
