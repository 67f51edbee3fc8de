"""Terms as text: one canonical line, the same for the same meaning."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from skillc.gates.terms import (
    CallTerm,
    Constant,
    FieldTerm,
    ListTerm,
    MeanTerm,
    MetricTerm,
    Operation,
    StateTerm,
    Term,
    TextConstant,
    WordTerm,
)
from skillc.gates.units import decimal, written

_BINDING = {"or": 1, "and": 2, "not": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4}
_BINDING |= {"+": 5, "-": 5, "*": 6, "/": 6, "negate": 7}


def show_term(term: Term) -> str:
    """The term as a program would say it."""
    return _show(term, 0)


def parts(term: Term) -> tuple[Term, ...]:
    """The terms that a term is made of."""
    if isinstance(term, Operation):
        return term.operands
    if isinstance(term, ListTerm):
        return term.items
    if isinstance(term, CallTerm):
        return (*term.arguments, *(value for _, value in term.options))
    return ()


def walk(term: Term) -> Iterator[Term]:
    """A term and all that it is made of."""
    waiting = [term]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(parts(each))


def metrics_read(term: Term) -> frozenset[str]:
    """The names of the metrics that a term reads: on one rollout, or as the mean of a skill."""
    named = (part for part in walk(term) if isinstance(part, MetricTerm | MeanTerm))
    return frozenset(part.name if isinstance(part, MetricTerm) else part.metric for part in named)


def size(term: Term) -> int:
    """How many terms a term is made of, counting those that occur twice twice."""
    return extent(term)[0]


def extent(term: Term) -> tuple[int, int]:
    """The size of a term, and how deep it is: 1 for one without parts. Terms share parts, so each is measured once."""
    known: dict[int, tuple[int, int]] = {}
    waiting = [term]
    while waiting:
        each = waiting[-1]
        inner = parts(each)
        if unknown := [part for part in inner if id(part) not in known]:
            waiting += unknown
            continue
        waiting.pop()
        found = [known[id(part)] for part in inner]
        known[id(each)] = 1 + sum(count for count, _ in found), 1 + max((depth for _, depth in found), default=0)
    return known[id(term)]


def _show(term: Term, outer: int) -> str:
    if isinstance(term, Constant):
        return written(term.value, term.unit)
    if isinstance(term, TextConstant):
        return '"' + term.value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(term, WordTerm):
        return term.word
    if isinstance(term, FieldTerm | MetricTerm):
        return term.name
    if isinstance(term, StateTerm):
        return term.state
    if isinstance(term, MeanTerm):
        return f"{term.state}.{term.metric}"
    if isinstance(term, ListTerm):
        return f"[{', '.join(_show(item, 0) for item in term.items)}]"
    if isinstance(term, CallTerm):
        given = [_show(argument, 0) for argument in term.arguments]
        given += [f"{name} = {_share(value, 0)}" for name, value in term.options]
        return f"{term.function}({', '.join(given)})"
    return _operation(term, outer)


def _share(term: Term, outer: int) -> str:
    """A number that is added to, or compared with, shares reads best in percent; one that scales does not."""
    if isinstance(term, Constant) and not term.unit and 0 < abs(term.value) < 1 and _in_percent(term.value):
        return f"{decimal(term.value * 100)}%"
    return _show(term, outer)


def _in_percent(value: Fraction) -> bool:
    return " / " not in decimal(value)


def _operation(term: Operation, outer: int) -> str:
    binding = _BINDING[term.operator]
    if term.operator in ("negate", "not"):
        sign = "-" if term.operator == "negate" else "not "
        text = sign + _show(term.operands[0], binding)
    else:
        # The right side of a left-associative operator needs brackets at equal binding.
        each = _show if term.operator in ("*", "/") else _share
        parts = [each(operand, binding + (i > 0)) for i, operand in enumerate(term.operands)]
        text = f" {term.operator} ".join(parts)
    return f"({text})" if binding < outer else text
