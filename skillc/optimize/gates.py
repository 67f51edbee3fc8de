"""Gates over partial evidence: the answer is given as soon as no further result can change it (ENGINE section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from skillc.errors import SkillcError
from skillc.language.terms import (
    CallTerm,
    Constant,
    FieldTerm,
    MeanTerm,
    MetricTerm,
    Operation,
    StateTerm,
    Term,
    WordTerm,
)
from skillc.optimize.confidence import confidence
from skillc.optimize.evidence import Evidence, SplitEvidence
from skillc.optimize.intervals import EVERYTHING, Interval, Truth, greatest, least
from skillc.plan.evidence import calls
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


def decide_all(gates: Sequence[GatePlan], evidence: Evidence) -> Decided:
    """The answer of all gates on what is known."""
    truths = tuple((gate.name, _decide_applicable(gate.term, evidence)) for gate in gates)
    blame = next((name for name, truth in truths if truth is Truth.FALSE), None)
    return Decided(min((truth for _, truth in truths), default=Truth.TRUE), blame, truths)


def _decide_applicable(term: Term, evidence: Evidence) -> Truth:
    """As `decide`; where there is no batch, the rest of the gate decides, and nothing fails for the lack of it."""
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
    reads = any(call.option("on") == WordTerm("batch") for call in calls(term))
    return None if reads else term


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


def _mean(split: SplitEvidence, term: MeanTerm, indices: list[int] | None = None) -> Interval:
    column = split.column(term.state, term.metric)
    return split.mean(column.low, column.high, indices)


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
    if term.function == "confidence":
        return _confidence(term, evidence)
    if term.function == "change":
        return EVERYTHING if evidence.texts.change is None else Interval.point(evidence.texts.change)
    if term.function in ("tokens", "cost"):
        (argument,) = term.arguments
        if isinstance(argument, StateTerm):
            if term.function == "cost":
                return evidence.validation.cost(argument.state)
            count = evidence.texts.tokens.get(argument.state)
            return Interval(Fraction(0), math.inf) if count is None else Interval.point(count)
    raise SkillcError(f"this version of skillc cannot measure `{term.function}` in a gate")


def _moved(term: CallTerm, evidence: Evidence) -> Interval:
    """Mean gain, or mean loss, of the candidate over the incumbent, example by example; with `by` the worst group's."""
    metric = term.arguments[0]
    assert isinstance(metric, MetricTerm)
    split = evidence.batch if term.option("on") == WordTerm("batch") else evidence.validation
    after, before = split.column("candidate", metric.name), split.column("incumbent", metric.name)
    if term.function == "regressed":
        after, before = before, after
    low = tuple(max(0, a - b) for a, b in zip(after.low, before.high, strict=True))
    high = tuple(max(0, a - b) for a, b in zip(after.high, before.low, strict=True))
    by = term.option("by")
    if not isinstance(by, FieldTerm):
        return split.mean(low, high)
    groups = [split.mean(low, high, group) for group in split.groups(by.name)] or [EVERYTHING]
    return greatest(groups) if term.function == "regressed" else least(groups)


def _worst(term: CallTerm, evidence: Evidence) -> Interval:
    """The mean of the group where it is lowest."""
    mean, by = term.arguments[0], term.option("by")
    assert isinstance(mean, MeanTerm)
    assert isinstance(by, FieldTerm)
    groups = evidence.validation.groups(by.name)
    return least([_mean(evidence.validation, mean, group) for group in groups] or [EVERYTHING])


def _confidence(term: CallTerm, evidence: Evidence) -> Interval:
    claim = term.arguments[0]
    assert isinstance(claim, Operation)
    left, right = claim.operands
    if claim.operator in ("<", "<="):
        left, right = right, left
    assert isinstance(left, MeanTerm)
    assert isinstance(right, MeanTerm)
    split = evidence.validation
    over, under = split.column(left.state, left.metric), split.column(right.state, right.metric)
    low = [sum(over.low[i] - under.high[i] for i in group) for group in split.split_groups]
    high = [sum(over.high[i] - under.low[i] for i in group) for group in split.split_groups]
    tries = evidence.planned if term.option("over") == WordTerm("run") else 1
    return confidence(low, high, seed=evidence.seed, tries=tries)
