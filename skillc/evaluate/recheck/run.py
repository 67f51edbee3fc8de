"""Measure a recheck: the skill, no skill, and the skill without each part; judge them as one family, and the drift."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from pydantic import JsonValue

from skillc.evaluate.recheck.job import RecheckJob, arm_without
from skillc.evaluate.recheck.parts import Part
from skillc.evaluate.skills import NONE, SkillArm, count_looks
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.models.serving.records import ServerSummary
from skillc.optimize.final import RETRIES, ComparisonArm, paired_scores
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.host import Observer, stop_reason
from skillc.optimize.rollouts import Rollouts, failure_kind, gather
from skillc.outcomes import MICRO, Example, Mean, measured_mean
from skillc.run.session import Session
from skillc.run.stop import Stop
from skillc.stats.drift import Drift, drift
from skillc.stats.family import Member, judge_family
from skillc.stats.verdict import VerdictWord

FIRST_SAMPLE = 1_000_000
"""The first sample of a recheck. Those of a compile selected the skill, so that a noisy model would seem to need every
rule that it was selected with."""

Finding = Literal["pays", "harms", "no evidence", "not measured"]
_FINDINGS: Mapping[VerdictWord, Finding] = {
    "improved": "pays",
    "worse": "harms",
    "no significant gain": "no evidence",
    "unverified": "not measured",
}


@dataclass(frozen=True, slots=True)
class PartResult:
    """What a part of the skill, or the whole skill, adds.

    Attributes:
        part: None for the whole skill against no skill.
        finding: `pays` or `harms` if the test of the family claims it.
        member: the gain of the skill over the skill without the part; None if no claim is possible.
    """

    part: Part | None
    finding: Finding
    member: Member | None


@dataclass(frozen=True, slots=True)
class Recheck:
    """The result of a recheck.

    Attributes:
        goal: of the skill, over the examples with every sample measured.
        none: likewise without a skill.
        whole: the skill against no skill.
        parts: in the order of the job.
        drift: the goal against that of the lock; None if the lock has none, or no claim is possible.
        unmeasured: number of rollouts that failed, by kind of failure.
        look: number of this look at the test split; 0 without one.
        stopped: why it ended early: `interrupted`, `time`, a cap's name, or `down` for an unreachable model.
        lost: the error of a model that became unreachable.
    """

    job: RecheckJob
    goal: Mean
    none: Mean
    whole: PartResult
    parts: tuple[PartResult, ...]
    drift: Drift | None
    unmeasured: Mapping[str, int]
    look: int
    stopped: str | None
    spent: dict[str, JsonValue]
    served: tuple[ServerSummary, ...] = ()
    lost: EndpointUnreachable | None = None

    @property
    def results(self) -> tuple[PartResult, ...]:
        """The whole skill, then its parts."""
        return (self.whole, *self.parts)

    @property
    def harmful(self) -> tuple[PartResult, ...]:
        """What harms."""
        return tuple(each for each in self.results if each.finding == "harms")

    @property
    def measurable(self) -> bool:
        """Whether nothing that failed could change the result."""
        known = all(each.finding != "not measured" for each in self.results)
        return known and (self.job.recorded is None or (self.drift is not None and self.drift.word != "unverified"))

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
    meter = Meter(job.plan, job.root, job.places)
    rollouts = session.rollouts(meter, job.model.role, first_sample=FIRST_SAMPLE)
    whole, stopped = asyncio.run(_measured(job, rollouts, session))
    claims = stopped != DOWN and (whole or job.look is None)
    look = 0
    if claims and job.look is not None:
        (look,) = count_looks(job.paths, [job.look])
    members = _members(job, rollouts) if claims else {}
    none = SkillArm(NONE, None)
    return Recheck(
        job=job,
        goal=_mean(job, rollouts, job.skill) if claims else Mean(None, 0),
        none=_mean(job, rollouts, none) if claims else Mean(None, 0),
        whole=_result(None, members.get(NONE)),
        parts=tuple(_result(part, members.get(arm_without(part).name)) for part in job.parts),
        drift=_drift(job, rollouts) if claims else None,
        unmeasured=_unmeasured(job, rollouts),
        look=look,
        stopped=stopped,
        spent=client.ledger.snapshot(),
        served=client.servers.summaries(),
        lost=client.lost,
    )


async def _measured(job: RecheckJob, rollouts: Rollouts, session: Session) -> tuple[bool, str | None]:
    """Measure arm by arm, so that a cap leaves the first rules complete.

    Return whether every example was tried in every arm, and why it ended early.
    """
    stop, watch, whole = session.stop, session.watch, False
    every = [
        (arm, example, sample)
        for arm in job.arms
        for sample in range(job.plan.optimize.samples)
        for example in job.examples
    ]
    todo = every
    async with session.connected():
        try:
            with stop.cuts(clock=True):
                for attempt in range(1 + RETRIES):
                    if stop.reason is not None:
                        return whole, stop.reason
                    watch.stage(job.split if attempt == 0 else "failed examples, again", len(todo))
                    await gather(
                        [
                            rollouts.measure(arm.skill, [example], stage=_stage(arm), sample=sample)
                            for arm, example, sample in todo
                        ]
                    )
                    whole = True
                    todo = [each for each in every if _score(job, rollouts, *each) is None]
                    if not todo:
                        break
        except BudgetReached as cap:
            return whole, cap.cap
        except EndpointUnreachable:
            return whole, DOWN
        except asyncio.CancelledError:
            return whole, stop_reason(watch)
    return whole, None


def _stage(arm: SkillArm) -> str:
    """Return the stage of the ledger that an arm is charged to."""
    return arm.name if arm.skill is None or arm.file is not None else "without a rule"


def _score(job: RecheckJob, rollouts: Rollouts, arm: SkillArm, example: Example, sample: int) -> int | None:
    return rollouts.score(arm.skill, example, job.plan.goal.name, sample)


def _members(job: RecheckJob, rollouts: Rollouts) -> dict[str, Member]:
    """Judge the skill against every other arm, as one family."""
    goal, samples = job.plan.goal, job.plan.optimize.samples
    skill, *others = (ComparisonArm(rollouts, arm.skill, _stage(arm)) for arm in job.arms)
    names = [arm.name for arm in job.arms[1:]]
    family = {
        name: paired_scores(other, skill, job.examples, goal.name, samples=samples)
        for name, other in zip(names, others, strict=True)
    }
    seed = job.plan.data.seed
    return judge_family(family, low=goal.low, high=goal.high, seed=seed, samples=samples, level=job.level)


def _result(part: Part | None, member: Member | None) -> PartResult:
    if member is None or not member.verdict.n:
        return PartResult(part, "not measured", None)
    return PartResult(part, _FINDINGS[member.verdict.verdict], member)


def _totals(job: RecheckJob, rollouts: Rollouts, arm: SkillArm) -> Sequence[int | None]:
    goal, samples = job.plan.goal.name, job.plan.optimize.samples
    return [rollouts.total(arm.skill, example, goal, samples=samples) for example in job.examples]


def _mean(job: RecheckJob, rollouts: Rollouts, arm: SkillArm) -> Mean:
    return measured_mean(_totals(job, rollouts, arm), samples=job.plan.optimize.samples)


def _drift(job: RecheckJob, rollouts: Rollouts) -> Drift | None:
    if job.recorded is None or job.recorded.mean is None:
        return None
    goal, micro = job.plan.goal, job.plan.optimize.samples * MICRO
    scores = [
        (example.group, None if total is None else Fraction(total, micro))
        for example, total in zip(job.examples, _totals(job, rollouts, job.skill), strict=True)
    ]
    then, count = job.recorded.mean, job.recorded.n
    return drift(scores, then=then, count=count, low=goal.low, high=goal.high, same=job.same)


def _unmeasured(job: RecheckJob, rollouts: Rollouts) -> dict[str, int]:
    """Count the rollouts that failed, by kind of failure."""
    kinds: Counter[str] = Counter()
    for arm in job.arms:
        for sample in range(job.plan.optimize.samples):
            known = (rollouts.known(arm.skill, example, sample) for example in job.examples)
            kinds.update(kind for each in known if each is not None and (kind := failure_kind(each)) is not None)
    return {kind: kinds[kind] for kind in sorted(kinds)}
