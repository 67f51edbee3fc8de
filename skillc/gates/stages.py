"""What a gate must see before it can be decided: only the texts, the training batch, or the validation split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from skillc.gates.show import parts, walk
from skillc.gates.terms import CallTerm, FieldTerm, MeanTerm, Operation, Term, WordTerm

if TYPE_CHECKING:
    from skillc.plan.schema import GatePlan, Plan

Stage = Literal["text", "batch", "validation"]

_DEARNESS: dict[Stage, int] = {"text": 0, "batch": 1, "validation": 2}
_ON_TEXT = frozenset({"tokens", "change", "overlap"})
_COMPOSED = frozenset({"min", "max", "clamp"})


def stage_of(term: Term) -> Stage:
    """The cheapest evidence that can decide a term of a gate; a mixed term takes the dearest of its parts."""
    stages = [_own_stage(part) for part in _evidence(term)]
    return max(stages, key=_DEARNESS.__getitem__, default="text")


def calls(term: Term) -> Iterator[CallTerm]:
    """All calls in a term."""
    return (part for part in walk(term) if isinstance(part, CallTerm))


def reads_batch(term: Term) -> bool:
    """Whether a term asks for the training batch anywhere; a gate that asks for validation too is decided there."""
    return any(call.option("on") == WordTerm("batch") for call in calls(term))


def fields_of(term: Term) -> tuple[str, ...]:
    """The fields that `by = field` names in a term."""
    return tuple(dict.fromkeys(by.name for call in calls(term) if isinstance(by := call.option("by"), FieldTerm)))


def gates_for(plan: Plan, *, slow: bool) -> tuple[GatePlan, ...]:
    """The gates that a candidate must pass: for a slow update those marked `for slow`, where there are any."""
    own = tuple(gate for gate in plan.gates if gate.for_ == "slow")
    if slow and own:
        return own
    return tuple(gate for gate in plan.gates if gate.for_ is None)


def grouped_by(plan: Plan) -> tuple[str, ...]:
    """The fields that the gates of a plan look at group by group."""
    return tuple(dict.fromkeys(field for gate in plan.gates for field in fields_of(gate.term)))


def conjuncts(term: Term) -> Iterator[Term]:
    """The terms that all have to hold for a term to hold."""
    if isinstance(term, Operation) and term.operator == "and":
        for part in term.operands:
            yield from conjuncts(part)
    else:
        yield term


def _evidence(term: Term) -> Iterator[Term]:
    """The parts that need evidence of their own: means, and calls that are more than arithmetic."""
    if isinstance(term, MeanTerm) or (isinstance(term, CallTerm) and term.function not in _COMPOSED):
        yield term
        return
    for part in parts(term):
        yield from _evidence(part)


def _own_stage(term: Term) -> Stage:
    if isinstance(term, CallTerm):
        if term.function in _ON_TEXT:
            return "text"
        if term.option("on") == WordTerm("batch"):
            return "batch"
    return "validation"
