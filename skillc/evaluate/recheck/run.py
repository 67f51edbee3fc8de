"""Measure a recheck: the skill, no skill, and the skill without each part; judge them as one family, and the drift."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from skillc.dataclass import dataclass
from skillc.evaluate.measuring import Measured, ending, failures_of, until_stopped, with_retries
from skillc.evaluate.recheck.job import RecheckJob, arm_without
from skillc.evaluate.recheck.parts import Part
from skillc.evaluate.skills import NONE, SkillArm, count_looks
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.concurrency import gather
from skillc.optimize.final import ComparisonArm, paired_scores
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.host import Observer
from skillc.outcomes import MICRO, ArmScore, Example, measured_mean
from skillc.run.session import Session
from skillc.run.stop import Stop
from skillc.stats.drift import Drift, drift
from skillc.stats.family import Finding, Member, judge_family

_Cell: TypeAlias = tuple[ComparisonArm, Example, int]

FIRST_SAMPLE = 1_000_000
"""The first sample of a recheck. Those of a compile selected the skill, so that a noisy model would seem to need every
rule that it was selected with."""


@dataclass(frozen=True, slots=True)
class PartResult:
    """The effect of a part of the skill, or of the whole skill.

    Attributes:
        part: None for the whole skill against no skill.
        finding: `pays` or `harms` if the test of the family claims it.
        member: the gain of the skill over the skill without the part; None if no claim is possible.
    """

    part: Part | None
    finding: Finding
    member: Member | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck(Measured):
    """The result of a recheck.

    Attributes:
        goal: of the skill, over the examples with every sample measured.
        none: likewise without a skill.
        whole: the skill against no skill.
        parts: in the order of the job.
        drift: the goal against that of the lock; None if the lock has none, or no claim is possible.
        unmeasured: number of rollouts that failed, by kind of failure.
        look: number of this look at the test split; 0 without one.
    """

    job: RecheckJob
    goal: ArmScore
    none: ArmScore
    whole: PartResult
    parts: tuple[PartResult, ...]
    drift: Drift | None
    unmeasured: Mapping[str, int]
    look: int

    @property
    def results(self) -> tuple[PartResult, ...]:
        """The whole skill, then its parts."""
        return (self.whole, *self.parts)

    @property
    def harmful(self) -> tuple[PartResult, ...]:
        """The results that harm."""
        return tuple(each for each in self.results if each.finding == "harms")

    @property
    def measurable(self) -> bool:
        """Whether the failures cannot change the result."""
        known = all(each.finding != "not measured" for each in self.results)
        return known and (
            self.job.recorded("best") is None or (self.drift is not None and self.drift.word != "unverified")
        )

    @property
    def status(self) -> int:
        """The exit status: 0 holds, 1 drift or harm, 2 not measurable, 3 stopped by a cap, 130 interrupted."""
        if self.stopped == "interrupted":
            return 130
        if self.stopped == DOWN:
            return 2
        if self.harmful or (self.drift is not None and self.drift.word == "worse"):
            return 1
        if self.stopped is not None:
            return 3
        return 0 if self.measurable else 2


def recheck(job: RecheckJob, observer: Observer, client: Client, stop: Stop | None = None) -> Recheck:
    """Measure under a client's budget until complete or stopped.

    Nothing is claimed if a model became unreachable, nor on a test split that was not measured completely. A look at
    the test split is counted in the lock before any score is returned.

    Raises:
        SkillcError: models, metrics or the lock cannot be used.
    """
    session = Session(job.plan, client, observer, stop)
    meter = Meter(job.plan, job.root, job.dataset.places)
    rollouts = session.rollouts(meter, job.model.role, first_sample=FIRST_SAMPLE)
    arms = {arm.name: ComparisonArm(rollouts, arm.skill, _stage(arm)) for arm in job.arms}
    stopped = asyncio.run(_measure(job, list(arms.values()), session))
    failures, not_tried = failures_of(arms.values(), job.examples, range(job.plan.optimize.samples))
    claims = stopped != DOWN and (not not_tried or job.look is None)
    look = 0
    if claims and job.look is not None:
        (look,) = count_looks(job.paths, [job.look])
    members = _members(job, arms) if claims else {}
    totals = {name: _totals(job, arm) if claims else [] for name, arm in arms.items()}
    samples = job.plan.optimize.samples
    return Recheck(
        job=job,
        goal=measured_mean(totals[job.skill.name], samples=samples),
        none=measured_mean(totals[NONE], samples=samples),
        whole=_result(None, members.get(NONE)),
        parts=tuple(_result(part, members.get(arm_without(part).name)) for part in job.parts),
        drift=_drift(job, totals[job.skill.name]) if claims else None,
        unmeasured=failures,
        look=look,
        **ending(client, stopped),
    )


async def _measure(job: RecheckJob, arms: Sequence[ComparisonArm], session: Session) -> str | None:
    """Measure arm by arm, so that a cap leaves the first rules complete; return why it ended early."""

    async def measure(todo: Sequence[_Cell], attempt: int) -> None:
        await gather(
            [arm.rollouts.measure(arm.skill, [each], stage=arm.stage, sample=sample) for arm, each, sample in todo]
        )

    def failed(cell: _Cell) -> bool:
        arm, example, sample = cell
        return arm.rollouts.score(arm.skill, example, job.plan.goal.name, sample) is None

    every = [
        (arm, each, sample) for arm in arms for sample in range(job.plan.optimize.samples) for each in job.examples
    ]
    names = (job.split, "failed examples, again")
    async with session.connected():
        return await until_stopped(session, with_retries(session, every, measure, failed, names=names))


def _stage(arm: SkillArm) -> str:
    """Return the stage of the ledger that an arm is charged to."""
    return arm.name if arm.skill is None or arm.file is not None else "without a rule"


def _members(job: RecheckJob, arms: Mapping[str, ComparisonArm]) -> dict[str, Member]:
    """Judge the skill against every other arm, as one family."""
    goal, samples = job.plan.goal, job.plan.optimize.samples
    skill = arms[job.skill.name]
    family = {
        name: paired_scores(arm, skill, job.examples, goal.name, samples=samples)
        for name, arm in arms.items()
        if arm is not skill
    }
    seed = job.plan.data.seed
    return judge_family(
        family, low=goal.low, high=goal.high, seed=seed, samples=samples, level=job.level, rates=goal.rates
    )


def _result(part: Part | None, member: Member | None) -> PartResult:
    if member is None or not member.verdict.n:
        return PartResult(part, "not measured", None)
    return PartResult(part, member.finding, member)


def _totals(job: RecheckJob, arm: ComparisonArm) -> list[int | None]:
    goal, samples = job.plan.goal.name, job.plan.optimize.samples
    return [arm.rollouts.total(arm.skill, example, goal, samples=samples) for example in job.examples]


def _drift(job: RecheckJob, totals: Sequence[int | None]) -> Drift | None:
    recorded = job.recorded("best")
    if recorded is None or recorded.mean is None:
        return None
    goal, micro = job.plan.goal, job.plan.optimize.samples * MICRO
    scores = [
        (example.group, None if total is None else Fraction(total, micro))
        for example, total in zip(job.examples, totals, strict=True)
    ]
    return drift(scores, then=recorded.mean, count=recorded.n, low=goal.low, high=goal.high, same=job.same)
