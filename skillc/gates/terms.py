"""Terms: expressions with the program's functions expanded, without positions and comments.

The checker makes terms and the plan stores them. Metrics evaluate terms of one rollout, gates evaluate terms of a run.
Constants are exact and in base units: `5%` is 1/20, `90 min` is 5400 s, `2k tokens` is 2000 tokens, `$3` is 3 `$`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from types import MappingProxyType
from typing import Literal, TypeVar

from skillc.dataclass import dataclass
from skillc.gates.units import decimal, format_quantity

SkillState = Literal["candidate", "incumbent", "best", "initial"]
Operator = Literal["+", "-", "*", "/", "negate", "<", "<=", ">", ">=", "==", "!=", "and", "or", "not"]
Comparison = Literal["<", "<=", ">", ">=", "==", "!="]
Result = TypeVar("Result")

MIRRORED: Mapping[str, Comparison] = MappingProxyType(
    {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!="}
)
"""The comparison with its sides exchanged."""
OPPOSITE: Mapping[str, Comparison] = MappingProxyType(
    {">": "<=", "<": ">=", ">=": "<", "<=": ">", "==": "!=", "!=": "=="}
)
"""The negated comparison."""


@dataclass(frozen=True, slots=True)
class Constant:
    """An exact number in a base unit; a plain number and a share have the empty unit."""

    value: Fraction
    unit: str = ""
    kind: Literal["constant"] = "constant"


@dataclass(frozen=True, slots=True)
class TextConstant:
    """A text, such as a label or the `module:function` of `python`."""

    value: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class WordTerm:
    """A word of the language as an argument: `batch` in `on = batch`, `none`."""

    word: str
    kind: Literal["word"] = "word"


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """A field of task or data: the answer of the model for an output, else the value in the example."""

    name: str
    kind: Literal["field"] = "field"


@dataclass(frozen=True, slots=True)
class MetricTerm:
    """A metric by name: its value on one rollout, or, as an argument of a gate's function, the metric itself."""

    name: str
    kind: Literal["metric"] = "metric"


@dataclass(frozen=True, slots=True)
class StateTerm:
    """A skill as an argument: `tokens(candidate)`."""

    state: SkillState
    kind: Literal["state"] = "state"


@dataclass(frozen=True, slots=True)
class MeanTerm:
    """`candidate.correct`: the mean of a metric for a skill, on the split that the gate is decided on."""

    state: SkillState
    metric: str
    kind: Literal["mean"] = "mean"


@dataclass(frozen=True, slots=True)
class CallTerm:
    """A call of a builtin: positional arguments, then named ones as written or by default."""

    function: str
    arguments: tuple[Term, ...] = ()
    options: tuple[tuple[str, Term], ...] = ()
    kind: Literal["call"] = "call"

    def option(self, name: str) -> Term | None:
        """A named argument; None if it was not given."""
        return dict(self.options).get(name)


@dataclass(frozen=True, slots=True)
class ListTerm:
    """A list of terms."""

    items: tuple[Term, ...]
    kind: Literal["list"] = "list"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator: two operands for arithmetic and comparisons, one for `negate` and `not`, two or more otherwise."""

    operator: Operator
    operands: tuple[Term, ...]
    kind: Literal["operation"] = "operation"


Term = (
    Constant | TextConstant | WordTerm | FieldTerm | MetricTerm | StateTerm | MeanTerm | CallTerm | ListTerm | Operation
)


_INVERSES: dict[Operator, tuple[Operator, Operator]] = {
    "+": ("+", "-"),
    "-": ("+", "-"),
    "*": ("*", "/"),
    "/": ("*", "/"),
}


def balance(term: Term) -> Term:
    """Rebuild a long chain such as `a + b - c` as a balanced tree: 3,000 operands nest 12 deep, not 3,000.

    Numbers are exact, so reordering additions or multiplications does not change the result. Subtrahends are added and
    divisors multiplied first, so that no new divisor appears.
    """
    chain: list[Operation] = []
    while isinstance(term, Operation) and term.operator in _INVERSES:
        chain.append(term)
        term = term.operands[0]
    balanced = term
    for (forward, back), group in groupby(reversed(chain), key=lambda each: _INVERSES[each.operator]):
        same = list(group)
        balanced = _join(forward, [balanced, *(each.operands[1] for each in same if each.operator == forward)])
        if taken := [each.operands[1] for each in same if each.operator == back]:
            balanced = Operation(back, (balanced, _join(forward, taken)))
    return balanced


def _join(operator: Operator, operands: Sequence[Term]) -> Term:
    joined = list(operands)
    while len(joined) > 1:
        pairs = [Operation(operator, (a, b)) for a, b in zip(joined[::2], joined[1::2], strict=False)]
        joined = pairs + joined[len(joined) - len(joined) % 2 :]
    return joined[0]


# ---- structure ------------------------------------------------------------------------------------


def parts(term: Term) -> tuple[Term, ...]:
    """The terms that a term is made of."""
    match term:
        case Operation(operands=operands):
            return operands
        case ListTerm(items):
            return items
        case CallTerm(arguments=arguments, options=options):
            return (*arguments, *(value for _, value in options))
    return ()


def with_parts(term: Term, new: Sequence[Term]) -> Term:
    """Replace the parts of a term, in the order of `parts`."""
    match term:
        case Operation(operator):
            return Operation(operator, tuple(new))
        case ListTerm():
            return ListTerm(tuple(new))
        case CallTerm(function, arguments, options):
            named = zip((name for name, _ in options), new[len(arguments) :], strict=True)
            return CallTerm(function, tuple(new[: len(arguments)]), tuple(named))
    return term


def fold(term: Term, combine: Callable[[Term, list[Result]], Result]) -> Result:
    """Fold a term bottom-up: combine each part with the results of its parts. A shared part is combined once."""
    known: dict[int, Result] = {}
    waiting = [term]
    while waiting:
        each = waiting[-1]
        inner = parts(each)
        if unknown := [part for part in inner if id(part) not in known]:
            waiting += unknown
            continue
        waiting.pop()
        known[id(each)] = combine(each, [known[id(part)] for part in inner])
    return known[id(term)]


def rebuild(term: Term, change: Callable[[Term], Term]) -> Term:
    """Rewrite each part of a term bottom-up."""
    return fold(term, lambda part, inner: change(with_parts(part, inner)))


def walk(term: Term) -> Iterator[Term]:
    """A term and all its parts, in the order of the text."""
    waiting = [term]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(parts(each))


def calls(term: Term) -> Iterator[CallTerm]:
    """All calls in a term."""
    return (part for part in walk(term) if isinstance(part, CallTerm))


def metrics_read(term: Term) -> frozenset[str]:
    """The names of the metrics that a term reads, on one rollout or as the mean of a skill."""
    named = (part for part in walk(term) if isinstance(part, MetricTerm | MeanTerm))
    return frozenset(part.name if isinstance(part, MetricTerm) else part.metric for part in named)


def conjuncts(term: Term) -> Iterator[Term]:
    """Return the operands of a conjunction, flattened; any other condition is its only conjunct."""
    if isinstance(term, Operation) and term.operator == "and":
        for part in term.operands:
            yield from conjuncts(part)
    else:
        yield term


def sides(term: Term) -> tuple[Term, Term] | None:
    """Return the greater side of an inequality, then the smaller; None for any other term."""
    match term:
        case Operation(">" | ">=", (above, below)) | Operation("<" | "<=", (below, above)):
            return above, below
    return None


def points_above(above: Term, below: Term) -> Fraction | None:
    """Return `c` if a comparison is `candidate.m > incumbent.m + c`; None for any other."""
    if not (isinstance(above, MeanTerm) and above.state == "candidate"):
        return None
    match below:
        case MeanTerm(state, metric):
            return Fraction(0) if state != "candidate" and metric == above.metric else None
        case Operation("+" | "-" as operator, (MeanTerm(_, metric), Constant(points))) if metric == above.metric:
            return points if operator == "+" else -points
    return None


def size_and_depth(term: Term) -> tuple[int, int]:
    """Return the number of parts, with shared parts counted each time, and the depth (1 without parts)."""
    return fold(
        term, lambda _, inner: (1 + sum(count for count, _ in inner), 1 + max((depth for _, depth in inner), default=0))
    )


# ---- text -----------------------------------------------------------------------------------------

_BINDING = {"or": 1, "and": 2, "not": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4}
_BINDING |= {"+": 5, "-": 5, "*": 6, "/": 6, "negate": 7}


def show_term(term: Term, outer: int = 0) -> str:
    """Write a term in canonical program syntax, in brackets if the surrounding operator binds tighter."""
    match term:
        case Constant(value, unit):
            return format_quantity(value, unit)
        case TextConstant(text):
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case WordTerm(text) | FieldTerm(text) | MetricTerm(text) | StateTerm(text):
            return text
        case MeanTerm(state, metric):
            return f"{state}.{metric}"
        case ListTerm(items):
            return f"[{', '.join(map(show_term, items))}]"
        case CallTerm(function, arguments, options):
            given = [*map(show_term, arguments), *(f"{name} = {_share(value, 0)}" for name, value in options)]
            return f"{function}({', '.join(given)})"
    return _operation(term, outer)


def _share(term: Term, outer: int) -> str:
    """Show a share in percent if it is added or compared; a factor stays a decimal."""
    if isinstance(term, Constant) and not term.unit and 0 < abs(term.value) < 1 and " / " not in decimal(term.value):
        return f"{decimal(term.value * 100)}%"
    return show_term(term, outer)


def _operation(term: Operation, outer: int) -> str:
    binding = _BINDING[term.operator]
    if term.operator in ("negate", "not"):
        sign = "-" if term.operator == "negate" else "not "
        text = sign + show_term(term.operands[0], binding)
    else:
        # The right side of a left-associative operator needs brackets at equal binding.
        each = show_term if term.operator in ("*", "/") else _share
        text = f" {term.operator} ".join(each(operand, binding + (i > 0)) for i, operand in enumerate(term.operands))
    return f"({text})" if binding < outer else text
