"""Which evidence the gates of a plan read, and which of them apply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeVar

from skillc.gates.functions import RUN_FUNCTIONS, is_arithmetic, is_on_batch
from skillc.gates.terms import CallTerm, FieldTerm, MeanTerm, Operation, Term, calls, parts

GateStage = Literal["text", "batch", "validation"]
_STAGES: tuple[GateStage, ...] = ("text", "batch", "validation")
"""From the cheapest evidence to the dearest."""


class Gate(Protocol):
    """A gate of a plan, as far as gates are read here."""

    @property
    def name(self) -> str:
        """How it is reported."""

    @property
    def term(self) -> Term:
        """The condition."""

    @property
    def for_(self) -> str | None:
        """`slow` for one that only slow updates must pass."""


_Gate = TypeVar("_Gate", bound=Gate)


def stage_of(term: Term) -> GateStage:
    """The cheapest evidence that can decide a term; one of several parts takes the dearest of theirs."""
    if isinstance(term, MeanTerm):
        return "validation"
    if isinstance(term, CallTerm) and not is_arithmetic(term):
        if term.function in RUN_FUNCTIONS and RUN_FUNCTIONS[term.function].reads == "text":
            return "text"
        return "batch" if is_on_batch(term) else "validation"
    return max(map(stage_of, parts(term)), key=_STAGES.index, default="text")


def reads_batch(term: Term) -> bool:
    """Whether a term reads the training batch anywhere; a gate that reads validation too is decided there."""
    return any(map(is_on_batch, calls(term)))


def without_batch(term: Term) -> Term | None:
    """A condition without the comparisons that read the batch; None where nothing is left."""
    if isinstance(term, Operation) and term.operator in ("and", "or", "not"):
        rest = [part for operand in term.operands if (part := without_batch(operand)) is not None]
        if len(rest) > 1 or (rest and term.operator == "not"):
            return Operation(term.operator, tuple(rest))
        return rest[0] if rest else None
    return None if reads_batch(term) else term


def group_fields(term: Term) -> tuple[str, ...]:
    """The fields that `by = field` names in a term."""
    return tuple(dict.fromkeys(by.name for call in calls(term) if isinstance(by := call.option("by"), FieldTerm)))


def gates_for(gates: Sequence[_Gate], *, slow: bool) -> tuple[_Gate, ...]:
    """The gates that a candidate must pass: for a slow update those marked `for slow`, where there are any."""
    own = tuple(gate for gate in gates if gate.for_ == "slow")
    return own if slow and own else tuple(gate for gate in gates if gate.for_ is None)


def grouped_by(gates: Iterable[Gate]) -> tuple[str, ...]:
    """The fields that gates look at group by group."""
    return tuple(dict.fromkeys(field for gate in gates for field in group_fields(gate.term)))
