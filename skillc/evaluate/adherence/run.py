"""Roll out the skill and the initial one, mark each rule in each rollout of the skill, and judge what marks show."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from skillc.dataclass import dataclass
from skillc.document.skill import Rule
from skillc.evaluate.adherence.by_code import mark
from skillc.evaluate.adherence.findings import Marked, RuleAdherence, findings_of
from skillc.evaluate.adherence.job import AdherenceJob
from skillc.evaluate.adherence.marks import Mark, ask_marks, shuffled
from skillc.evaluate.measuring import Measured, ending, failures_of, until_stopped, with_retries
from skillc.evaluate.skills import count_looks
from skillc.metrics.judging.verdict import JudgeFailed
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.concurrency import gather
from skillc.optimize.final import ComparisonArm
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.host import Observer
from skillc.outcomes import ArmScore, Example, measured_mean
from skillc.run.session import Session
from skillc.run.stop import Stop
from skillc.trajectories.trajectory import Trajectory

_Cell: TypeAlias = tuple[ComparisonArm, Example, int]
# Example, sample, rules of one call.
_Question: TypeAlias = tuple[Example, int, tuple[Rule, ...]]
_Place: TypeAlias = tuple[str, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adherence(Measured):
    """The result of a check.

    Attributes:
        rules: in the order of the skill.
        marked: each rollout with its marks, in the order of the split; empty if nothing may be shown.
        goal: of the skill, `initial` of the program's skill, over the examples with every sample measured.
        failures: of the judge, by rule and rollout: how many could not be marked, and the first reason.
        unmeasured: number of rollouts that failed, by kind of failure.
        look: number of this look at the test split; 0 without one.
    """

    job: AdherenceJob
    rules: tuple[RuleAdherence, ...]
    marked: tuple[Marked, ...]
    goal: ArmScore
    initial: ArmScore
    failures: tuple[int, str]
    unmeasured: Mapping[str, int]
    look: int

    @property
    def status(self) -> int:
        """The exit status: 0, 2 if nothing could be marked, 3 stopped by a cap, 130 interrupted."""
        if self.stopped == "interrupted":
            return 130
        if self.stopped is not None:
            return 2 if self.stopped == DOWN else 3
        return 0 if any(each.marks for each in self.marked) else 2


class _Work:
    """The rollouts and the marks of a check."""

    def __init__(self, job: AdherenceJob, session: Session, client: Client) -> None:
        self._job, self._session, self._client = job, session, client
        meter = Meter(job.plan, job.root, job.dataset.places)
        rollouts = session.rollouts(meter, job.target.role)
        self.skill = ComparisonArm(rollouts, job.skill.skill, job.skill.name)
        self.initial = ComparisonArm(rollouts, job.initial.skill, job.initial.name)
        self.marks: dict[_Place, Mark] = {}
        self.failed: dict[_Place, str] = {}

    @property
    def arms(self) -> list[ComparisonArm]:
        """The compared skills, once if they are the same."""
        same = self._job.skill.digest == self._job.initial.digest
        return [self.skill] if same else [self.skill, self.initial]

    async def do(self) -> None:
        """Roll out, then mark rollout by rollout, so that a cap leaves whole rollouts marked."""
        await self._roll_out()
        self._mark_by_code()
        if self._job.judge is not None:
            await self._ask(self._job.judge.role)

    async def _roll_out(self) -> None:
        job = self._job

        async def measure(todo: Sequence[_Cell], attempt: int) -> None:
            await gather([arm.rollouts.measure(arm.skill, [e], stage=arm.stage, sample=s) for arm, e, s in todo])

        def failed(cell: _Cell) -> bool:
            arm, example, sample = cell
            return arm.rollouts.score(arm.skill, example, job.plan.goal.name, sample) is None

        every = [(arm, e, sample) for sample in range(job.samples) for e in job.examples for arm in self.arms]
        await with_retries(self._session, every, measure, failed, names=(job.split, "failed examples, again"))

    def _trajectory(self, example: Example, sample: int) -> Trajectory | None:
        """Return the rollout of the skill; None if it failed."""
        outcome = self.skill.rollouts.known(self.skill.skill, example, sample)
        if outcome is None or not (outcome.measured or outcome.failure):
            return None
        return outcome.trajectory

    def _mark_by_code(self) -> None:
        job = self._job
        for example in job.examples:
            for sample in range(job.samples):
                trajectory = self._trajectory(example, sample)
                for rule in job.rules if trajectory is not None else ():
                    read = job.by_code.get(rule.id)
                    if read is not None and trajectory is not None:
                        self.marks[example.id, sample, rule.id] = mark(job.plan, rule, read, example, trajectory)

    async def _ask(self, role: str) -> None:
        job, every = self._job, list[_Question]()
        for example in job.examples:
            for sample in range(job.samples):
                if self._trajectory(example, sample) is not None:
                    rules = shuffled(job.judged, example, sample, job.plan.data.seed)
                    every += [(example, sample, rules[at : at + job.batch]) for at in range(0, len(rules), job.batch)]

        async def measure(todo: Sequence[_Question], attempt: int) -> None:
            await gather([self._question(role, *each, attempt=attempt) for each in todo])

        def failed(each: _Question) -> bool:
            example, sample, rules = each
            return any((example.id, sample, rule.id) not in self.marks for rule in rules)

        await with_retries(self._session, every, measure, failed, names=("marks", "failed marks, again"))

    async def _question(
        self, role: str, example: Example, sample: int, rules: tuple[Rule, ...], *, attempt: int
    ) -> None:
        trajectory = self._trajectory(example, sample)
        assert trajectory is not None
        plan = self._job.plan
        found = await ask_marks(self._client, role, plan, example, trajectory, rules, (sample, attempt))
        for i, rule in enumerate(rules):
            place = (example.id, sample, rule.id)
            if isinstance(found, JudgeFailed):
                self.failed[place] = found.detail
            else:
                self.marks[place] = found[i]
                self.failed.pop(place, None)
        self._session.watch.advance()

    def marked(self) -> tuple[Marked, ...]:
        """Return each rollout of the skill with its marks and the scores of both skills."""
        job, goal = self._job, self._job.plan.goal.name
        return tuple(
            Marked(
                example=example,
                sample=sample,
                marks={
                    rule.id: self.marks[place]
                    for rule in job.rules
                    if (place := (example.id, sample, rule.id)) in self.marks
                },
                score=self.skill.rollouts.score(self.skill.skill, example, goal, sample),
                initial=self.initial.rollouts.score(self.initial.skill, example, goal, sample),
            )
            for example in job.examples
            for sample in range(job.samples)
        )


def check_adherence(job: AdherenceJob, observer: Observer, client: Client, stop: Stop | None = None) -> Adherence:
    """Measure and mark under a client's budget until complete or stopped.

    Nothing is shown of a test split whose rollouts are not complete. A look at it is counted in the lock before any
    score is returned.

    Raises:
        SkillcError: models, metrics or the lock cannot be used.
    """
    session = Session(job.plan, client, observer, stop)
    work = _Work(job, session, client)

    async def run() -> str | None:
        async with session.connected():
            return await until_stopped(session, work.do())

    stopped = asyncio.run(run())
    unmeasured, not_tried = failures_of(work.arms, job.examples, range(job.samples))
    shows = job.look is None or not not_tried
    look = 0
    if shows and job.look is not None:
        (look,) = count_looks(job.paths, [job.look])
    marked = work.marked() if shows else ()
    goal, samples = job.plan.goal.name, job.samples

    def mean(arm: ComparisonArm) -> ArmScore:
        totals = (arm.rollouts.total(arm.skill, each, goal, samples=samples) for each in job.examples if shows)
        return measured_mean(totals, samples=samples)

    return Adherence(
        job=job,
        rules=findings_of(job, marked),
        marked=marked,
        goal=mean(work.skill),
        initial=mean(work.initial),
        failures=(len(work.failed), next(iter(work.failed.values()), "")),
        unmeasured=unmeasured,
        look=look,
        **ending(client, stopped),
    )
