"""`skillc eval`: skills and models → rollouts side by side → looks → scores and gains."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.evaluate.job import EvalJob
from skillc.evaluate.measuring import (
    Measured,
    ending,
    failures_of,
    is_same,
    labels_of,
    until_stopped,
    with_retries,
)
from skillc.evaluate.rows import Row, rows_of
from skillc.evaluate.scores import Columns, ModelScores, ScorePairs, gain_of, over_none, pairs_of, parts_of, score_of
from skillc.evaluate.skills import count_looks
from skillc.metrics.baselines import baseline_means
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.ledger import Tally
from skillc.optimize.final import ComparisonArm, measure_side_by_side, unmeasured_examples
from skillc.optimize.host import Observer
from skillc.plan.lock import LookLock, ModelLock
from skillc.plan.models import TARGET
from skillc.plan.schema import ModelPlan
from skillc.run.recalled import Recalled
from skillc.run.session import Session
from skillc.run.stop import Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(Measured):
    """The result of an evaluation.

    Attributes:
        models: scores by model; empty if the test split was not measured completely.
        baselines: mean goal of simple classifiers, by name.
        made_with: the model that the compiled skill was made with; None if no compiled skill is scored.
        rows: every rollout, for files; empty where `models` is.
    """

    job: EvalJob
    models: tuple[ModelScores, ...]
    baselines: dict[str, Fraction]
    made_with: ModelLock | None
    rows: tuple[Row, ...] = ()


def evaluate(job: EvalJob, observer: Observer, client: Client, stop: Stop | None = None) -> Evaluation:
    """Measure under a client's budget until complete or stopped; an incomplete test split has no scores.

    Raises:
        SkillcError: models, metrics or the lock cannot be used.
    """
    session = Session(job.plan, client, observer, stop, Recalled(job.known) if job.known else None)
    meter = Meter(job.plan, job.root, job.dataset.places)
    table: dict[str, Columns] = {}
    for model in job.models:
        rollouts = session.rollouts(meter, model.role)
        table[model.role] = {
            arm.name: ComparisonArm(rollouts, arm.skill, arm.name + job.apart) for arm in job.arms.each
        }
    columns = [each for row in table.values() for each in row.values()]
    stopped = asyncio.run(measure_columns(job, columns, session))
    not_tried = failures_of(columns, job.examples, range(job.plan.optimize.samples))[1]
    whole = not not_tried or job.split != "test"
    compared = job.split != "train" and job.place != "rollout"
    return Evaluation(
        job=job,
        models=_model_scores(job, table, client) if whole else (),
        baselines=baseline_means(job.plan, job.dataset, job.examples, meter) if compared else {},
        made_with=_made_with(job),
        rows=rows_of(job, table, client) if whole else (),
        **ending(client, stopped),
    )


async def measure_columns(job: EvalJob, arms: Sequence[ComparisonArm], session: Session) -> str | None:
    """Measure arms side by side, failed examples up to twice more; return why it ended early."""
    samples, goal = job.plan.optimize.samples, job.plan.goal.name
    work = with_retries(
        session,
        job.examples,
        lambda todo, _: measure_side_by_side(arms, todo, samples=samples),
        lambda example: bool(unmeasured_examples(arms, [example], goal, samples=samples)),
        names=(job.split, "failed examples, again"),
        each=len(arms) * samples,
    )
    async with session.connected():
        return await until_stopped(session, work)


def _made_with(job: EvalJob) -> ModelLock | None:
    return job.arms.lock.models.get(TARGET) if job.arms.lock and job.arms.compiled else None


def _model_scores(job: EvalJob, table: Mapping[str, Columns], client: Client) -> tuple[ModelScores, ...]:
    """Score every model. Looks at the test split are counted in the lock before any score is returned."""
    pairs = {role: pairs_of(job, columns) for role, columns in table.items()}
    tested = {(role, pair.arm.name) for role, row in pairs.items() for pair in row if pair.tested}
    looks = {key: look for key, look in job.looks.items() if key in tested}
    numbers = dict(zip(looks, _counted(job, list(looks.values())), strict=True)) if looks else {}
    labels = labels_of(job.models)
    return tuple(
        _scores_with(job, model, labels[model.role], table[model.role], pairs[model.role], numbers, client)
        for model in job.models
    )


def _counted(job: EvalJob, looks: Sequence[LookLock]) -> list[int]:
    """Count looks in every lock that counts them; return the largest number of each."""
    counts = [count_looks(paths, looks) for paths in (job.paths, *job.more_paths)]
    return [max(each) for each in zip(*counts, strict=True)]


def _scores_with(
    job: EvalJob,
    model: ModelPlan,
    label: str,
    columns: Columns,
    pairs: Sequence[ScorePairs],
    numbers: Mapping[tuple[str, str], int],
    client: Client,
) -> ModelScores:
    """Score every skill under one model; `numbers` has the number of each look by role and skill."""
    made_with, lines = _made_with(job), client.ledger.charged.lines
    has_latency = not client.roles[model.role].backend.embedded
    tallies = {arm.name: lines.get((model.role, columns[arm.name].stage), Tally()) for arm in job.arms.each}
    return ModelScores(
        model=model,
        label=label,
        made_here=made_with is not None and is_same(model, made_with),
        scores=tuple(
            score_of(job, arm, columns[arm.name], job.examples, tally=tallies[arm.name], has_latency=has_latency)
            for arm in job.arms.each
        ),
        gains=tuple(gain_of(job, pair, numbers.get((model.role, pair.arm.name), 0)) for pair in pairs),
        pairs=tuple(pairs),
        over_none=over_none(job, columns),
        parts=parts_of(job, columns, has_latency=has_latency),
    )
