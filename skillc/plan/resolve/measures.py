"""Metrics, gates and requires: terms with their ranges, and what evidence each gate needs."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.language.checked import CheckedGate, CheckedMetric
from skillc.language.show import metrics_read
from skillc.plan.evidence import stage_of
from skillc.plan.resolve.values import Findings
from skillc.plan.schema import GatePlan, MetricPlan, RequirePlan


def resolve_metrics(findings: Findings, metrics: Sequence[CheckedMetric]) -> tuple[MetricPlan, ...]:
    """The metrics, each after those that it reads, else in the alphabet's order; an open range is an error."""
    plans = {metric.name: plan for metric in metrics if (plan := _metric(findings, metric)) is not None}
    return tuple(plans[name] for name in _ordered({name: metrics_read(plan.term) for name, plan in plans.items()}))


def resolve_gates(gates: Sequence[CheckedGate]) -> tuple[GatePlan, ...]:
    """The gates in their declared order, which decides who is blamed."""
    return tuple(
        GatePlan(name=gate.name, term=gate.term, text=gate.text, stage=stage_of(gate.term), for_=gate.for_)
        for gate in gates
        if gate.kind == "gate"
    )


def resolve_requires(gates: Sequence[CheckedGate]) -> tuple[RequirePlan, ...]:
    """What is decided before the first step."""
    return tuple(
        RequirePlan(name=gate.name, term=gate.term, text=gate.text) for gate in gates if gate.kind == "require"
    )


def _metric(findings: Findings, metric: CheckedMetric) -> MetricPlan | None:
    if metric.low is None or metric.high is None:
        side = "upper" if metric.high is None else "lower"
        hint = f"give it one: `clamp(..., 0, 300 {metric.unit or 'tokens'})`"
        findings.error("SK558", f"`{metric.name}` has no {side} bound", metric.source, metric.span, hint)
        return None
    return MetricPlan(
        name=metric.name,
        term=metric.term,
        unit=metric.unit,
        low=metric.low,
        high=metric.high,
        goal=metric.goal,
        declared=metric.declared,
    )


def _ordered(reads: dict[str, frozenset[str]]) -> list[str]:
    """Names such that each comes after those that it reads; of those that may come next, the first by alphabet."""
    placed: list[str] = []
    while len(placed) < len(reads):
        free = [name for name in sorted(reads) if name not in placed and not (reads[name] & reads.keys()) - {*placed}]
        # The checker reports cycles, so that there always is one.
        placed.append(free[0])
    return placed
