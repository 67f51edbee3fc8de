"""Gates over partial evidence: the answer is given as soon as no further result can change it (ENGINE section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from skillc.errors import SkillcError
from skillc.gates.evidence import Evidence, SplitEvidence
from skillc.gates.intervals import EVERYTHING, Interval, Truth, greatest, least
from skillc.gates.stages import reads_batch
from skillc.gates.terms import (
    CallTerm,
    Constant,
    FieldTerm,
    MeanTerm,
    MetricTerm,
    Operation,
    State,
    StateTerm,
    Term,
    WordTerm,
)
from skillc.plan.schema import GatePlan


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer of several gates together.

    Attributes:
        truth: their AND.
        blame: the first gate in declared order that is FALSE.
        truths: each gate's own answer.
    """

    truth: Truth
    blame: str | None
    truths: tuple[tuple[str, Truth], ...]


_NOTHING: Mapping[str, Truth] = MappingProxyType({})


def decide_all(gates: Sequence[GatePlan], evidence: Evidence, before: Mapping[str, Truth] = _NOTHING) -> Decided:
    """The answer of all gates on what is known.

    Args:
        gates: in declared order.
        evidence: what is known.
        before: the definite answers on less evidence, which stay whatever else becomes known.
    """
    truths = tuple(
        (gate.name, before[gate.name] if gate.name in before else _decide_applicable(gate.term, evidence))
        for gate in gates
    )
    blame = next((name for name, truth in truths if truth is Truth.FALSE), None)
    return Decided(min((truth for _, truth in truths), default=Truth.TRUE), blame, truths)


def _decide_applicable(term: Term, evidence: Evidence) -> Truth:
    """As `decide`; where there is no batch, the rest of the gate may still hold, and nothing fails for the lack of it.

    The rest is the gate with each comparison that reads the batch taken for what its `and` or `or` does not depend on,
    so it never holds where the gate fails whatever a batch would say.
    """
    truth = decide(term, evidence)
    if truth is not Truth.UNKNOWN or evidence.batch.examples:
        return truth
    rest = _without_batch(term)
    return Truth.TRUE if rest is None or decide(rest, evidence) is Truth.TRUE else Truth.UNKNOWN


def _without_batch(term: Term) -> Term | None:
    """A condition without the comparisons that read the batch; None where nothing is left."""
    if isinstance(term, Operation) and term.operator in ("and", "or", "not"):
        rest = [part for operand in term.operands if (part := _without_batch(operand)) is not None]
        if len(rest) > 1 or (rest and term.operator == "not"):
            return Operation(term.operator, tuple(rest))
        return rest[0] if rest else None
    return None if reads_batch(term) else term


def decide(term: Term, evidence: Evidence) -> Truth:
    """The answer of one gate on what is known.

    Raises:
        TypeError: the term is no condition; the checker lets none such through.
    """
    if not isinstance(term, Operation):
        raise TypeError(f"not a condition: {term}")
    if term.operator in ("and", "or"):
        truths = [decide(operand, evidence) for operand in term.operands]
        return min(truths) if term.operator == "and" else max(truths)
    if term.operator == "not":
        return decide(term.operands[0], evidence).negated()
    if not evidence.batch.examples and reads_batch(term):
        return Truth.UNKNOWN
    left, right = (value(operand, evidence) for operand in term.operands)
    answers: dict[str, Callable[[], Truth]] = {
        ">": lambda: left.above(right),
        ">=": lambda: left.at_least(right),
        "<": lambda: right.above(left),
        "<=": lambda: right.at_least(left),
        "==": lambda: left.equals(right),
        "!=": lambda: left.equals(right).negated(),
    }
    return answers[term.operator]()


def value(term: Term, evidence: Evidence) -> Interval:
    """What is known of a number of run level.

    Raises:
        SkillcError: a function that this version cannot measure.
        TypeError: the term is no number of run level.
    """
    if isinstance(term, Constant):
        return Interval.point(term.value)
    if isinstance(term, MeanTerm):
        return _mean(evidence.validation, term)
    if isinstance(term, Operation):
        return _operation(term, evidence)
    if isinstance(term, CallTerm):
        return _call(term, evidence)
    raise TypeError(f"not a quantity of run level: {term}")


def _mean(split: SplitEvidence, term: MeanTerm) -> Interval:
    column = split.column(term.state, term.metric)
    return split.mean(column.low, column.high)


def _operation(term: Operation, evidence: Evidence) -> Interval:
    parts = [value(operand, evidence) for operand in term.operands]
    if term.operator == "negate":
        return -parts[0]
    left, right = parts
    if term.operator == "+":
        return left + right
    if term.operator == "-":
        return left - right
    if term.operator == "*":
        return left * right
    if term.operator == "/":
        return left / right
    raise TypeError(f"not a number: {term}")


def _call(term: CallTerm, evidence: Evidence) -> Interval:
    if term.function in ("min", "max", "clamp"):
        parts = [value(argument, evidence) for argument in term.arguments]
        if term.function == "clamp":
            return greatest([parts[1], least([parts[0], parts[2]])])
        return least(parts) if term.function == "min" else greatest(parts)
    if term.function in ("improved", "regressed"):
        return _moved(term, evidence)
    if term.function == "worst":
        return _worst(term, evidence)
    if term.function in ("confidence", "e_value"):
        return _claimed(term, evidence)
    if term.function == "change":
        return EVERYTHING if evidence.texts.change is None else Interval.point(evidence.texts.change)
    if term.function in ("tokens", "overlap", "cost", "latency"):
        (argument,) = term.arguments
        if isinstance(argument, StateTerm):
            return _of_skill(term.function, argument.state, evidence)
    raise SkillcError(f"this version of skillc cannot measure `{term.function}` in a gate")


def _of_skill(function: str, state: State, evidence: Evidence) -> Interval:
    """A quantity of one skill that is no metric."""
    if function == "cost":
        return evidence.validation.cost(state)
    if function == "latency":
        return evidence.validation.latency(state)
    if function == "tokens":
        count = evidence.texts.tokens.get(state)
        return Interval(Fraction(0), math.inf) if count is None else Interval.point(count)
    share = evidence.texts.overlap.get(state)
    return Interval(Fraction(0), Fraction(1)) if share is None else Interval.point(share)


def _moved(term: CallTerm, evidence: Evidence) -> Interval:
    """Mean gain, or mean loss, of the candidate over the incumbent, example by example; with `by` the worst group's."""
    metric = term.arguments[0]
    assert isinstance(metric, MetricTerm)
    split = evidence.batch if term.option("on") == WordTerm("batch") else evidence.validation
    after, before = split.column("candidate", metric.name), split.column("incumbent", metric.name)
    if term.function == "regressed":
        after, before = before, after
    low, high = np.maximum(0, after.low - before.high), np.maximum(0, after.high - before.low)
    by = term.option("by")
    if not isinstance(by, FieldTerm):
        return split.mean(low, high)
    groups = split.means(low, high, by.name) or [EVERYTHING]
    return greatest(groups) if term.function == "regressed" else least(groups)


def _worst(term: CallTerm, evidence: Evidence) -> Interval:
    """The mean of the group where it is lowest."""
    mean, by = term.arguments[0], term.option("by")
    assert isinstance(mean, MeanTerm)
    assert isinstance(by, FieldTerm)
    column = evidence.validation.column(mean.state, mean.metric)
    return least(evidence.validation.means(column.low, column.high, by.name) or [EVERYTHING])


def _claimed(term: CallTerm, evidence: Evidence) -> Interval:
    """The confidence in a claim, or the e-value for it."""
    claim = term.arguments[0]
    assert isinstance(claim, Operation)
    left, right = claim.operands
    if claim.operator in ("<", "<="):
        left, right = right, left
    assert isinstance(left, MeanTerm)
    assert isinstance(right, MeanTerm)
    tries = evidence.planned if term.option("over") == WordTerm("run") else 1
    measured = evidence.confidence if term.function == "confidence" else evidence.e_value
    return measured(left.state, right.state, left.metric, tries=tries)
