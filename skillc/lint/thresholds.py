"""Rules over thresholds of gates and the number of examples: those finer than one example, and those out of reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log10

from skillc.budget.spend import Sizes
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
from skillc.stats.betting import e_value
from skillc.stats.subsets import SUBSETS
from skillc.text import counted

_RIGHT_OR_WRONG = frozenset({"exact_match", "contains", "numeric", "one_of"})
_TRUTHS = frozenset({"and", "or", "not", "<", "<=", ">", ">=", "==", "!="})
_MANY = Fraction(1, 5)
"""The share of the examples that a gate on confidence or an e-value may ask to improve before a note says so."""


@rule(DataFacts)
def thresholds(facts: DataFacts) -> Iterator[Diagnostic]:
    """Gates whose thresholds are finer than the validation split, or that it can't reach."""
    plan, sizes = facts.plan, facts.sizes
    decisions = decisions_of(plan, sizes.train)
    groups = len({example.group for example in facts.dataset.validation})
    for gate in plan.gates:
        at = facts.at("gate", gate.name)
        for part in conjuncts(gate.term):
            compared = sides(part)
            if compared is None or not isinstance(part, Operation):
                continue
            yield from _steps(plan, sizes, at, part, compared)
            above, below = compared
            if isinstance(above, CallTerm) and is_claim_test(above) and isinstance(below, Constant):
                what = counted(groups, "example" if plan.data.group is None else "group")
                advice = _confidence if above.function == "confidence" else _e_value
                yield from advice(part, below.value, groups, what, multiplicity(above, decisions), at)


# ---- steps ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Finer:
    """A threshold below the weight of one example: what it comes to, that weight, and one that means what it says."""

    says: str
    step: Fraction
    where: str
    mended: Fraction


def _steps(plan: Plan, sizes: Sizes, at: Label, part: Operation, compared: tuple[Term, Term]) -> Iterator[Diagnostic]:
    above, below = compared
    strict = part.operator in ("<", ">")
    found: _Finer | None = None
    if isinstance(above, Constant) and isinstance(below, CallTerm) and below.function == "regressed":
        found = _allowed(plan, sizes, below, above.value, strict=strict)
    elif isinstance(below, Constant):
        found = _wanted(plan, sizes, above, below.value, strict=strict)
    elif (points := points_above(above, below)) is not None:
        assert isinstance(above, MeanTerm)
        found = _margin(plan, sizes, above, points)
    if found is None:
        return
    message = f"`{show_term(part)}` {found.says}: {found.where}, and one is {_percent(found.step)}"
    hint = (
        f"a bigger validation split has a smaller step; with this one, {_percent(found.mended)} is the next threshold"
    )
    yield note("SK520", at, message, hint)


def _percent(value: Fraction) -> str:
    """`2.5%`, `16.67%`."""
    return f"{float(value * 100):.4g}%"


def _allowed(plan: Plan, sizes: Sizes, call: CallTerm, most: Fraction, *, strict: bool) -> _Finer | None:
    """`regressed(m) <= 1%`, where one example is more."""
    metric = call.arguments[0]
    if call.option("on") is not None or not isinstance(metric, MetricTerm) or most <= 0:
        return None
    found = _step(plan, sizes, metric.name, call.option("by"))
    if found is None or found[0] < most or (found[0] == most and not strict):
        return None
    return _Finer("holds only where nothing gets worse", *found, found[0])


def _wanted(plan: Plan, sizes: Sizes, term: Term, least: Fraction, *, strict: bool) -> _Finer | None:
    """`candidate.m >= 99%`, where only 100 % is as much."""
    by = term.option("by") if isinstance(term, CallTerm) and term.function == "worst" else None
    mean = term.arguments[0] if by is not None and isinstance(term, CallTerm) else term
    if not isinstance(mean, MeanTerm):
        return None
    found, high = _step(plan, sizes, mean.metric, by), plan.metric(mean.metric).high
    if found is None or least >= high or high - found[0] > least or (high - found[0] == least and not strict):
        return None
    return _Finer("holds only where all are right", *found, high - found[0])


def _margin(plan: Plan, sizes: Sizes, mean: MeanTerm, points: Fraction) -> _Finer | None:
    """`candidate.m > incumbent.m + 1%`, where each gain is more."""
    found = _step(plan, sizes, mean.metric, None)
    if found is None or not points or abs(points) >= found[0]:
        return None
    return _Finer("asks for no more than any gain" if points > 0 else "allows no loss at all", *found, found[0])


def _step(plan: Plan, sizes: Sizes, metric: str, by: Term | None) -> tuple[Fraction, str] | None:
    """What one rollout weighs in the mean of a metric that is right or wrong; None for any other metric."""
    known = next((each for each in plan.metrics if each.name == metric), None)
    if known is None or not _right_or_wrong(plan, known) or not sizes.validation:
        return None
    size, where = sizes.validation, f"validation has {counted(sizes.validation, 'example')}"
    if isinstance(by, FieldTerm):
        smallest = sizes.smallest_group(by.name)
        if smallest is None:
            return None
        size, where = smallest[1], f"the group `{smallest[0]}` of `{by.name}` has {counted(smallest[1], 'example')}"
    return (known.high - known.low) / size / plan.optimize.samples, where


def _right_or_wrong(plan: Plan, metric: MetricPlan) -> bool:
    """Whether a metric has two values only, so that there is a smallest change."""
    term = metric.term
    if isinstance(term, MetricTerm):
        return _right_or_wrong(plan, plan.metric(term.name))
    if isinstance(term, CallTerm):
        return term.function in _RIGHT_OR_WRONG
    return isinstance(term, Operation) and term.operator in _TRUTHS


# ---- confidence and e-values ----------------------------------------------------------------------


def _confidence(
    part: Operation, least: Fraction, groups: int, what: str, multiplicity: int, at: Label
) -> Iterator[Diagnostic]:
    """How many groups must improve for a paired test to be as sure.

    With k of n groups better and none worse, p = 2^-k where all subsets are looked at (Hartigan 1969), and never below
    1 / 10,000; `over = run` multiplies it by the decisions that there may be.
    """
    error = 1 - least
    subsets = min(2 ** min(groups, 64) - 1, SUBSETS)
    surest = 1 - Fraction(multiplicity, subsets + 1)
    strict = part.operator in ("<", ">")
    if surest < least or (strict and surest == least):
        most = _percent(max(surest, Fraction(0)))
        message = f"`{show_term(part)}` can never hold: with {what} on validation it is at most {most}"
        hint = "bring more data, or ask for less" if subsets < SUBSETS else "ask for less"
        if multiplicity > 1:
            message += f", for {multiplicity:,} decisions share the error"
            hint += "; with fewer steps, or without `over = run`, each decision has more of it"
        yield warning("SK521", at, message, hint)
        return
    needed = next(k for k in range(1, groups + 1) if Fraction(multiplicity, 2**k) <= error) if error > 0 else groups
    yield from _many(part, needed, groups, what, at)


def _e_value(
    part: Operation, least: Fraction, groups: int, what: str, multiplicity: int, at: Label
) -> Iterator[Diagnostic]:
    """How many groups must improve for the bet to multiply its stake by so much.

    The e-value is largest where all groups improve by the width of the metric; `over = run` divides it by the decisions
    that there may be.
    """
    most, strict = e_value({1: groups}, 1) / multiplicity, part.operator in ("<", ">")
    if most < least or (strict and most == least):
        message = f"`{show_term(part)}` can never hold: with {what} on validation it is at most {_rounded(most)}"
        hint = "bring more data, or ask for less"
        if multiplicity > 1:
            message += f", for {multiplicity:,} decisions share the error"
            hint += "; with fewer steps, or without `over = run`, each decision has more of it"
        yield warning("SK521", at, message, hint)
        return
    needed = next(k for k in range(groups + 1) if e_value({1: k}, 1) >= least * multiplicity)
    yield from _many(part, needed, groups, what, at)


def _rounded(value: Fraction) -> str:
    """Round down to three digits, so that the figure is never at the threshold."""
    places = 10 ** max(0, 2 - floor(log10(value)))
    return f"{floor(value * places) / places:,g}"


def _many(part: Operation, needed: int, groups: int, what: str, at: Label) -> Iterator[Diagnostic]:
    if needed > _MANY * groups:
        message = f"`{show_term(part)}` asks that {needed} of {what} on validation improve, and none gets worse"
        hint = "a bigger validation split lets smaller gains through"
        yield note("SK521", at, message, hint)
