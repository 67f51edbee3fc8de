"""Measure arms side by side on the same examples, and judge their pairs as one family."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from skillc.dataclass import dataclass
from skillc.evaluate.adapters.adapter import check_served
from skillc.evaluate.adapters.job import Arm, ArmsJob, Pair
from skillc.evaluate.measuring import ending, failures_of
from skillc.evaluate.rows import rows_of_arm
from skillc.evaluate.run import Evaluation, measure_columns
from skillc.evaluate.scores import Columns, Duel, Score, duel_of, score_of
from skillc.evaluate.skills import count_looks
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.ledger import Tally
from skillc.optimize.final import ComparisonArm, paired_scores
from skillc.optimize.host import Observer
from skillc.plan.models import TARGET
from skillc.run.session import Session
from skillc.run.stop import Stop
from skillc.stats.family import Member, judge_family


@dataclass(frozen=True, slots=True)
class ArmScores:
    """The score of an arm; its `tally` has the calls and the tokens sent and received, without those of judges."""

    arm: Arm
    score: Score


@dataclass(frozen=True, slots=True)
class PairResult:
    """Two arms on the same examples.

    Attributes:
        member: gain, interval and p, at the level that Holm's procedure leaves.
        duel: examples on which the first arm wins, loses and ties.
        dropped: examples that are unmeasured in one of the two, and so are not compared.
    """

    pair: Pair
    member: Member
    duel: Duel
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsEvaluation(Evaluation):
    """The result; without scores if the test split was not measured completely.

    Attributes:
        scored: each arm, in the order of the table.
        compared: each pair, the question first.
        look: number of this look at the test split; 0 on another split.
    """

    job: ArmsJob
    scored: tuple[ArmScores, ...]
    compared: tuple[PairResult, ...]
    look: int = 0


def evaluate_arms(job: ArmsJob, observer: Observer, client: Client, stop: Stop | None = None) -> ArmsEvaluation:
    """Measure under a client's budget until complete or stopped. The look is counted before any score is returned.

    Raises:
        SkillcError: models, metrics or the lock cannot be used, or a server does not have the adapter.
    """
    for note in check_served(job.plan.models[TARGET], job.adapters, job.root):
        observer.note(note)
    session = Session(job.plan, client, observer, stop)
    meter = Meter(job.plan, job.root, job.dataset.places)
    rollouts = {model.role: session.rollouts(meter, model.role) for model in job.models}
    columns = {
        arm.name: ComparisonArm(rollouts[arm.model.role], arm.skill.skill, arm.name + job.apart) for arm in job.each
    }
    stopped = asyncio.run(measure_columns(job, list(columns.values()), session))
    not_tried = failures_of(columns.values(), job.examples, range(job.plan.optimize.samples))[1]
    whole = not not_tried or job.split != "test"
    look = 0
    if whole and job.look is not None:
        (look,) = count_looks(job.paths, [job.look])
    rows = [
        row
        for arm in job.each
        for row in rows_of_arm(job, arm.model, arm.skill, columns[arm.name], has_latency=_has_latency(client, arm))
    ]
    return ArmsEvaluation(
        job=job,
        models=(),
        baselines={},
        made_with=None,
        rows=tuple(rows) if whole else (),
        scored=_scores(job, columns, client) if whole else (),
        compared=compare(job, columns) if whole else (),
        look=look,
        **ending(client, stopped),
    )


def _has_latency(client: Client, arm: Arm) -> bool:
    return not client.roles[arm.model.role].backend.embedded


def _scores(job: ArmsJob, columns: Columns, client: Client) -> tuple[ArmScores, ...]:
    lines = client.ledger.charged.lines
    return tuple(
        ArmScores(
            arm,
            score_of(
                job,
                arm.skill,
                columns[arm.name],
                job.examples,
                tally=lines.get((arm.model.role, columns[arm.name].stage), Tally()),
                has_latency=_has_latency(client, arm),
            ),
        )
        for arm in job.each
    )


def compare(job: ArmsJob, columns: Mapping[str, ComparisonArm]) -> tuple[PairResult, ...]:
    """Judge every pair on the examples that both arms have measured, with Holm's procedure over all pairs."""
    goal, samples = job.plan.goal, job.plan.optimize.samples
    family = {
        pair.name: paired_scores(
            columns[pair.reference.name], columns[pair.arm.name], job.examples, goal.name, samples=samples
        )
        for pair in job.pairs
    }
    members = judge_family(
        family,
        low=goal.low,
        high=goal.high,
        seed=job.plan.data.seed,
        samples=samples,
        level=job.level,
        rates=goal.rates,
    )
    return tuple(
        PairResult(
            pair,
            members[pair.name],
            duel := duel_of(job, columns[pair.reference.name], columns[pair.arm.name], job.examples),
            len(job.examples) - _compared(duel),
        )
        for pair in job.pairs
    )


def _compared(duel: Duel) -> int:
    return duel.wins + duel.losses + duel.ties


def questions(found: Sequence[PairResult]) -> list[PairResult]:
    """Return the pairs that the evaluation is about: adapter against skill; without them the first pair."""
    return [each for each in found if each.pair.is_question] or list(found[:1])
