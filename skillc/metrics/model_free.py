"""What a skill should beat: the goal's mean of classifiers that anybody could write, without any model."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from skillc.data.baselines import baseline_scores
from skillc.data.dataset import Dataset
from skillc.data.example import Example
from skillc.metrics.cells import Scored, measured_mean
from skillc.metrics.evaluate import Meter
from skillc.plan.schema import Plan


def model_free_means(plan: Plan, dataset: Dataset, examples: Sequence[Example], meter: Meter) -> dict[str, Fraction]:
    """The goal's mean on some examples of each simple classifier; none where the task has no single label."""
    means = {}
    for baseline in baseline_scores(plan.task, dataset, examples):
        cells = [
            meter.goal(example, {plan.task.outputs[0].name: answer})
            for example, answer in zip(examples, baseline.predictions, strict=True)
        ]
        mean = measured_mean(cell.value if isinstance(cell, Scored) else None for cell in cells)
        if mean.value is not None:
            means[baseline.name] = mean.value
    return means
