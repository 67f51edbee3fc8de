"""From an expression as it was written to its term, with type, unit and range."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn, TypeVar

from skillc.diagnostics.diagnostic import Fix
from skillc.gates.functions import Level
from skillc.gates.intervals import EVERYTHING
from skillc.gates.terms import Constant, MetricTerm, Operation, TextConstant, shallow, show_term
from skillc.gates.units import described
from skillc.language.amounts import bare, base_amount
from skillc.language.calls import lower_call
from skillc.language.checked import CheckedMetric
from skillc.language.comparisons import lower_comparison
from skillc.language.references import lower_member, lower_name
from skillc.language.scope import Scope
from skillc.language.types import Broken, Column, Prose, Quantity, Thing, Truth, Typed, as_quantity, as_truth
from skillc.language.values import ANY_UNIT, literal
from skillc.syntax import nodes
from skillc.syntax.source import Span

_DEEPEST = 120
# The term of a chain nests as deeply as the chain is long. Below this many operators it stays as it was written.
_FLATTEST = 32
_Read = TypeVar("_Read")


class Lowering:
    """Lowers the expressions of one scope."""

    def __init__(self, scope: Scope, depth: int = 0) -> None:
        self.scope = scope
        self.depth = depth

    def at(self, level: Level) -> Lowering:
        """The same scope at another level."""
        return Lowering(replace(self.scope, level=level), self.depth)

    @staticmethod
    def every(read: Callable[[nodes.Expression], _Read], parts: Iterable[nodes.Expression]) -> list[_Read]:
        """Read each part, also where one before it is broken: that must not hide what is wrong with the others.

        Raises:
            Broken: one of them is; each that is has been reported.
        """
        found: list[_Read] = []
        broken = False
        for part in parts:
            try:
                found.append(read(part))
            except Broken:
                broken = True
        if broken:
            raise Broken
        return found

    # ---- what is asked of an expression ----

    def number(self, node: nodes.Expression) -> tuple[Typed, Quantity]:
        """An expression as a number; in a metric a condition is 0 or 1.

        Raises:
            Broken: it is none; the error has been reported.
        """
        typed = self.lower(node)
        return typed, self.as_number(node, typed)

    def as_number(self, node: nodes.Expression, typed: Typed) -> Quantity:
        """What a value counts as.

        Raises:
            Broken: it is no number.
        """
        quantity = as_quantity(typed, counts_truth=self.scope.level is Level.EXAMPLE)
        if quantity is None:
            self._no_number(node, typed)
        return quantity

    def condition(self, node: nodes.Expression) -> tuple[Typed, Truth]:
        """An expression as a condition.

        Raises:
            Broken: it is none; the error has been reported.
        """
        typed = self.lower(node)
        truth = as_truth(typed)
        if truth is None:
            hint = "compare it, as in `... > ...`"
            if isinstance(typed.type, Quantity) and typed.type.range.high == 1 and self.scope.level is Level.EXAMPLE:
                hint = f"write `{self.scope.shown(node.span)} == 1`"
            raise self.scope.fail("SK309", node.span, f"`{self.scope.shown(node.span)}` is no condition", hint)
        return typed, truth

    def _no_number(self, node: nodes.Expression, typed: Typed) -> NoReturn:
        shown, kind = self.scope.shown(node.span), typed.type
        if isinstance(kind, Column) and kind.type.optional:
            raise self.scope.fail(
                "SK307", node.span, f"`{shown}` may be `none`, so it is no number", "remove `| none` from its type"
            )
        if isinstance(kind, Prose | Column):
            hint = "measure it: `tokens(...)`, `exact_match(...)`, or compare it with `==`"
            raise self.scope.fail("SK307", node.span, f"`{shown}` is a text, and a text is never a number", hint)
        if isinstance(kind, Truth):
            raise self.scope.fail(
                "SK309", node.span, f"`{shown}` is a condition, not a number", "join conditions with `and`, `or`"
            )
        if isinstance(kind, Thing) and kind.kind == "state":
            hint = f"write `{shown}.metric`, or `tokens({shown})`"
            raise self.scope.fail("SK307", node.span, f"`{shown}` is a skill, not a number", hint)
        raise self.scope.fail("SK307", node.span, f"`{shown}` is no number")

    # ---- any expression ----

    def lower(self, node: nodes.Expression) -> Typed:
        """The meaning of an expression.

        Raises:
            Broken: it has none; the error has been reported.
        """
        if self.depth > _DEEPEST:
            raise self.scope.fail(
                "SK320", node.span, "this expression is nested too deeply", "split it into metrics with names"
            )
        self.depth += 1
        try:
            return self._lower(node)
        finally:
            self.depth -= 1

    def _lower(self, node: nodes.Expression) -> Typed:
        if isinstance(node, nodes.Quantity | nodes.Money):
            amount = base_amount(self.scope.report, self.scope.source, node)
            return literal(amount.value, amount.unit)
        if isinstance(node, nodes.String | nodes.Text):
            return Typed(TextConstant(node.value), Prose())
        if isinstance(node, nodes.Reference):
            return lower_name(self, node)
        if isinstance(node, nodes.Member):
            return lower_member(self, node)
        if isinstance(node, nodes.Call):
            return lower_call(self, node)
        if isinstance(node, nodes.Unary):
            return self._unary(node)
        if isinstance(node, nodes.Binary):
            return self._binary(node)
        if isinstance(node, nodes.Compare):
            return lower_comparison(self, node)
        if isinstance(node, nodes.Logic):
            parts = self.every(self.condition, node.operands)
            level = max(truth.level for _, truth in parts)
            return Typed(Operation(node.operator, tuple(typed.term for typed, _ in parts)), Truth(level))
        what = "a ratio" if isinstance(node, nodes.Ratio) else "a list"
        raise self.scope.fail("SK311", node.span, f"{what} has no place in this expression")

    def made_metric(self, typed: Typed, span: Span) -> CheckedMetric:
        """The metric that an example-level value is; an expression becomes one under its canonical text.

        Raises:
            Broken: it is no number, or has no finite range.
        """
        scope = self.scope
        if isinstance(typed.term, MetricTerm) and typed.term.name in scope.metrics.names:
            return scope.metrics.metric(typed.term.name, self.depth)
        quantity = as_quantity(typed, counts_truth=True)
        if quantity is None:
            raise scope.fail(
                "SK311", span, "a metric is needed here", "give the name of one, or an expression of fields and metrics"
            )
        if not quantity.range.finite and not scope.generic:
            raise scope.fail("SK304", span, "this metric has no finite range", "bound it: `clamp(..., 0, 300 tokens)`")
        if scope.generic:
            low, high = quantity.range.bounds
            unit = ANY_UNIT if quantity.unit is None else quantity.unit
            name = show_term(typed.term)
            return CheckedMetric(name, typed.term, unit, low, high, False, False, scope.source, span)
        return scope.metrics.anonymous(typed.term, quantity, scope.source, span)

    # ---- arithmetic ----

    def _unary(self, node: nodes.Unary) -> Typed:
        if node.operator == "not":
            typed, truth = self.condition(node.operand)
            return Typed(Operation("not", (typed.term,)), truth)
        typed, quantity = self.number(node.operand)
        if node.operator == "+":
            return Typed(typed.term, quantity)
        negated = replace(quantity, range=-quantity.range)
        if isinstance(typed.term, Constant):
            return Typed(Constant(-typed.term.value, typed.term.unit), negated)
        return Typed(Operation("negate", (typed.term,)), negated)

    def _binary(self, node: nodes.Binary) -> Typed:
        """A chain such as `a + b - c`, from its first operand on: it is as long as it is, and no deeper than one."""
        chain, parts = nodes.chain(node), nodes.operands(node)
        # `no-such` is one name with a hyphen as likely as a difference: of it the first fault is enough.
        hyphens = any(self.scope.source.text[each.right.span.start - 1] == "-" for each in chain)
        operands = [self.number(part) for part in parts] if hyphens else self.every(self.number, parts)
        left = operands[0]
        for each, right in zip(chain, operands[1:], strict=True):
            typed = self._joined(each, left, right)
            left = typed, self.as_number(each, typed)
        return replace(left[0], term=shallow(left[0].term)) if len(chain) > _FLATTEST else left[0]

    def _joined(self, node: nodes.Binary, first: tuple[Typed, Quantity], second: tuple[Typed, Quantity]) -> Typed:
        (left, a), (right, b) = first, second
        level = max(a.level, b.level)
        term = Operation(node.operator, (left.term, right.term))
        if node.operator in ("+", "-"):
            unit = self.one_unit([(node.left, a), (node.right, b)])
            if right.term in (Constant(Fraction(0)), Constant(Fraction(0), unit or "")):
                return Typed(left.term, replace(a, unit=unit, level=level))
            found = a.range + b.range if node.operator == "+" else a.range - b.range
            return Typed(term, Quantity(unit, found, level))
        if node.operator == "*":
            return Typed(term, Quantity(self._product_unit(node, a, b), a.range * b.range, level))
        return Typed(term, self._quotient(node, a, b))

    def _product_unit(self, node: nodes.Binary, a: Quantity, b: Quantity) -> str | None:
        if a.unit and b.unit:
            message = f"{described(a.unit)} times {described(b.unit)} has no meaning"
            raise self.scope.fail("SK318", node.span, message, "one side of `*` is a plain number")
        if a.unit is None or b.unit is None:
            return a.unit or b.unit or None
        return a.unit or b.unit

    def _quotient(self, node: nodes.Binary, a: Quantity, b: Quantity) -> Quantity:
        level = max(a.level, b.level)
        if b.unit and a.unit is not None and a.unit != b.unit:
            message = f"{described(a.unit)} can't be divided by {described(b.unit)}"
            raise self.scope.fail("SK318", node.span, message, "divide by the same unit, or by a plain number")
        unit = None if a.unit is None or b.unit is None else "" if a.unit == b.unit else a.unit
        if b.range.holds(Fraction(0)):
            if self.scope.generic:
                return Quantity(unit, EVERYTHING, level)
            shown = self.scope.shown(node.right.span)
            hint = f"keep it away from 0: `max({shown}, 1{' ' + b.unit if b.unit else ''})`"
            raise self.scope.fail(
                "SK305", node.right.span, f"`{shown}` may be 0, and nothing can be divided by 0", hint
            )
        return Quantity(unit, a.range / b.range, level)

    def one_unit(self, parts: list[tuple[nodes.Expression, Quantity]]) -> str | None:
        """The unit that all parts share; None where it depends on a parameter.

        Raises:
            Broken: they have different ones.
        """
        known = [(node, quantity) for node, quantity in parts if quantity.unit is not None]
        if not known:
            return None
        first_node, first = known[0]
        for node, quantity in known[1:]:
            if quantity.unit != first.unit:
                self._two_units((first_node, first), (node, quantity))
        return first.unit

    def _two_units(self, a: tuple[nodes.Expression, Quantity], b: tuple[nodes.Expression, Quantity]) -> NoReturn:
        scope = self.scope
        message = f"{described(a[1].unit)} and {described(b[1].unit)} don't go together"
        hint = f"`{scope.shown(a[0].span)}` is {_in(a[1].unit)}, `{scope.shown(b[0].span)}` is {_in(b[1].unit)}"
        fix = None
        for (node, quantity), (_, other) in ((a, b), (b, a)):
            if not quantity.unit and bare(node) and other.unit:
                shown, end = scope.shown(node.span), node.span.end
                hint = f"write `${shown}`" if other.unit == "$" else f"write `{shown} {other.unit}`"
                if other.unit != "$":
                    fix = Fix(Span(end, end), f" {other.unit}", safe=False)
        for (node, quantity), (_, other) in ((a, b), (b, a)):
            divided = isinstance(node, nodes.Binary) and node.operator == "/" and bare(node.right)
            if divided and isinstance(node, nodes.Binary) and quantity.unit and not other.unit:
                # `1 - tokens(x) / 300`: the number without a unit is not the one that is added to.
                end = node.right.span.end
                hint = f"write `{scope.shown(node.span)} {quantity.unit}`"
                fix = Fix(Span(end, end), f" {quantity.unit}", safe=False)
        raise scope.fail("SK302", a[0].span.to(b[0].span), message, hint, fix)


def _in(unit: str | None) -> str:
    return f"in {unit}" if unit else "a plain number"
