"""The rollouts of an evaluation, a row for each, for files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.evaluate.by_field import value_of
from skillc.evaluate.job import EvalJob
from skillc.evaluate.scores import DONE, NOT_RUN, Columns, is_right
from skillc.evaluate.skills import SkillArm
from skillc.json_values import JsonObject
from skillc.models.client import Client
from skillc.optimize.final import ComparisonArm
from skillc.optimize.rollouts import failure_kind
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.schema import ModelPlan


@dataclass(frozen=True, slots=True)
class Row:
    """One rollout.

    Attributes:
        where: what is measured, beside split and model; empty for the program as it is.
        skill: the name of the arm.
        part: the value of the field that `--by` names; None without it.
        state: `measured`, the kind of failure, or `not run`.
        goal: its score; None if it is not measured.
        metrics: scores of the other metrics, None where one is not measured.
        right: whether the goal is the best possible one.
        seconds: latency; None if unknown.
        cost: nano-dollars at list price; None if unknown.
        expected: the right answer.
        detail: why it failed, or the feedback of the metrics.
    """

    where: str
    split: str
    model: ModelPlan
    skill: str
    example: str
    group: str
    part: str | None
    sample: int
    state: str
    goal: Fraction | None = None
    metrics: Mapping[str, Fraction | None] | None = None
    right: bool = False
    seconds: float | None = None
    tokens: int = 0
    cost: int | None = None
    answer: JsonObject | None = None
    expected: JsonObject | None = None
    detail: str = ""


def rows_of(job: EvalJob, table: Mapping[str, Columns], client: Client) -> tuple[Row, ...]:
    """Return the rollouts by model, skill, example and sample."""
    found = []
    for model in job.models:
        has_latency = not client.roles[model.role].backend.embedded
        for arm in job.arms.each:
            found += list(rows_of_arm(job, model, arm, table[model.role][arm.name], has_latency=has_latency))
    return tuple(found)


def rows_of_arm(
    job: EvalJob, model: ModelPlan, arm: SkillArm, column: ComparisonArm, *, has_latency: bool
) -> Iterator[Row]:
    """Yield the rollouts of one skill with one model by example and sample."""
    for example in job.examples:
        for sample in range(job.plan.optimize.samples):
            yield _row(job, model, arm, column, example, sample, has_latency=has_latency)


def _row(
    job: EvalJob,
    model: ModelPlan,
    arm: SkillArm,
    column: ComparisonArm,
    example: Example,
    sample: int,
    *,
    has_latency: bool,
) -> Row:
    outcome = column.rollouts.known(column.skill, example, sample)
    part = None if job.by is None else value_of(job.plan, example, job.by)

    def row(state: str, **more: object) -> Row:
        return Row(
            job.where,
            job.split,
            model,
            arm.name,
            example.id,
            example.group,
            part,
            sample,
            state,
            **more,  # type: ignore[arg-type]
        )

    if outcome is None:
        return row(NOT_RUN)
    goal = outcome.cells.get(job.plan.goal.name)
    if not isinstance(goal, Scored):
        return row(failure_kind(outcome) or NOT_RUN, detail=outcome.failure or outcome.feedback)
    others = [metric.name for metric in job.plan.metrics if metric.declared and not metric.goal]
    cells = {name: outcome.cells.get(name) for name in others}
    trajectory = outcome.trajectory
    return row(
        DONE,
        goal=Fraction(goal.value, MICRO),
        metrics={n: Fraction(c.value, MICRO) if isinstance(c, Scored) else None for n, c in cells.items()},
        right=is_right(job, outcome),
        seconds=trajectory.seconds if has_latency and trajectory.timed else None,
        tokens=trajectory.tokens,
        cost=trajectory.cost,
        answer=trajectory.answer,
        expected=example.gold,
        detail=trajectory.problem or outcome.feedback,
    )
