"""Which evidence the gates of a plan read, and which gates apply to a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar

from skillc.gates.functions import RUN_FUNCTIONS, is_arithmetic, is_on_batch
from skillc.gates.terms import CallTerm, FieldTerm, MeanTerm, Operation, Term, calls, parts

GateStage = Literal["text", "batch", "validation"]
_STAGES: tuple[GateStage, ...] = ("text", "batch", "validation")
"""From the cheapest evidence to the most expensive."""
SMALLEST_GROUP = 20
"""Groups of `by = field` with fewer examples are pooled as `OTHER`."""
OTHER = "other"


class Gate(Protocol):
    """A gate of a plan."""

    @property
    def name(self) -> str:
        """Its name in reports."""

    @property
    def term(self) -> Term:
        """Its condition."""

    @property
    def for_(self) -> str | None:
        """`slow` if only slow updates must pass it."""


_Gate = TypeVar("_Gate", bound=Gate)


def stage_of(term: Term) -> GateStage:
    """Return the cheapest evidence that can decide a term: the most expensive that any of its parts needs."""
    if isinstance(term, MeanTerm):
        return "validation"
    if isinstance(term, CallTerm) and not is_arithmetic(term):
        if term.function in RUN_FUNCTIONS and RUN_FUNCTIONS[term.function].reads == "text":
            return "text"
        return "batch" if is_on_batch(term) else "validation"
    return max(map(stage_of, parts(term)), key=_STAGES.index, default="text")


def reads_batch(term: Term) -> bool:
    """Whether any part of a term reads the training batch."""
    return any(map(is_on_batch, calls(term)))


def without_batch(term: Term) -> Term | None:
    """Remove the comparisons that read the batch from a condition; None if nothing remains."""
    if isinstance(term, Operation) and term.operator in ("and", "or", "not"):
        rest = [part for operand in term.operands if (part := without_batch(operand)) is not None]
        if len(rest) > 1 or (rest and term.operator == "not"):
            return Operation(term.operator, tuple(rest))
        return rest[0] if rest else None
    return None if reads_batch(term) else term


def group_fields(*terms: Term) -> tuple[str, ...]:
    """The fields that `by = field` names in some terms."""
    every = (call.option("by") for term in terms for call in calls(term))
    return tuple(dict.fromkeys(by.name for by in every if isinstance(by, FieldTerm)))


def gates_for(gates: Sequence[_Gate], *, slow: bool) -> tuple[_Gate, ...]:
    """The gates that a candidate must pass: for a slow update those marked `for slow`, if any."""
    own = tuple(gate for gate in gates if gate.for_ == "slow")
    return own if slow and own else tuple(gate for gate in gates if gate.for_ is None)
