"""Numbers that are written out, in base units."""

from __future__ import annotations

from fractions import Fraction

from skillc.diagnostics.diagnostic import Report
from skillc.diagnostics.suggest import meant
from skillc.gates.units import SYNONYMS, UNITS
from skillc.language.checked import Amount
from skillc.language.types import Broken
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span
from skillc.text import listed


def base_amount(report: Report, source: Source, node: nodes.Quantity | nodes.Money) -> Amount:
    """The number in its base unit.

    Raises:
        Broken: there is no such unit; the error has been reported.
    """
    if isinstance(node, nodes.Money):
        return Amount(node.value, "$")
    if node.unit is None:
        return Amount(node.value)
    word = node.unit.text
    known = UNITS.get(word)
    if known is None:
        report.add("SK301", source, node.unit.span, f"unknown unit `{word}`", hint=_hint(source, node, word))
        raise Broken
    unit, factor = known
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
    return meant(word, sorted(UNITS)) or f"there is {units}"


def as_literal(report: Report, source: Source, node: nodes.Expression) -> Amount | None:
    """A number with an optional sign; None where something else stands.

    Raises:
        Broken: its unit is unknown.
    """
    if isinstance(node, nodes.Unary) and node.operator in "+-":
        inner = as_literal(report, source, node.operand)
        if inner is None or node.operator == "+":
            return inner
        return Amount(-inner.value, inner.unit)
    if isinstance(node, nodes.Quantity | nodes.Money):
        return base_amount(report, source, node)
    return None


def bare(node: nodes.Expression) -> bool:
    """Whether a number was written without any unit, `%` included."""
    while isinstance(node, nodes.Unary):
        node = node.operand
    return isinstance(node, nodes.Quantity) and node.unit is None


def in_percent(value: Fraction) -> Fraction:
    """What a number would be if `%` stood behind it."""
    return value / 100
