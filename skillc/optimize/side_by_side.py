"""Several skills on the same examples, side by side, so that a server that drifts hits all of them alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillc.data.examples import Example
from skillc.document.skill import Document
from skillc.metrics.cells import Scored
from skillc.optimize.rollouts import Rollouts, gather
from skillc.optimize.verdict import PairedScore


@dataclass(frozen=True, slots=True)
class Compared:
    """One skill under one model.

    Attributes:
        rollouts: that model's.
        skill: None for no skill.
        stage: what the ledger books its calls under.
    """

    rollouts: Rollouts
    skill: Document | None
    stage: str


async def measure_side_by_side(arms: Sequence[Compared], examples: Sequence[Example], *, samples: int) -> None:
    """All arms for an example, then the next example; what is measured already is not run again.

    Raises:
        PermanentFailure, BudgetReached: from the models.
        MetricError: a metric raised or left its range.
    """
    await gather(
        [
            arm.rollouts.measure(arm.skill, [example], stage=arm.stage, sample=sample)
            for sample in range(samples)
            for example in examples
            for arm in arms
        ]
    )


def unmeasured(arms: Sequence[Compared], examples: Sequence[Example], metric: str, *, samples: int) -> list[Example]:
    """The examples of which some arm lacks the score of some sample."""

    def lacks(arm: Compared, example: Example) -> bool:
        return arm.rollouts.total(arm.skill, example, metric, samples=samples) is None

    return [example for example in examples if any(lacks(arm, example) for arm in arms)]


def paired(
    initial: Compared, best: Compared, examples: Sequence[Example], metric: str, *, samples: int
) -> list[PairedScore]:
    """The scores of two arms, one pair for each example and sample."""
    return [
        PairedScore(example.group, _score(initial, example, metric, sample), _score(best, example, metric, sample))
        for example in examples
        for sample in range(samples)
    ]


def _score(arm: Compared, example: Example, metric: str, sample: int) -> int | None:
    outcome = arm.rollouts.known(arm.skill, example, sample)
    cell = outcome.cells.get(metric) if outcome is not None else None
    return cell.value if isinstance(cell, Scored) else None
