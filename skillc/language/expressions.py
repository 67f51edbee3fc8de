"""Lower expressions to terms, with type, unit and range."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar, cast

from skillc.diagnostics.diagnostic import Fix
from skillc.gates.functions import Level
from skillc.gates.intervals import EVERYTHING, Interval
from skillc.gates.terms import Comparison, Constant, MetricTerm, Operation, StateTerm, TextConstant, balance, show_term
from skillc.gates.units import decimal, describe_unit
from skillc.language.calls import lower_call
from skillc.language.checked import CheckedMetric
from skillc.language.scope import Scope, lower_member, lower_name
from skillc.language.types import (
    ANY_UNIT,
    Broken,
    ColumnType,
    ConditionType,
    NumberType,
    TextType,
    Typed,
    bare,
    base_amount,
    condition_type,
    literal,
    number_type,
    text_type,
)
from skillc.syntax import nodes
from skillc.syntax.source import Span

_DEEPEST = 120
# The term of a chain nests as deeply as the chain is long; longer chains than this are rebalanced.
_FLATTEST = 32
_Part = TypeVar("_Part")
_Read = TypeVar("_Read")
_Number = tuple[Typed, NumberType]


class Lowering:
    """Lower the expressions of one scope."""

    def __init__(self, scope: Scope, depth: int = 0) -> None:
        self.scope = scope
        self.depth = depth

    @staticmethod
    def within(scope: Scope, depth: int) -> Lowering:
        """Lower in another scope, at the given depth of nesting."""
        return Lowering(scope, depth)

    def at(self, level: Level) -> Lowering:
        """The same scope at another level."""
        return Lowering(replace(self.scope, level=level), self.depth)

    @staticmethod
    def every(read: Callable[[_Part], _Read], parts: Iterable[_Part]) -> list[_Read]:
        """Read each part, even after a broken one, so that all errors are reported."""
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

    # ---- numbers and conditions ----

    def number(self, node: nodes.Expression) -> _Number:
        """Lower an expression as a number; in a metric a condition is the number 0 or 1."""
        typed = self.lower(node)
        return typed, self.as_number(node, typed)

    def as_number(self, node: nodes.Expression, typed: Typed) -> NumberType:
        """The type of a value as a number."""
        quantity = number_type(typed, conditions=self.scope.level is Level.EXAMPLE)
        if quantity is None:
            raise self._no_number(node, typed)
        return quantity

    def condition(self, node: nodes.Expression) -> tuple[Typed, ConditionType]:
        """Lower an expression as a condition."""
        typed = self.lower(node)
        return typed, self.as_condition(node, typed)

    def as_condition(self, node: nodes.Expression, typed: Typed) -> ConditionType:
        """The type of a value as a condition."""
        truth = condition_type(typed)
        if truth is None:
            hint = "compare it: `... > ...`"
            if isinstance(typed.type, NumberType) and typed.type.range.high == 1 and self.scope.level is Level.EXAMPLE:
                hint = f"write `{self.scope.text(node.span)} == 1`"
            raise self.scope.fail("SK309", node.span, f"`{self.scope.text(node.span)}` is not a condition", hint)
        return truth

    def _no_number(self, node: nodes.Expression, typed: Typed) -> Broken:
        shown, kind = self.scope.text(node.span), typed.type
        if isinstance(kind, ColumnType) and kind.type.optional:
            message = f"`{shown}` may be `none`, so it is not a number"
            return self.scope.fail("SK307", node.span, message, "remove `| none` from its type")
        if isinstance(kind, TextType | ColumnType):
            hint = "measure it: `tokens(...)`, `exact_match(...)`, or compare it with `==`"
            return self.scope.fail("SK307", node.span, f"`{shown}` is a text, not a number", hint)
        if isinstance(kind, ConditionType):
            hint = "join conditions with `and`, `or`"
            return self.scope.fail("SK309", node.span, f"`{shown}` is a condition, not a number", hint)
        if isinstance(typed.term, StateTerm):
            hint = f"write `{shown}.metric`, or `tokens({shown})`"
            return self.scope.fail("SK307", node.span, f"`{shown}` is a skill, not a number", hint)
        return self.scope.fail("SK307", node.span, f"`{shown}` is not a number")

    # ---- any expression ----

    def lower(self, node: nodes.Expression) -> Typed:
        """Lower any expression."""
        if self.depth > _DEEPEST:
            hint = "split it into metrics with names"
            raise self.scope.fail("SK320", node.span, "this expression is nested too deeply", hint)
        self.depth += 1
        try:
            return self._lower(node)
        finally:
            self.depth -= 1

    def _lower(self, node: nodes.Expression) -> Typed:
        if isinstance(node, nodes.Quantity | nodes.Money):
            amount = base_amount(self.scope.errors, node)
            return literal(amount.value, amount.unit)
        if isinstance(node, nodes.String | nodes.Text):
            return Typed(TextConstant(node.value), TextType())
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
            return Typed(Operation(node.operator, tuple(typed.term for typed, _ in parts)), ConditionType(level))
        what = "a ratio" if isinstance(node, nodes.Ratio) else "a list"
        raise self.scope.fail("SK311", node.span, f"{what} is not allowed in this expression")

    def as_metric(self, typed: Typed, span: Span) -> CheckedMetric:
        """Make a metric of an example-level value, named by its canonical text; return a declared metric as it is."""
        scope = self.scope
        if isinstance(typed.term, MetricTerm) and typed.term.name in scope.metrics.names:
            return scope.metrics.metric(typed.term.name, self.depth)
        quantity = number_type(typed, conditions=True)
        if quantity is None:
            hint = "write the name of a metric, or an expression of fields and metrics"
            raise scope.fail("SK311", span, f"expected a metric, found `{scope.text(span)}`", hint)
        if not quantity.range.finite and not scope.generic:
            raise scope.fail(
                "SK304", span, "the range of this metric is not finite", "bound it: `clamp(..., 0, 300 tokens)`"
            )
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
        """Lower a chain such as `a + b - c` from left to right, without recursion over its length."""
        chain, parts = nodes.chain(node), nodes.operands(node)
        # `no-such` may be one name with a hyphen: stop at its first error.
        hyphens = any(self.scope.source.text[each.right.span.start - 1] == "-" for each in chain)
        operands = [self.number(part) for part in parts] if hyphens else self.every(self.number, parts)
        left = operands[0]
        for each, right in zip(chain, operands[1:], strict=True):
            typed = self._operation(each, left, right)
            left = typed, self.as_number(each, typed)
        return replace(left[0], term=balance(left[0].term)) if len(chain) > _FLATTEST else left[0]

    def _operation(self, node: nodes.Binary, first: _Number, second: _Number) -> Typed:
        (left, a), (right, b) = first, second
        level = max(a.level, b.level)
        term = Operation(node.operator, (left.term, right.term))
        if node.operator in ("+", "-"):
            unit = self.one_unit([(node.left, a), (node.right, b)])
            if right.term in (Constant(Fraction(0)), Constant(Fraction(0), unit or "")):
                return Typed(left.term, replace(a, unit=unit, level=level))
            found = a.range + b.range if node.operator == "+" else a.range - b.range
            return Typed(term, NumberType(unit, found, level))
        if node.operator == "*":
            return Typed(term, NumberType(self._product_unit(node, a, b), a.range * b.range, level))
        return Typed(term, self._quotient(node, a, b))

    def _product_unit(self, node: nodes.Binary, a: NumberType, b: NumberType) -> str | None:
        if a.unit and b.unit:
            message = f"{describe_unit(a.unit)} times {describe_unit(b.unit)} has no unit"
            raise self.scope.fail("SK318", node.span, message, "one operand of `*` must be a plain number")
        if a.unit is None or b.unit is None:
            return a.unit or b.unit or None
        return a.unit or b.unit

    def _quotient(self, node: nodes.Binary, a: NumberType, b: NumberType) -> NumberType:
        level = max(a.level, b.level)
        if b.unit and a.unit is not None and a.unit != b.unit:
            message = f"{describe_unit(a.unit)} can't be divided by {describe_unit(b.unit)}"
            raise self.scope.fail("SK318", node.span, message, "divide by the same unit, or by a plain number")
        unit = None if a.unit is None or b.unit is None else "" if a.unit == b.unit else a.unit
        if Fraction(0) in b.range:
            if self.scope.generic:
                return NumberType(unit, EVERYTHING, level)
            shown = self.scope.text(node.right.span)
            hint = f"keep it away from 0: `max({shown}, 1{' ' + b.unit if b.unit else ''})`"
            raise self.scope.fail("SK305", node.right.span, f"`{shown}` may be 0, which can't be a divisor", hint)
        return NumberType(unit, a.range / b.range, level)

    def one_unit(self, parts: list[tuple[nodes.Expression, NumberType]]) -> str | None:
        """Return the common unit of the parts; None if it depends on a parameter."""
        known = [(node, quantity) for node, quantity in parts if quantity.unit is not None]
        if not known:
            return None
        first_node, first = known[0]
        for node, quantity in known[1:]:
            if quantity.unit != first.unit:
                raise self._two_units((first_node, first), (node, quantity))
        return first.unit

    def _two_units(self, a: tuple[nodes.Expression, NumberType], b: tuple[nodes.Expression, NumberType]) -> Broken:
        scope = self.scope
        message = f"{describe_unit(a[1].unit)} and {describe_unit(b[1].unit)} can't be combined"
        hint = f"`{scope.text(a[0].span)}` is {_in(a[1].unit)}, `{scope.text(b[0].span)}` is {_in(b[1].unit)}"
        fix = None
        for (node, quantity), (_, other) in ((a, b), (b, a)):
            if not quantity.unit and bare(node) and other.unit:
                shown, end = scope.text(node.span), node.span.end
                hint = f"write `${shown}`" if other.unit == "$" else f"write `{shown} {other.unit}`"
                if other.unit != "$":
                    fix = Fix(Span(end, end), f" {other.unit}", safe=False)
        for (node, quantity), (_, other) in ((a, b), (b, a)):
            divided = isinstance(node, nodes.Binary) and node.operator == "/" and bare(node.right)
            if divided and isinstance(node, nodes.Binary) and quantity.unit and not other.unit:
                # `1 - tokens(x) / 300`: the divisor lacks the unit.
                end = node.right.span.end
                hint = f"write `{scope.text(node.span)} {quantity.unit}`"
                fix = Fix(Span(end, end), f" {quantity.unit}", safe=False)
        return scope.fail("SK302", a[0].span.to(b[0].span), message, hint, fix)


def _in(unit: str | None) -> str:
    return f"in {unit}" if unit else "a plain number"


def _unchained(low: Lowering, node: nodes.Compare) -> Fix | None:
    """Rewrite `0 < x < 1` as `0 < x and x < 1`; None if the operators point in two directions."""
    if not (set(node.operators) <= {"<", "<="} or set(node.operators) <= {">", ">="}):
        return None
    shown = [low.scope.source.slice(operand.span) for operand in node.operands]
    pairs = zip(shown, node.operators, shown[1:], strict=False)
    text = " and ".join(f"{left} {sign} {right}" for left, sign, right in pairs)
    negated = low.scope.source.text[: node.span.start].rstrip().endswith("not")
    return Fix(node.span, f"({text})" if negated else text)


def lower_comparison(low: Lowering, node: nodes.Compare) -> Typed:
    """Lower a comparison."""
    scope = low.scope
    if len(node.operators) > 1:
        first, middle, last = (scope.text(operand.span) for operand in node.operands[:3])
        hint = f"write `{first} {node.operators[0]} {middle} and {middle} {node.operators[1]} {last}`"
        raise scope.fail("SK312", node.span, "comparisons can't be chained", hint, _unchained(low, node))
    left, right = low.every(low.lower, node.operands)
    term = Operation(cast("Comparison", node.operators[0]), (left.term, right.term))
    if text_type(left) is not None or text_type(right) is not None:
        return Typed(term, _texts(low, node, left, right))
    sides = {id(operand): side for operand, side in zip(node.operands, (left, right), strict=True)}
    a, b = low.every(lambda operand: low.as_number(operand, sides[id(operand)]), node.operands)
    low.one_unit([(node.operands[0], a), (node.operands[1], b)])
    _check_undecided(low, node, (left, a), (right, b))
    return Typed(term, ConditionType(max(a.level, b.level)))


def _texts(low: Lowering, node: nodes.Compare, left: Typed, right: Typed) -> ConditionType:
    scope = low.scope
    for typed, other in ((left, node.operands[1]), (right, node.operands[0])):
        if text_type(typed) is None:
            message = f"`{scope.text(other.span)}` is a text, not a number"
            raise scope.fail("SK307", node.span, message, "compare a text with a text in quotes")
    if node.operators[0] not in ("==", "!="):
        raise scope.fail("SK307", node.span, "texts can't be ordered", "compare them with `==` or `!=`")
    for typed, opposite, place in ((left, right, node.operands[1]), (right, left, node.operands[0])):
        prose = text_type(typed)
        if prose is None or not prose.labels or not isinstance(opposite.term, TextConstant):
            continue
        if opposite.term.value not in prose.labels:
            raise _no_label(low, place, opposite.term.value, prose.labels)
    literal_ = isinstance(left.term, TextConstant) and isinstance(right.term, TextConstant)
    return ConditionType(Level.LITERAL if literal_ else Level.EXAMPLE)


def _no_label(low: Lowering, node: nodes.Expression, value: str, labels: tuple[str, ...]) -> Broken:
    from skillc.diagnostics.suggest import suggest

    near = suggest(value, labels)
    listed = ", ".join(f'"{label}"' for label in labels[:8])
    hint = f'did you mean "{near}"?' if near else f"valid options: {listed}"
    fix = Fix(node.span, f'"{near}"', safe=False) if near else None
    return low.scope.fail("SK308", node.span, f'"{value}" is not a declared label', hint, fix)


def _check_undecided(low: Lowering, node: nodes.Compare, left: _Number, right: _Number) -> None:
    """Report a comparison that is always true or always false, often because a `%` is missing."""
    if low.scope.generic:
        return
    (a, first), (b, second) = left, right
    operator = cast("Comparison", node.operators[0])
    outcome = first.range.compared(operator, second.range).definite
    if a.term == b.term:
        outcome = operator in ("<=", ">=", "==")
    if outcome is None:
        return
    hint, fix = _percent(node, left, right)
    if hint is None:
        index = 1 if isinstance(a.term, Constant) else 0
        other, quantity = node.operands[index], (first, second)[index]
        hint = f"`{low.scope.text(other.span)}` is in {_interval(quantity)}"
    word = "always" if outcome else "never"
    message = f"`{low.scope.text(node.span)}` is {word} true"
    if low.scope.site is not None:
        meaning = show_term(Operation(operator, (a.term, b.term)))
        message = f"this is {word} true: it means `{meaning}`"
        hint = hint if hint and hint.startswith("did") else None
    raise low.scope.fail("SK303", node.span, message, hint, fix)


def _percent(node: nodes.Compare, left: _Number, right: _Number) -> tuple[str | None, Fix | None]:
    """Hint and fix for a number without its `%`, as in `regressed(x) <= 5`."""
    operator = cast("Comparison", node.operators[0])
    for index, ((typed, _), (_, other)) in enumerate(((left, right), (right, left))):
        term = typed.term
        if not isinstance(term, Constant) or term.unit or not term.value or other.unit:
            continue
        meant_ = Interval.point(term.value / 100)
        sides = (meant_, other.range) if index == 0 else (other.range, meant_)
        operand = node.operands[index]
        # An argument of a function may have a `%` at the call.
        written_out = bare(operand) or (isinstance(operand, nodes.Reference) and abs(term.value) > 1)
        settled = sides[0].compared(operator, sides[1]).definite is not None
        if not written_out or settled or term.value / 100 not in other.range:
            continue
        end = operand.span.end
        fix = Fix(Span(end, end), "%", safe=False) if bare(operand) else None
        return f"did you mean `{decimal(term.value)}%`?", fix
    return None, None


def _interval(quantity: NumberType) -> str:
    low, high = quantity.range.bounds
    unit = f" {quantity.unit}" if quantity.unit else ""
    return f"{decimal(low) if low is not None else '...'} .. {decimal(high) if high is not None else '...'}{unit}"
