"""What the checker knows about an expression: a quantity (unit, range, level), a condition, a text, or a thing."""

from __future__ import annotations

from dataclasses import dataclass

from skillc.gates.functions import Level
from skillc.gates.intervals import EVERYTHING, UNIT, Interval
from skillc.gates.terms import Constant, Term
from skillc.language.checked import FieldType


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number. `unit` is None inside a parametric body, where it depends on an argument."""

    unit: str | None
    range: Interval
    level: Level


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition."""

    level: Level


@dataclass(frozen=True, slots=True)
class Prose:
    """A text: a literal, a parameter, or a field of a type that compares as text."""

    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A field of task or data. `role` tells what may be asked of it; `limit` is its declared most tokens."""

    name: str
    role: str
    type: FieldType
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Thing:
    """What is no value: `state`, `word`, `list`, `skill`, `claim`. `text` is what was written."""

    kind: str
    text: str = ""


Type = Quantity | Truth | Prose | Column | Thing


@dataclass(frozen=True, slots=True)
class Typed:
    """A term with its type."""

    term: Term
    type: Type


class Broken(Exception):  # noqa: N818
    """An expression whose fault is already reported; never leaves the package."""


def as_quantity(typed: Typed, *, counts_truth: bool) -> Quantity | None:
    """The quantity that a value counts as: a number field is one, and in a metric a condition is 0 or 1."""
    kind = typed.type
    if isinstance(kind, Quantity):
        return kind
    if isinstance(kind, Truth) and counts_truth:
        return Quantity("", UNIT, kind.level)
    if isinstance(kind, Column) and not kind.type.optional:
        if kind.type.kind in ("number", "integer"):
            return Quantity("", EVERYTHING, Level.EXAMPLE)
        if kind.type.kind == "bool" and counts_truth:
            return Quantity("", UNIT, Level.EXAMPLE)
    return None


def as_truth(typed: Typed) -> Truth | None:
    """The condition that a value counts as: a bool field is one."""
    kind = typed.type
    if isinstance(kind, Truth):
        return kind
    if isinstance(kind, Column) and kind.type.kind == "bool":
        return Truth(Level.EXAMPLE)
    return None


def as_prose(typed: Typed) -> Prose | None:
    """The text that a value counts as; a field with labels knows them."""
    kind = typed.type
    if isinstance(kind, Prose):
        return kind
    if isinstance(kind, Column) and kind.type.kind in ("text", "labels"):
        return Prose(kind.type.labels)
    return None


def constant(typed: Typed) -> Constant | None:
    """The literal number behind a value, if it is one."""
    return typed.term if isinstance(typed.term, Constant) else None
