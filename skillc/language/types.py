"""Types of expressions (number, condition, text, column, argument), number literals, and how errors are reported."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Fix, Label, Reporter
from skillc.diagnostics.suggest import spelling_hint
from skillc.gates.functions import Level
from skillc.gates.intervals import EVERYTHING, UNIT, Interval
from skillc.gates.terms import Constant, MetricTerm, Term
from skillc.gates.units import SYNONYMS, UNITS
from skillc.language.checked import Amount, CheckedMetric, Entity, FieldType, Setting
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span
from skillc.text import listed


@dataclass(frozen=True, slots=True)
class NumberType:
    """A number. `unit` is None inside a parametric body, where it depends on an argument."""

    unit: str | None
    range: Interval
    level: Level


@dataclass(frozen=True, slots=True)
class ConditionType:
    """A condition."""

    level: Level


@dataclass(frozen=True, slots=True)
class TextType:
    """A text: a literal, a parameter, or a field of a type that compares as text."""

    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A field of task or data. `role` decides where it may be used; `limit` is its declared maximum of tokens."""

    name: str
    role: str
    type: FieldType
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """An argument that is not a value: a skill, a word, a list."""


Type = NumberType | ConditionType | TextType | ColumnType | ArgumentType


@dataclass(frozen=True, slots=True)
class Typed:
    """A term with its type."""

    term: Term
    type: Type


# ---- errors ---------------------------------------------------------------------------------------


class Broken(Exception):  # noqa: N818
    """An error in the program that is already reported; never leaves the package.

    Every function of the package that reads a part of a program raises it if that part has no meaning.
    """


@dataclass(frozen=True, slots=True)
class FileErrors:
    """Reports errors in one file."""

    report: Reporter
    source: Source

    def add(
        self,
        code: str,
        span: Span,
        message: str,
        hint: str | None = None,
        *,
        fix: Fix | None = None,
        secondary: tuple[Label, ...] = (),
    ) -> Broken:
        """Report an error; return the exception to raise."""
        self.report.add(code, self.source, span, message, hint=hint, fix=fix, secondary=secondary)
        return Broken()


def add_error(
    report: Reporter,
    code: str,
    at: Entity | Setting,
    message: str,
    hint: str | None = None,
    secondary: tuple[Label, ...] = (),
) -> None:
    """Report an error at a declaration or a setting."""
    report.add(code, at.source, at.span, message, hint=hint, secondary=secondary)


def check_distinct(report: Reporter, entities: Iterable[Entity], what: str) -> None:
    """Check that declarations in one block, such as "sections", have different names."""
    seen: dict[str | None, Entity] = {}
    for entity in entities:
        first = seen.setdefault(entity.name, entity)
        if first is not entity:
            label = Label(first.source, first.span, "first declared here")
            message = f"two {what} are named `{entity.name}`"
            add_error(report, "SK203", entity, message, "rename one of them", (label,))


# ---- conversions ----------------------------------------------------------------------------------


def number_type(typed: Typed, *, conditions: bool) -> NumberType | None:
    """The type of a value as a number; None if it is not one. In a metric a condition is the number 0 or 1."""
    kind = typed.type
    if isinstance(kind, NumberType):
        return kind
    if isinstance(kind, ConditionType) and conditions:
        return NumberType("", UNIT, kind.level)
    if isinstance(kind, ColumnType) and not kind.type.optional:
        if kind.type.kind in ("number", "integer"):
            return NumberType("", EVERYTHING, Level.EXAMPLE)
        if kind.type.kind == "bool" and conditions:
            return NumberType("", UNIT, Level.EXAMPLE)
    return None


def condition_type(typed: Typed) -> ConditionType | None:
    """The type of a value as a condition, bool fields included; None if it is not one."""
    kind = typed.type
    if isinstance(kind, ConditionType):
        return kind
    if isinstance(kind, ColumnType) and kind.type.kind == "bool":
        return ConditionType(Level.EXAMPLE)
    return None


def text_type(typed: Typed) -> TextType | None:
    """The type of a value as a text, with the labels of its field; None if it is not one."""
    kind = typed.type
    if isinstance(kind, TextType):
        return kind
    if isinstance(kind, ColumnType) and kind.type.kind in ("text", "labels"):
        return TextType(kind.type.labels)
    return None


ANY_UNIT = "?"
"""The unit of the placeholder for any metric in a parametric body."""


def literal(value: Fraction, unit: str) -> Typed:
    """A number literal."""
    return Typed(Constant(value, unit), NumberType(unit, Interval.point(value), Level.LITERAL))


def metric_value(metric: CheckedMetric) -> Typed:
    """A metric's value on one rollout."""
    return Typed(MetricTerm(metric.name), metric_quantity(metric, Level.EXAMPLE))


def metric_quantity(metric: CheckedMetric, level: Level) -> NumberType:
    """The type of a metric's value on one rollout, or of its mean over a run."""
    unit = None if metric.unit == ANY_UNIT else metric.unit
    return NumberType(unit, Interval.of(metric.low, metric.high), level)


def base_amount(errors: FileErrors, node: nodes.Quantity | nodes.Money) -> Amount:
    """Convert a number literal to its base unit."""
    if isinstance(node, nodes.Money):
        return Amount(node.value, "$")
    if node.unit is None:
        return Amount(node.value)
    word = node.unit.text
    if word not in UNITS:
        raise errors.add("SK301", node.unit.span, f"unknown unit `{word}`", _hint(errors.source, node, word))
    unit, factor = UNITS[word]
    return Amount(node.value * factor, unit)


def _hint(source: Source, node: nodes.Quantity, word: str) -> str:
    assert node.unit is not None
    digits = source.slice(Span(node.span.start, node.unit.span.start)).strip()
    right = SYNONYMS.get(word)
    if right == "$":
        return f"write `${digits}`"
    if right in ("k", "M", "%"):
        return f"write `{digits}{right}`"
    if right is not None:
        return f"write `{digits} {right}`"
    units = listed(("tokens", "s", "min", "h", "examples", "steps", "epochs", "%"))
    return spelling_hint(word, sorted(UNITS)) or f"valid options: {units}"


def as_literal(errors: FileErrors, node: nodes.Expression) -> Amount | None:
    """Read a number literal with an optional sign; None for any other expression."""
    if isinstance(node, nodes.Unary) and node.operator in "+-":
        inner = as_literal(errors, node.operand)
        if inner is None or node.operator == "+":
            return inner
        return Amount(-inner.value, inner.unit)
    if isinstance(node, nodes.Quantity | nodes.Money):
        return base_amount(errors, node)
    return None


def bare(node: nodes.Expression) -> bool:
    """Whether an expression is a number literal without a unit and without `%`."""
    while isinstance(node, nodes.Unary):
        node = node.operand
    return isinstance(node, nodes.Quantity) and node.unit is None
