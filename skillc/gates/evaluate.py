"""Decide gates on partial evidence: the answer is definite as soon as no further result can change it.

Every number is an interval that holds its value under any completion of what is not measured yet, so a definite answer
is the one that full evidence gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import cast

import numpy as np

from skillc.errors import SkillcError
from skillc.gates.evidence import Evidence
from skillc.gates.functions import interval_of, is_on_batch, multiplicity
from skillc.gates.intervals import EVERYTHING, POSITIVE, UNIT, Interval, Truth, maximum, minimum
from skillc.gates.stages import Gate, reads_batch, without_batch
from skillc.gates.terms import (
    CallTerm,
    Comparison,
    FieldTerm,
    MeanTerm,
    MetricTerm,
    Operation,
    SkillState,
    StateTerm,
    Term,
)


@dataclass(frozen=True, slots=True)
class GateDecision:
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


def decide_all(gates: Sequence[Gate], evidence: Evidence, before: Mapping[str, Truth] = _NOTHING) -> GateDecision:
    """Decide all gates on what is known.

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
    return GateDecision(min((truth for _, truth in truths), default=Truth.TRUE), blame, truths)


def _decide_applicable(term: Term, evidence: Evidence) -> Truth:
    """As `decide`; where there is no batch, the rest of the gate may still hold, and nothing fails for the lack of it.

    The rest is the gate with each comparison that reads the batch taken for what its `and` or `or` does not depend on,
    so it never holds where the gate fails whatever a batch would say.
    """
    truth = decide(term, evidence)
    if truth is not Truth.UNKNOWN or evidence.batch.examples:
        return truth
    rest = without_batch(term)
    return Truth.TRUE if rest is None or decide(rest, evidence) is Truth.TRUE else Truth.UNKNOWN


def decide(term: Term, evidence: Evidence) -> Truth:
    """Decide one gate on what is known.

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
    return left.compared(cast(Comparison, term.operator), right)


def value(term: Term, evidence: Evidence) -> Interval:
    """The interval that a number of run level is known to be in.

    Raises:
        SkillcError: it calls a function that this version cannot measure.
        TypeError: the term is no number of run level.
    """
    return interval_of(term, lambda part: _quantity(part, evidence))


def _quantity(term: Term, evidence: Evidence) -> Interval:
    if isinstance(term, MeanTerm):
        column = evidence.validation.column(term.state, term.metric)
        return evidence.validation.mean(column.low, column.high)
    if not isinstance(term, CallTerm):
        raise TypeError(f"not a quantity of run level: {term}")
    evaluator = EVALUATORS.get(term.function)
    if evaluator is None:
        raise SkillcError(f"this version of skillc cannot measure `{term.function}` in a gate")
    return evaluator(term, evidence)


# ---- functions ------------------------------------------------------------------------------------


def _moved(call: CallTerm, evidence: Evidence) -> Interval:
    """Mean gain, or mean loss, of the candidate over the incumbent, example by example; with `by` the worst group's."""
    metric = call.arguments[0]
    assert isinstance(metric, MetricTerm)
    split = evidence.batch if is_on_batch(call) else evidence.validation
    after, before = split.column("candidate", metric.name), split.column("incumbent", metric.name)
    if call.function == "regressed":
        after, before = before, after
    low, high = np.maximum(0, after.low - before.high), np.maximum(0, after.high - before.low)
    by = call.option("by")
    if not isinstance(by, FieldTerm):
        return split.mean(low, high)
    groups = split.means(low, high, by.name) or [EVERYTHING]
    return maximum(groups) if call.function == "regressed" else minimum(groups)


def _worst(call: CallTerm, evidence: Evidence) -> Interval:
    """The mean of the group where it is lowest."""
    mean, by = call.arguments[0], call.option("by")
    assert isinstance(mean, MeanTerm)
    assert isinstance(by, FieldTerm)
    column = evidence.validation.column(mean.state, mean.metric)
    return minimum(evidence.validation.means(column.low, column.high, by.name) or [EVERYTHING])


def _claimed(call: CallTerm, evidence: Evidence) -> Interval:
    """The confidence in a claim, or the e-value for it."""
    claim = call.arguments[0]
    assert isinstance(claim, Operation)
    left, right = claim.operands
    if claim.operator in ("<", "<="):
        left, right = right, left
    assert isinstance(left, MeanTerm)
    assert isinstance(right, MeanTerm)
    measured = evidence.confidence if call.function == "confidence" else evidence.e_value
    return measured(left.state, right.state, left.metric, tries=multiplicity(call, evidence.planned))


def _change(call: CallTerm, evidence: Evidence) -> Interval:
    return _exactly(evidence.texts.change, EVERYTHING)


def _exactly(known: Fraction | int | None, otherwise: Interval) -> Interval:
    return otherwise if known is None else Interval.point(known)


def _of_skill(measure: Callable[[Evidence, SkillState], Interval]) -> Callable[[CallTerm, Evidence], Interval]:
    """The evaluator of a function whose one argument is a skill."""

    def evaluator(call: CallTerm, evidence: Evidence) -> Interval:
        (argument,) = call.arguments
        assert isinstance(argument, StateTerm)
        return measure(evidence, argument.state)

    return evaluator


EVALUATORS: Mapping[str, Callable[[CallTerm, Evidence], Interval]] = MappingProxyType(
    {
        "improved": _moved,
        "regressed": _moved,
        "worst": _worst,
        "confidence": _claimed,
        "e_value": _claimed,
        "change": _change,
        "tokens": _of_skill(lambda evidence, state: _exactly(evidence.texts.tokens.get(state), POSITIVE)),
        "overlap": _of_skill(lambda evidence, state: _exactly(evidence.texts.overlap.get(state), UNIT)),
        "cost": _of_skill(lambda evidence, state: evidence.validation.cost(state)),
        "latency": _of_skill(lambda evidence, state: evidence.validation.latency(state)),
    }
)
"""By function of `gates/functions.py`; one without an evaluator is checked, but not run by this version."""
