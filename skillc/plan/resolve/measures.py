"""Metrics, gates and requires: terms with their ranges, and what evidence each gate needs."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from skillc.gates.show import metrics_read
from skillc.gates.stages import stage_of
from skillc.language.checked import CheckedGate, CheckedMetric
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
    """Names such that each comes after those that it reads; of those that may come next, the first by alphabet.

    The checker reports cycles, so that every name gets its place.
    """
    missing = {name: read & reads.keys() for name, read in reads.items()}
    readers: dict[str, list[str]] = {name: [] for name in reads}
    for name, read in missing.items():
        for each in read:
            readers[each].append(name)
    waiting = {name: len(read) for name, read in missing.items()}
    free = sorted(name for name, count in waiting.items() if not count)
    placed: list[str] = []
    while free:
        placed.append(heappop(free))
        for name in readers[placed[-1]]:
            waiting[name] -= 1
            if not waiting[name]:
                heappush(free, name)
    return placed
