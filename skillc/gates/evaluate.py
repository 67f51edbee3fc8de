"""Decide gates on partial evidence: the answer is definite as soon as no further result can change it.

Every number is an interval that contains its value under any completion of the missing measurements, so a definite
answer equals the answer on full evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import cast

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.gates.evidence import Evidence, SplitEvidence
from skillc.gates.functions import RUN_FUNCTIONS, interval_of, is_on_batch, multiplicity
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
    sides,
)


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The answer of several gates together.

    Attributes:
        truth: their conjunction.
        blame: the first gate in declared order that is FALSE.
        truths: the answer of each gate.
    """

    truth: Truth
    blame: str | None
    truths: tuple[tuple[str, Truth], ...]


def decide_all(
    gates: Sequence[Gate], evidence: Evidence, before: Mapping[str, Truth] = MappingProxyType({})
) -> GateDecision:
    """Decide gates in declared order. `before` contains earlier definite answers, which more evidence cannot change."""
    truths = tuple(
        (gate.name, before[gate.name] if gate.name in before else _decide_applicable(gate.term, evidence))
        for gate in gates
    )
    blame = next((name for name, truth in truths if truth is Truth.FALSE), None)
    return GateDecision(min((truth for _, truth in truths), default=Truth.TRUE), blame, truths)


def _decide_applicable(term: Term, evidence: Evidence) -> Truth:
    """Decide a gate. Without a batch, ignore the comparisons that read the batch, and never reject.

    The remaining condition never holds where the gate would fail for every batch.
    """
    truth = decide(term, evidence)
    if truth is not Truth.UNKNOWN or evidence.batch.examples:
        return truth
    rest = without_batch(term)
    return Truth.TRUE if rest is None or decide(rest, evidence) is Truth.TRUE else Truth.UNKNOWN


def decide(term: Term, evidence: Evidence) -> Truth:
    """Decide one condition.

    Raises:
        TypeError: the term is not a condition. The checker rules this out.
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
    """The interval that contains a number of run level.

    Raises:
        SkillcError: the term calls a function that this version cannot measure.
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

_Evaluator = Callable[[CallTerm, Evidence], Interval]


def _gain_or_loss(call: CallTerm, evidence: Evidence) -> Interval:
    """Return the mean per-example gain or loss of the candidate over the incumbent; with `by`, of the worst group."""
    import numpy as np

    metric = call.arguments[0]
    assert isinstance(metric, MetricTerm)
    split = evidence.batch if is_on_batch(call) else evidence.validation
    after, before = split.column("candidate", metric.name), split.column("incumbent", metric.name)
    loss = RUN_FUNCTIONS[call.function].direction < 0
    if loss:
        after, before = before, after
    low, high = np.maximum(0, after.low - before.high), np.maximum(0, after.high - before.low)
    by = call.option("by")
    if not isinstance(by, FieldTerm):
        return split.mean(low, high)
    groups = split.means(low, high, by.name) or [EVERYTHING]
    return maximum(groups) if loss else minimum(groups)


def _worst(call: CallTerm, evidence: Evidence) -> Interval:
    mean, by = call.arguments[0], call.option("by")
    assert isinstance(mean, MeanTerm)
    assert isinstance(by, FieldTerm)
    column = evidence.validation.column(mean.state, mean.metric)
    return minimum(evidence.validation.means(column.low, column.high, by.name) or [EVERYTHING])


def _of_condition(measure: Callable[..., Interval]) -> _Evaluator:
    """The evaluator of a function of a metric and a condition on the data."""

    def evaluator(call: CallTerm, evidence: Evidence) -> Interval:
        metric, condition = call.arguments
        assert isinstance(metric, MetricTerm)
        return measure(evidence.validation, "candidate", metric.name, condition)

    return evaluator


def _flip_rate(call: CallTerm, evidence: Evidence) -> Interval:
    """Return the flip rate of a second measurement. Only a `require` waits for that measurement."""
    (metric,) = call.arguments
    assert isinstance(metric, MetricTerm)
    return evidence.flips.get(metric.name, UNIT)


def _of_claim(measure: Callable[..., Interval]) -> _Evaluator:
    """Return the evaluator of a function that tests whether one mean is above another."""

    def evaluator(call: CallTerm, evidence: Evidence) -> Interval:
        compared = sides(call.arguments[0])
        assert compared is not None
        above, below = compared
        assert isinstance(above, MeanTerm)
        assert isinstance(below, MeanTerm)
        shared = multiplicity(call, evidence.planned)
        return measure(evidence, above.state, below.state, above.metric, multiplicity=shared)

    return evaluator


def _exactly(known: Fraction | int | None, otherwise: Interval) -> Interval:
    return otherwise if known is None else Interval.point(known)


def _of_skill(measure: Callable[[Evidence, SkillState], Interval]) -> _Evaluator:
    """The evaluator of a function whose only argument is a skill."""

    def evaluator(call: CallTerm, evidence: Evidence) -> Interval:
        (argument,) = call.arguments
        assert isinstance(argument, StateTerm)
        return measure(evidence, argument.state)

    return evaluator


EVALUATORS: Mapping[str, _Evaluator] = MappingProxyType(
    {
        "improved": _gain_or_loss,
        "regressed": _gain_or_loss,
        "worst": _worst,
        "precision": _of_condition(SplitEvidence.precision),
        "recall": _of_condition(SplitEvidence.recall),
        "confidence": _of_claim(Evidence.confidence),
        "e_value": _of_claim(Evidence.e_value),
        "change": lambda call, evidence: _exactly(evidence.texts.change, EVERYTHING),
        "tokens": _of_skill(lambda evidence, state: _exactly(evidence.texts.tokens.get(state), POSITIVE)),
        "overlap": _of_skill(lambda evidence, state: _exactly(evidence.texts.overlap.get(state), UNIT)),
        "cost": _of_skill(lambda evidence, state: evidence.validation.cost(state)),
        "flip_rate": _flip_rate,
    }
)
"""Evaluators by function of `gates/functions.py`. A function without an evaluator can be checked but not run."""
