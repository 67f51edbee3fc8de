"""Rules over thresholds of gates and the number of examples: finer than one example, or out of reach."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import floor, log10
from typing import NamedTuple

from skillc.budget.steps import decisions_of
from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.gates.functions import is_claim_test, multiplicity
from skillc.gates.terms import (
    CallTerm,
    Constant,
    FieldTerm,
    MeanTerm,
    MetricTerm,
    Operation,
    Term,
    conjuncts,
    points_above,
    show_term,
    sides,
)
from skillc.lint.rules import DataFacts, note, rule, warning
from skillc.plan.schema import MetricPlan, Plan
from skillc.stats.power import e_value
from skillc.stats.subsets import SUBSETS
from skillc.text import counted

_BINARY_FUNCTIONS = frozenset({"exact_match", "contains", "numeric", "one_of"})
_BINARY_OPERATORS = frozenset({"and", "or", "not", "<", "<=", ">", ">=", "==", "!="})
_MANY = Fraction(1, 5)
"""A gate on confidence or an e-value is noted if more than this share of the examples has to improve."""


@rule(DataFacts)
def thresholds(facts: DataFacts) -> Iterator[Diagnostic]:
    """Gates with thresholds finer than one validation example, or out of reach of the validation split."""
    plan = facts.plan
    for gate in plan.gates:
        at = facts.at("gate", gate.name)
        for part in conjuncts(gate.term):
            compared = sides(part)
            if compared is None or not isinstance(part, Operation):
                continue
            yield from _finer_than_an_example(facts, at, part, compared)
            above, below = compared
            if isinstance(above, CallTerm) and is_claim_test(above) and isinstance(below, Constant):
                yield from _out_of_reach(facts, at, part, above, below.value)


# ---- one example ----------------------------------------------------------------------------------


class _Fine(NamedTuple):
    """The effect of a threshold below the weight of one example, that weight, and a threshold that differs."""

    effect: str
    where: str
    step: Fraction
    threshold: Fraction


def _finer_than_an_example(
    facts: DataFacts, at: Label, part: Operation, compared: tuple[Term, Term]
) -> Iterator[Diagnostic]:
    strict, found = part.operator in ("<", ">"), None
    match compared:
        case (Constant(most), CallTerm("regressed") as call):
            found = _no_regression(facts, call, most, strict=strict)
        case (above, Constant(least)):
            found = _all_correct(facts, above, least, strict=strict)
        case (MeanTerm() as above, below) if points := points_above(above, below):
            found = _any_gain(facts, above, points)
    if found is not None:
        message = f"`{show_term(part)}` {found.effect}: {found.where}, and one is {_percent(found.step)}"
        hint = f"use {_percent(found.threshold)}, or a larger validation split, where one example weighs less"
        yield note("SK520", at, message, hint)


def _percent(value: Fraction) -> str:
    """`2.5%`, `16.67%`."""
    return f"{float(value * 100):.4g}%"


def _no_regression(facts: DataFacts, call: CallTerm, most: Fraction, *, strict: bool) -> _Fine | None:
    """`regressed(m) <= 1%`, where one example weighs more."""
    metric = call.arguments[0]
    if call.option("on") is not None or not isinstance(metric, MetricTerm) or most <= 0:
        return None
    where, step = _step(facts, metric.name, call.option("by"))
    if step < most or (step == most and not strict):
        return None
    return _Fine("holds only if nothing gets worse", where, step, step)


def _all_correct(facts: DataFacts, term: Term, least: Fraction, *, strict: bool) -> _Fine | None:
    """`candidate.m >= 99%`, which only 100 % reaches."""
    by = term.option("by") if isinstance(term, CallTerm) and term.function == "worst" else None
    mean = term.arguments[0] if by is not None and isinstance(term, CallTerm) else term
    if not isinstance(mean, MeanTerm):
        return None
    (where, step), high = _step(facts, mean.metric, by), facts.plan.metric(mean.metric).high
    below = high - step
    if not step or least >= high or below > least or (below == least and not strict):
        return None
    return _Fine("holds only if all are right", where, step, below)


def _any_gain(facts: DataFacts, mean: MeanTerm, points: Fraction) -> _Fine | None:
    """`candidate.m > incumbent.m + 1%`, where every gain is larger."""
    where, step = _step(facts, mean.metric, None)
    if abs(points) >= step:
        return None
    return _Fine("accepts any gain" if points > 0 else "allows no loss at all", where, step, step)


def _step(facts: DataFacts, metric: str, by: Term | None) -> tuple[str, Fraction]:
    """Where a metric is measured, and the weight of one rollout there; the weight is 0 if the metric is not binary."""
    plan, size = facts.plan, facts.sizes.validation
    known = next((each for each in plan.metrics if each.name == metric), None)
    if known is None or not _is_binary(plan, known) or not size:
        return "", Fraction(0)
    where = f"validation has {counted(size, 'example')}"
    if isinstance(by, FieldTerm):
        smallest = facts.sizes.smallest_group(by.name)
        if smallest is None:
            return "", Fraction(0)
        name, size = smallest
        where = f"the group `{name}` of `{by.name}` has {counted(size, 'example')}"
    return where, (known.high - known.low) / size / plan.optimize.samples


def _is_binary(plan: Plan, metric: MetricPlan) -> bool:
    """Whether a metric has only two values, so that its mean has a smallest change."""
    term = metric.term
    if isinstance(term, MetricTerm):
        return _is_binary(plan, plan.metric(term.name))
    if isinstance(term, CallTerm):
        return term.function in _BINARY_FUNCTIONS
    return isinstance(term, Operation) and term.operator in _BINARY_OPERATORS


# ---- confidence and e-values ----------------------------------------------------------------------


def _out_of_reach(
    facts: DataFacts, at: Label, part: Operation, claim: CallTerm, least: Fraction
) -> Iterator[Diagnostic]:
    """Claims that hold only if many groups improve, or not even then.

    The best case of n groups is that all improve by the width of the metric. If k improve and none gets worse, a paired
    test over all subsets has p = 2^-k (Hartigan 1969), and p is never below 1 / 10,000.
    """
    decisions = multiplicity(claim, decisions_of(facts.plan, facts.sizes.train))
    groups = len({example.group for example in facts.dataset.validation})
    units = counted(groups, "example" if facts.plan.data.group is None else "group")
    subsets = min(2 ** min(groups, 64) - 1, SUBSETS)
    test = claim.function == "confidence"
    best = 1 - Fraction(decisions, subsets + 1) if test else e_value({1: groups}, 1) / decisions
    if best < least or (part.operator in ("<", ">") and best == least):
        most = _percent(max(best, Fraction(0))) if test else _round_down(best)
        message = f"`{show_term(part)}` can never hold: with {units} on validation it is at most {most}"
        hint = "lower the threshold" if test and subsets == SUBSETS else "add data, or lower the threshold"
        if decisions > 1:
            message += f", as {decisions:,} decisions share the error"
            hint += "; fewer steps, or no `over = run`, leave each decision more of it"
        yield warning("SK521", at, message, hint)
        return

    def is_reached(improved: int) -> bool:
        if test:
            return Fraction(decisions, 2**improved) <= 1 - least
        return e_value({1: improved}, 1) >= least * decisions

    needed = next((k for k in range(int(test), groups + 1) if is_reached(k)), groups)
    if needed > _MANY * groups:
        message = f"`{show_term(part)}` requires that {needed} of {units} on validation improve, and none gets worse"
        yield note("SK521", at, message, "a larger validation split accepts smaller gains")


def _round_down(value: Fraction) -> str:
    """Round down to three digits, so that the figure never reaches the threshold."""
    places = 10 ** max(0, 2 - floor(log10(value)))
    return f"{floor(value * places) / places:,g}"
