"""Comparisons: of quantities, of texts with labels, and those that say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, cast

from skillc.diagnostics.diagnostic import Fix
from skillc.gates.functions import Level
from skillc.gates.intervals import Interval
from skillc.gates.terms import Comparison, Constant, Operation, TextConstant, show_term
from skillc.gates.units import decimal
from skillc.language.amounts import bare
from skillc.language.types import Quantity, Truth, Typed, as_prose
from skillc.syntax import nodes
from skillc.syntax.source import Span

if TYPE_CHECKING:
    from skillc.language.expressions import Lowering


def _unchained(low: Lowering, node: nodes.Compare) -> Fix | None:
    """`0 < x < 1` as `0 < x and x < 1`, where it can be meant in no other way."""
    if not (set(node.operators) <= {"<", "<="} or set(node.operators) <= {">", ">="}):
        return None
    shown = [low.scope.source.slice(operand.span) for operand in node.operands]
    pairs = zip(shown, node.operators, shown[1:], strict=False)
    text = " and ".join(f"{left} {sign} {right}" for left, sign, right in pairs)
    negated = low.scope.source.text[: node.span.start].rstrip().endswith("not")
    return Fix(node.span, f"({text})" if negated else text)


def lower_comparison(low: Lowering, node: nodes.Compare) -> Typed:
    """The meaning of a comparison.

    Raises:
        Broken: it has none, or is settled by what it compares; the error has been reported.
    """
    scope = low.scope
    if len(node.operators) > 1:
        first, middle, last = (scope.shown(operand.span) for operand in node.operands[:3])
        hint = f"write `{first} {node.operators[0]} {middle} and {middle} {node.operators[1]} {last}`"
        raise scope.fail("SK312", node.span, "comparisons don't chain", hint, _unchained(low, node))
    left, right = low.every(low.lower, node.operands)
    operator = cast("Comparison", node.operators[0])
    term = Operation(operator, (left.term, right.term))
    if as_prose(left) is not None or as_prose(right) is not None:
        return Typed(term, _texts(low, node, left, right))
    sides = {id(operand): side for operand, side in zip(node.operands, (left, right), strict=True)}
    a, b = low.every(lambda operand: low.as_number(operand, sides[id(operand)]), node.operands)
    low.one_unit([(node.operands[0], a), (node.operands[1], b)])
    _must_be_open(low, node, operator, (left, a), (right, b))
    return Typed(term, Truth(max(a.level, b.level)))


def _texts(low: Lowering, node: nodes.Compare, left: Typed, right: Typed) -> Truth:
    scope = low.scope
    for typed, operand in ((left, node.operands[0]), (right, node.operands[1])):
        if as_prose(typed) is None:
            other = node.operands[1 if operand is node.operands[0] else 0]
            message = f"`{scope.shown(other.span)}` is a text, and a text is never a number"
            raise scope.fail("SK307", node.span, message, "compare a text with a text in quotes")
    if node.operators[0] not in ("==", "!="):
        raise scope.fail("SK307", node.span, "texts have no order", "compare them with `==` or `!=`")
    for typed, opposite, place in ((left, right, node.operands[1]), (right, left, node.operands[0])):
        prose = as_prose(typed)
        if prose is None or not prose.labels or not isinstance(opposite.term, TextConstant):
            continue
        if opposite.term.value not in prose.labels:
            _no_label(low, place, opposite.term.value, prose.labels)
    literal_ = isinstance(left.term, TextConstant) and isinstance(right.term, TextConstant)
    return Truth(Level.LITERAL if literal_ else Level.EXAMPLE)


def _no_label(low: Lowering, node: nodes.Expression, value: str, labels: tuple[str, ...]) -> NoReturn:
    from skillc.diagnostics.suggest import suggest

    near = suggest(value, labels)
    listed = ", ".join(f'"{label}"' for label in labels[:8])
    hint = f'did you mean "{near}"?' if near else f"there is {listed}"
    fix = Fix(node.span, f'"{near}"', safe=False) if near else None
    raise low.scope.fail("SK308", node.span, f'"{value}" is none of the declared labels', hint, fix)


def _must_be_open(
    low: Lowering,
    node: nodes.Compare,
    operator: Comparison,
    left: tuple[Typed, Quantity],
    right: tuple[Typed, Quantity],
) -> None:
    """A comparison that is settled before anything is measured says nothing; most often a `%` is missing."""
    if low.scope.generic:
        return
    a, b, first, second = left[0], right[0], left[1], right[1]
    outcome = first.range.compared(operator, second.range).definite
    if a.term == b.term:
        outcome = operator in ("<=", ">=", "==")
    if outcome is None:
        return
    hint, fix = _percent(low, node, operator, left, right)
    if hint is None:
        index = 1 if isinstance(a.term, Constant) else 0
        other, quantity = node.operands[index], (first, second)[index]
        hint = f"`{low.scope.shown(other.span)}` is in {_interval(quantity)}"
    word = "always" if outcome else "never"
    message = f"`{low.scope.shown(node.span)}` {word} holds"
    if low.scope.site is not None:
        meaning = show_term(Operation(operator, (a.term, b.term)))
        message = f"this {word} holds, for it means `{meaning}`"
        hint = hint if hint and hint.startswith("did") else None
    raise low.scope.fail("SK303", node.span, message, hint, fix)


def _percent(
    low: Lowering,
    node: nodes.Compare,
    operator: Comparison,
    left: tuple[Typed, Quantity],
    right: tuple[Typed, Quantity],
) -> tuple[str | None, Fix | None]:
    """`regressed(x) <= 5`: whether a number that stands for percent decided it."""
    for index, ((typed, _), (_, other)) in enumerate(((left, right), (right, left))):
        term = typed.term
        if not isinstance(term, Constant) or term.unit or not term.value or other.unit:
            continue
        meant_ = Interval.point(term.value / 100)
        sides = (meant_, other.range) if index == 0 else (other.range, meant_)
        operand = node.operands[index]
        # What was given for a parameter may have had its `%`.
        written_out = bare(operand) or (isinstance(operand, nodes.Reference) and abs(term.value) > 1)
        if (
            not written_out
            or sides[0].compared(operator, sides[1]).definite is not None
            or not other.range.holds(term.value / 100)
        ):
            continue
        fix = None
        if bare(operand):
            fix = Fix(Span(operand.span.end, operand.span.end), "%", safe=False)
        return f"did you mean `{decimal(term.value)}%`?", fix
    return None, None


def _interval(quantity: Quantity) -> str:
    low, high = quantity.range.bounds
    unit = f" {quantity.unit}" if quantity.unit else ""
    return f"{decimal(low) if low is not None else '...'} .. {decimal(high) if high is not None else '...'}{unit}"
