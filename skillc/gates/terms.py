"""What an expression means: typed, named, with every function of the program expanded. No places, no comments.

The checker makes terms, the plan stores them, metrics evaluate those of one rollout and gates those of a run.
Constants are exact and in base units: `5%` is 1/20, `90 min` is 5400 s, `2k tokens` is 2000 tokens, `$3` is 3 `$`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Literal

State = Literal["candidate", "incumbent", "best", "initial"]
Operator = Literal["+", "-", "*", "/", "negate", "<", "<=", ">", ">=", "==", "!=", "and", "or", "not"]


@dataclass(frozen=True, slots=True)
class Constant:
    """An exact number in a base unit; the unit is empty for a plain number and for a share."""

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
    """A field of task or data. An output stands for what the model answered, any other for what the example holds."""

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

    state: State
    kind: Literal["state"] = "state"


@dataclass(frozen=True, slots=True)
class MeanTerm:
    """`candidate.correct`: the mean of a metric for a skill, on the split that the gate is decided on."""

    state: State
    metric: str
    kind: Literal["mean"] = "mean"


@dataclass(frozen=True, slots=True)
class CallTerm:
    """A builtin or registered function: positional arguments, then the named ones that were given or defaulted."""

    function: str
    arguments: tuple[Term, ...] = ()
    options: tuple[tuple[str, Term], ...] = ()
    kind: Literal["call"] = "call"

    def option(self, name: str) -> Term | None:
        """A named argument, or None where it was not given."""
        return dict(self.options).get(name)


@dataclass(frozen=True, slots=True)
class ListTerm:
    """A list of terms."""

    items: tuple[Term, ...]
    kind: Literal["list"] = "list"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator: two operands for arithmetic and comparisons, one for `negate` and `not`, two or more else."""

    operator: Operator
    operands: tuple[Term, ...]
    kind: Literal["operation"] = "operation"


Term = (
    Constant | TextConstant | WordTerm | FieldTerm | MetricTerm | StateTerm | MeanTerm | CallTerm | ListTerm | Operation
)


_OPPOSITE: dict[Operator, tuple[Operator, Operator]] = {
    "+": ("+", "-"),
    "-": ("+", "-"),
    "*": ("*", "/"),
    "/": ("*", "/"),
}


def shallow(term: Term) -> Term:
    """An equal term for a long chain such as `a + b - c`, with operands joined in pairs: 3,000 nest 12 deep, not 3,000.

    Numbers are exact, so the order of additions, or of multiplications, changes no result. What is subtracted is added
    up before it is subtracted, and divisors are multiplied: no divisor occurs that was none before.
    """
    chain: list[Operation] = []
    while isinstance(term, Operation) and term.operator in _OPPOSITE:
        chain.append(term)
        term = term.operands[0]
    made = term
    for (forward, back), group in groupby(reversed(chain), key=lambda each: _OPPOSITE[each.operator]):
        same = list(group)
        made = _joined(forward, [made, *(each.operands[1] for each in same if each.operator == forward)])
        if taken := [each.operands[1] for each in same if each.operator == back]:
            made = Operation(back, (made, _joined(forward, taken)))
    return made


def _joined(operator: Operator, operands: Sequence[Term]) -> Term:
    """One or more operands, joined in a tree as flat as it goes."""
    joined = list(operands)
    while len(joined) > 1:
        pairs = [Operation(operator, (a, b)) for a, b in zip(joined[::2], joined[1::2], strict=False)]
        joined = pairs + joined[len(joined) - len(joined) % 2 :]
    return joined[0]
