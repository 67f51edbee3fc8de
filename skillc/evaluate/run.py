"""`skillc eval`, whole: skills and models → rollouts side by side → looks → figures, in the order of events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pydantic import JsonValue

from skillc.evaluate.job import EvalJob, is_same, labels_of
from skillc.evaluate.scores import Gain, ModelScores, ScorePairs, gain_of, pair_of, score_of
from skillc.evaluate.skills import NONE, SkillArm, count_looks
from skillc.metrics.baselines import baseline_means
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.models.ledger import Tally
from skillc.models.serving.records import ServerSummary
from skillc.optimize.final import RETRIES, ComparisonArm, measure_side_by_side, unmeasured_examples
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.host import Observer, stop_reason
from skillc.plan.lock import ModelLock
from skillc.plan.models import TARGET
from skillc.plan.schema import ModelPlan
from skillc.run.session import Session
from skillc.run.stop import Stop


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of an evaluation.

    Attributes:
        job: what was measured.
        models: scores by model; none where the test split was not measured completely.
        baselines: the goal's mean of simple classifiers, by name.
        stopped: what ended it early: `interrupted`, `time`, a cap's name, or `down` where a model stayed out of reach;
            None where it is whole.
        made_with: the model that the compiled skill was made with; None where none is scored.
        spent: the ledger's two books.
        served: reports of the servers that skillc ran.
        lost: the error of a model that stayed out of reach; None where none did.
    """

    job: EvalJob
    models: tuple[ModelScores, ...]
    baselines: dict[str, Fraction]
    stopped: str | None
    made_with: ModelLock | None
    spent: dict[str, JsonValue]
    served: tuple[ServerSummary, ...]
    lost: EndpointUnreachable | None = None


def evaluate(job: EvalJob, observer: Observer, client: Client, stop: Stop | None = None) -> Evaluation:
    """Measure under a client's budget until it is complete or `stop` is asked. On the test split it is all or nothing.

    Raises:
        SkillcError: models, metrics or the lock cannot be used.
    """
    session, meter = Session(job.plan, client, observer, stop), Meter(job.plan, job.root, job.dataset.places)
    table = {model.role: _columns(job, model, session, meter) for model in job.models}
    columns = [each for row in table.values() for each in row]
    whole, stopped = asyncio.run(_measured(job, columns, session))
    return Evaluation(
        job=job,
        models=_figures(job, table, client) if whole or job.split != "test" else (),
        baselines=baseline_means(job.plan, job.dataset, job.examples, meter) if job.split != "train" else {},
        stopped=stopped,
        made_with=_made_with(job),
        spent=client.ledger.snapshot(),
        served=client.servers.summaries(),
        lost=client.lost,
    )


async def _measured(job: EvalJob, arms: Sequence[ComparisonArm], session: Session) -> tuple[bool, str | None]:
    """Measure side by side; return whether every example was tried under every arm, and what ended it early."""
    stop, watch = session.stop, session.watch
    samples, todo, whole = job.plan.optimize.samples, list(job.examples), False
    async with session.client.connected():
        try:
            with stop.cuts(clock=True):
                for attempt in range(1 + RETRIES):
                    if stop.reason is not None:
                        return whole, stop.reason
                    name = job.split if attempt == 0 else "what failed, again"
                    watch.stage(name, len(todo) * len(arms) * samples)
                    await measure_side_by_side(arms, todo, samples=samples)
                    whole = True
                    todo = unmeasured_examples(arms, todo, job.plan.goal.name, samples=samples)
                    if not todo:
                        break
        except BudgetReached as cap:
            return whole, cap.cap
        except EndpointUnreachable:
            return whole, DOWN
        except asyncio.CancelledError:
            return whole, stop_reason(watch)
    return whole, None


def _made_with(job: EvalJob) -> ModelLock | None:
    return job.arms.lock.models.get(TARGET) if job.arms.lock and job.arms.compiled else None


def _columns(job: EvalJob, model: ModelPlan, session: Session, meter: Meter) -> list[ComparisonArm]:
    rollouts = session.rollouts(meter, model.role)
    return [ComparisonArm(rollouts, arm.skill, arm.name) for arm in job.arms.each]


def _figures(job: EvalJob, table: Mapping[str, Sequence[ComparisonArm]], client: Client) -> tuple[ModelScores, ...]:
    """Score every model. Looks at the test split are counted in the lock before any figure is returned."""
    pairs = {model.role: _pairs(job, table[model.role]) for model in job.models}
    numbers = _numbers(job, {(role, pair.arm.name) for role, row in pairs.items() for pair in row if pair.tested})
    labels, made_with = labels_of(job.models), _made_with(job)
    return tuple(
        ModelScores(
            model=model,
            label=labels[model.role],
            made_here=made_with is not None and is_same(model, made_with),
            scores=tuple(
                score_of(job.plan, arm, compared, job.examples, _tally(client, model, arm))
                for arm, compared in zip(job.arms.each, table[model.role], strict=True)
            ),
            gains=tuple(
                gain_of(job.plan, pair, numbers.get((model.role, pair.arm.name), 0)) for pair in pairs[model.role]
            ),
            over_none=_over_none(job, table[model.role]),
        )
        for model in job.models
    )


def _numbers(job: EvalJob, tested: set[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Count the looks at the test split; return the number of each, by role and arm."""
    looks = {place: look for place, look in job.looks.items() if place in tested}
    return dict(zip(looks, count_looks(job.paths, list(looks.values())), strict=True)) if looks else {}


def _pairs(job: EvalJob, row: Sequence[ComparisonArm]) -> list[ScorePairs]:
    """Pair each skill with the reference, in the order of the table."""
    reference = job.arms.reference
    if reference is None:
        return []
    columns = dict(zip((arm.name for arm in job.arms.each), row, strict=True))
    return [
        pair_of(job.plan, reference, columns[reference.name], arm, columns[arm.name], job.examples)
        for arm in job.arms.each
        if arm.name != reference.name
    ]


def _over_none(job: EvalJob, row: Sequence[ComparisonArm]) -> Gain | None:
    """Compare the compiled skill with no skill, on the same cells."""
    bare, compiled, reference = job.arms.named(NONE), job.arms.compiled, job.arms.reference
    if bare is None or compiled is None or reference in (bare, compiled):
        return None
    columns = dict(zip((arm.name for arm in job.arms.each), row, strict=True))
    pair = pair_of(job.plan, bare, columns[bare.name], compiled, columns[compiled.name], job.examples)
    return gain_of(job.plan, pair, 0)


def _tally(client: Client, model: ModelPlan, arm: SkillArm) -> Tally:
    return client.ledger.charged.lines.get((model.role, arm.name), Tally())
