"""Measure the initial skill a second time, for `flip_rate` in a `require`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from skillc.document.skill import Document
from skillc.gates.intervals import Interval
from skillc.gates.terms import MetricTerm, calls
from skillc.optimize.engine import Engine
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import Scored
from skillc.plan.judges import reads_judge
from skillc.plan.schema import MetricPlan, Plan

STAGE = "second measurement"
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class FlipCount:
    """How often a second measurement differs from the first.

    Attributes:
        differing: examples on which it differs.
        measured: examples with both.
        examples: all examples.
    """

    differing: int
    measured: int
    examples: int

    @property
    def rate(self) -> Interval:
        """The share of all examples; one without both measurements may differ or not."""
        if not self.examples:
            return Interval(Fraction(0), Fraction(1))
        missing = self.examples - self.measured
        return Interval(Fraction(self.differing, self.examples), Fraction(self.differing + missing, self.examples))


def flipping_metrics(plan: Plan) -> tuple[MetricPlan, ...]:
    """Return the metrics whose flip rate a `require` reads."""
    read = (call for each in plan.requires for call in calls(each.term) if call.function == "flip_rate")
    named = {call.arguments[0].name for call in read if isinstance(call.arguments[0], MetricTerm)}
    return tuple(metric for metric in plan.metrics if metric.name in named)


async def measure_flips(engine: Engine, skill: Document) -> Mapping[str, FlipCount]:
    """Measure a skill again on validation; return the flips by metric, empty if no `require` reads them.

    For a metric that reads a judge the same rollouts are judged again, for any other the examples are rolled out again.

    Raises:
        PermanentFailure, BudgetReached, MetricError: from models and metrics.
    """
    wanted = flipping_metrics(engine.plan)
    if not wanted:
        return {}
    examples, plan = engine.dataset.validation, engine.plan
    judged = {metric.name for metric in wanted if reads_judge(plan, metric)}
    rolled = {metric.name for metric in wanted} - judged
    engine.observer.stage(STAGE, len(examples) * (bool(judged) + bool(rolled)))
    second: dict[str, list[Outcome | None]] = {}
    if judged:
        found = await engine.rollouts.judge_again(skill, examples, stage=STAGE, attempts=_ATTEMPTS)
        second |= dict.fromkeys(judged, found)
    if rolled:
        sample = plan.optimize.samples
        for _ in range(_ATTEMPTS):
            todo = engine.rollouts.unmeasured(skill, examples, sample)
            await engine.rollouts.measure(skill, todo, stage=STAGE, sample=sample)
        again = [engine.rollouts.known(skill, example, sample) for example in examples]
        second |= dict.fromkeys(rolled, again)
    first = [engine.rollouts.known(skill, example) for example in examples]
    return {metric.name: _compared(metric.name, first, second[metric.name]) for metric in wanted}


def _compared(metric: str, first: list[Outcome | None], second: list[Outcome | None]) -> FlipCount:
    pairs = [(_score(metric, one), _score(metric, other)) for one, other in zip(first, second, strict=True)]
    both = [(one, other) for one, other in pairs if one is not None and other is not None]
    return FlipCount(sum(one != other for one, other in both), len(both), len(pairs))


def _score(metric: str, outcome: Outcome | None) -> int | None:
    cell = outcome.cells.get(metric) if outcome is not None else None
    return cell.value if isinstance(cell, Scored) else None
