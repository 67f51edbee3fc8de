"""Roll out, ask the judges about every variant of each answer, and compute the findings."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.evaluate.judge_check.job import JudgeCheckJob
from skillc.evaluate.judge_check.labels import Label, write_sheet
from skillc.evaluate.measuring import Measured, ending, until_stopped, with_retries
from skillc.evaluate.skills import SkillArm
from skillc.gates.evaluate import decide
from skillc.gates.evidence import Evidence, SplitEvidence, TextEvidence
from skillc.gates.terms import CallTerm, MetricTerm, calls
from skillc.language.judges import family_of
from skillc.metrics.judging.check.findings import JudgeFound, findings_of
from skillc.metrics.judging.check.questions import (
    SWAPPED,
    Given,
    Item,
    Judgements,
    Variant,
    changed,
    has_free_text,
    plain,
    variants_of,
)
from skillc.metrics.judging.combine import Judged
from skillc.metrics.judging.judges import ask_judge
from skillc.metrics.judging.prompt import case_of, right_answers, shown_text
from skillc.metrics.judging.verdict import JudgeFailed, Reply
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.concurrency import gather
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.gate.gate import metric_ranges
from skillc.optimize.host import Observer
from skillc.optimize.loop.baseline import FlipCount
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.judges import JudgePlan, judges_of
from skillc.plan.schema import ModelPlan
from skillc.run.session import Session
from skillc.run.stop import Stop
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout, RolloutRunner
from skillc.text import counted
from skillc.trajectories.trajectory import Trajectory, one_turn

STAGE = "judge check"

# Role of a model, id of an example, sample.
_Key = tuple[str, str, int]
# Where a rollout is kept, skill, role of the model, example, sample.
_Wanted = tuple[dict[_Key, Rollout], SkillArm, str, Example, int]
# Number of a judge, number of its item, variant, role.
_Question = tuple[int, int, Variant, str]


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """What is found about one call of `judge`.

    Attributes:
        judge: the call.
        metrics: names of the metrics that call it.
        whole: the judge, or the panel.
        members: each model of a panel; empty without one.
        equal: answers that are equal to their reference, which need no judge.
        without: answers without a reference.
    """

    judge: JudgePlan
    metrics: tuple[str, ...]
    whole: JudgeFound
    members: tuple[JudgeFound, ...]
    equal: int
    without: int


@dataclass(frozen=True, slots=True)
class RequireResult:
    """A `require` that reads `flip_rate` of a checked metric: `holds` is None where too much is unmeasured."""

    name: str
    text: str
    holds: bool | None
    flips: Mapping[str, FlipCount]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck(Measured):
    """The result of a check.

    Attributes:
        judges: in the order of the program.
        requires: those that read a flip rate.
        unanswered: rollouts without a readable answer, which no judge reads.
        unmeasured: number of rollouts that failed, by kind of failure.
    """

    job: JudgeCheckJob
    judges: tuple[JudgeResult, ...]
    requires: tuple[RequireResult, ...]
    unanswered: int
    unmeasured: Mapping[str, int]

    @property
    def faulty(self) -> tuple[JudgeResult, ...]:
        """The judges with a bias, or whose repeats agree no better than chance."""
        bad = ("a coin", "always the same")
        return tuple(each for each in self.judges if each.whole.found or each.whole.steadiness in bad)

    def status(self, *, strict: bool = False) -> int:
        """Return the exit status: 0, 1 a `require` fails (or a judge is faulty, if strict), 3 stopped, 130 interrupted.

        2 is returned if a model stayed out of reach, or no answer could be judged.
        """
        if self.stopped == "interrupted":
            return 130
        if self.stopped == DOWN:
            return 2
        if any(each.holds is False for each in self.requires) or (strict and self.faulty):
            return 1
        if self.stopped is not None:
            return 3
        return 0 if any(each.whole.mean is not None for each in self.judges) else 2


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions to one judge: its items, the value of each answer, and the numbers of skipped answers."""

    judge: JudgePlan
    items: tuple[Item, ...]
    values: tuple[JsonValue, ...]
    equal: int
    without: int


def check_judges(job: JudgeCheckJob, observer: Observer, client: Client, stop: Stop | None = None) -> JudgeCheck:
    """Roll out, ask and report under a client's budget, until complete or stopped.

    Raises:
        SkillcError: models or metrics cannot be used.
    """
    session, meter = Session(job.plan, client, observer, stop), Meter(job.program, job.root, job.dataset.places)
    work = _Work(job, client, session)
    stopped = asyncio.run(work.done(meter))
    asked = [(names, each) for (_, names), each in zip(job.judges, work.asked, strict=False)]
    return JudgeCheck(
        job=job,
        judges=tuple(_result(job, names, each, work.given[i]) for i, (names, each) in enumerate(asked)),
        requires=_requires(job, meter, work),
        unanswered=sum(r.failure is None and r.prediction is None for r in work.rolled.values()),
        unmeasured=_unmeasured(work),
        **ending(client, stopped),
    )


def fill_sheet(job: JudgeCheckJob, observer: Observer, client: Client, stop: Stop | None = None) -> str:
    """Roll out and write the answers that the judge would read into the job's sheet, for labels; return a line.

    Raises:
        SkillcError: the rollouts were stopped, or the file exists or cannot be written.
    """
    assert job.sheet is not None
    work = _Work(job, client, Session(job.plan, client, observer, stop))
    stopped = asyncio.run(work.done(None))
    if stopped is not None:
        raise SkillcError(f"the rollouts were stopped ({stopped})", hint="run the same command to resume")
    first = work.asked[0]
    count = write_sheet(job.sheet, first.judge, first.items, first.values, job.program.data.seed)
    return f"{job.sheet}: {counted(count, 'answer')} to label, from the first row on; then use `--labels {job.sheet}`"


class _Work:
    """The rollouts and replies of a check, as far as they came."""

    def __init__(self, job: JudgeCheckJob, client: Client, session: Session) -> None:
        self._job, self._client, self._session = job, client, session
        self.rolled: dict[_Key, Rollout] = {}
        self._initial: dict[_Key, Rollout] = {}
        self.asked: list[Asked] = []
        self.given: list[dict[tuple[int, Variant, str], Given]] = [{} for _ in job.judges]

    async def done(self, meter: Meter | None) -> str | None:
        """Roll out and, with a meter, ask; return why it ended early."""
        runners = {model.role: self._runner(model) for model in self._job.models}
        async with self._session.connected():
            try:
                return await until_stopped(self._session, self._measure(runners, meter))
            finally:
                if not self.asked:
                    self._prepare(meter)
                for runner in runners.values():
                    await runner.close()

    async def _measure(self, runners: Mapping[str, RolloutRunner], meter: Meter | None) -> None:
        await self._roll(runners)
        if meter is not None:
            self._prepare(meter)
            await self._ask()

    def _runner(self, model: ModelPlan) -> RolloutRunner:
        return RolloutRunner(self._job.plan, self._client, role=model.role, root=self._job.root)

    # ---- rollouts ----

    async def _roll(self, runners: Mapping[str, RolloutRunner]) -> None:
        """Run each example with each model, and the initial skill where a judge compares with it."""
        job = self._job
        every: list[_Wanted] = [
            (self.rolled, job.arm, model.role, example, sample)
            for sample in range(job.samples)
            for model in job.models
            for example in job.examples
        ]
        if job.initial is not None:
            named = {example.id: example for example in job.examples}
            named |= {label.example: job.known[label.example] for label in job.labels}
            first = job.models[0].role
            every += [(self._initial, job.initial, first, example, 0) for example in named.values()]

        async def measure(todo: Sequence[_Wanted], attempt: int) -> None:
            await gather([self._one(runners, *each) for each in todo])

        def failed(each: _Wanted) -> bool:
            into, _, role, example, sample = each
            return into[role, example.id, sample].failure is not None

        names = ("rollouts", "failed rollouts, again")
        await with_retries(self._session, every, measure, failed, names=names)

    async def _one(
        self,
        runners: Mapping[str, RolloutRunner],
        into: dict[_Key, Rollout],
        arm: SkillArm,
        role: str,
        example: Example,
        sample: int,
    ) -> None:
        skill = None if arm.skill is None else Skill.of(arm.skill)
        into[role, example.id, sample] = await runners[role](skill, example, sample, STAGE)
        self._session.watch.advance()

    # ---- judgements ----

    def _prepare(self, meter: Meter | None) -> None:
        self.asked = [self._asked(judge, meter) for judge, _ in self._job.judges]

    def _asked(self, judge: JudgePlan, meter: Meter | None) -> Asked:
        """Return the items of a judge: the answers of rollouts with their labels, then labelled answers of others."""
        job, items, values, counts = self._job, list[Item](), list[JsonValue](), Counter[str]()
        labels = {(label.example, label.answer): label for label in job.labels}
        names = {model.role: model.model for model in job.models}
        used = set[tuple[str, str]]()
        for (role, name, sample), rollout in self.rolled.items():
            if rollout.failure is not None or rollout.prediction is None:
                continue
            example, trajectory = job.known[name], rollout.trajectory
            value = rollout.prediction.get(judge.output)
            key = (name, shown_text(value))
            label = labels.get(key)
            used.add(key)
            truth = self._truth(meter, judge, example, trajectory)
            item = self._item(judge, example, trajectory, counts)
            if item is not None:
                marked = label.marks if label is not None else _marks(judge, truth)
                score = label.score if label is not None else truth
                items.append(replace(item, sample=sample, model=names[role], label=score, marks=marked))
                values.append(value)
        for key, label in labels.items():
            item = self._labelled(judge, label, counts) if key not in used else None
            if item is not None:
                items.append(item)
                values.append(label.value)
        return Asked(judge, tuple(items), tuple(values), counts["equal"], counts["without"])

    def _truth(
        self, meter: Meter | None, judge: JudgePlan, example: Example, trajectory: Trajectory
    ) -> Fraction | None:
        """Return the label by the metric of `--truth`: its value or, in a comparison, the better answer."""
        metric = self._job.truth
        if metric is None or meter is None or metric.high == metric.low:
            return None

        def value(of: Trajectory) -> Fraction | None:
            cell = meter.measure(example, of).cells[metric.name]
            return Fraction(cell.value, MICRO) if isinstance(cell, Scored) else None

        ours = value(trajectory)
        if ours is None or judge.against is None:
            return None if ours is None else (ours - metric.low) / (metric.high - metric.low)
        reference = self._reference(judge, example, trajectory)
        theirs = value(reference) if reference is not None else None
        return None if theirs is None else Fraction((ours > theirs) - (ours < theirs) + 1, 2)

    def _reference(self, judge: JudgePlan, example: Example, trajectory: Trajectory) -> Trajectory | None:
        """Return the rollout of the initial skill, or one whose judged output is the right answer."""
        if judge.against == "initial":
            rollout = self._initial.get((self._job.models[0].role, example.id, 0))
            return None if rollout is None or rollout.failure is not None else rollout.trajectory
        first = next(iter(right_answers(self._job.program, judge.output, example.gold)), None)
        return one_turn(shown_text(first), {**(trajectory.answer or {}), judge.output: first})

    def _labelled(self, judge: JudgePlan, label: Label, counts: Counter[str]) -> Item | None:
        example = self._job.known[label.example]
        trajectory = one_turn(label.answer, {judge.output: label.value})
        item = self._item(judge, example, trajectory, counts)
        return None if item is None else replace(item, label=label.score, marks=label.marks)

    def _item(self, judge: JudgePlan, example: Example, trajectory: Trajectory, counts: Counter[str]) -> Item | None:
        """Return what is judged of an answer; None without a reference, and for an answer that is equal to it."""
        reference: dict[str, JsonValue] | None = None
        if judge.against == "initial":
            rolled = self._reference(judge, example, trajectory)
            if rolled is None:
                counts["without"] += 1
                return None
            reference = dict(rolled.answer or {})
        case = case_of(self._job.program, judge, example, trajectory, reference)
        if judge.against is not None and case.reference is None:
            counts["without"] += 1
            return None
        if case.reference is not None and case.reference == case.answer:
            counts["equal"] += 1
            return None
        return Item(example.id, example.group, case)

    async def _ask(self) -> None:
        """Ask every judge every variant of each item, item by item; failed questions up to three times."""
        job, every = self._job, list[_Question]()
        for place, asked in enumerate(self.asked):
            variants = variants_of(job.program, asked.judge, job.repeats)
            every += [
                (place, i, v, role) for i in range(len(asked.items)) for v in variants for role in asked.judge.roles
            ]
        # One item of each judge after the other, so that a cap leaves whole items.
        every.sort(key=lambda each: each[1])

        async def measure(todo: Sequence[_Question], attempt: int) -> None:
            await gather([self._question(*each, attempt=attempt) for each in todo])

        def failed(each: _Question) -> bool:
            given = self.given[each[0]][each[1:]]
            return any(isinstance(one, JudgeFailed) for one in (given if isinstance(given, tuple) else (given,)))

        names = ("judgements", "failed judgements, again")
        await with_retries(self._session, every, measure, failed, names=names)

    async def _question(self, place: int, i: int, variant: Variant, role: str, *, attempt: int) -> None:
        asked = self.asked[place]
        judge, item = asked.judge, asked.items[i]
        case = changed(item.case, variant, judge, free_text=has_free_text(self._job.program, judge))
        # The first plain question is that of a compile, whose reply is in the cache.
        sample = (item.sample, attempt, *((variant.repeat,) if variant.repeat else ()))

        async def reply(swapped: bool) -> Reply:
            return await ask_judge(self._client, role, judge.rubric, case, swapped=swapped, sample=sample, stage=STAGE)

        if judge.against is None:
            self.given[place][i, variant, role] = await reply(variant == SWAPPED)
        else:
            one, other = await asyncio.gather(reply(False), reply(True))
            self.given[place][i, variant, role] = (one, other)
        self._session.watch.advance()


def _marks(judge: JudgePlan, truth: Fraction | None) -> Mapping[str, Fraction]:
    """Return the label of the only criterion; a metric says nothing of several."""
    criteria = judge.rubric.criteria
    return {criteria[0].name: truth} if truth is not None and len(criteria) == 1 else {}


def _result(
    job: JudgeCheckJob, names: tuple[str, ...], asked: Asked, given: Mapping[tuple[int, Variant, str], Given]
) -> JudgeResult:
    whole = Judgements(asked.judge, asked.items, given)
    roles = asked.judge.roles

    def found(judgements: Judgements) -> JudgeFound:
        own = _own_family(job, judgements.judge.roles)
        return findings_of(judgements, repeats=job.repeats, own=own, seed=job.program.data.seed)

    members = tuple(found(whole.of(role)) for role in roles) if len(roles) > 1 else ()
    return JudgeResult(asked.judge, names, found(whole), members, asked.equal, asked.without)


def _own_family(job: JudgeCheckJob, roles: Sequence[str]) -> Mapping[str, bool] | None:
    """Return which of the answering models are of a judge's family; None for a panel, and without both kinds."""
    family = family_of(job.plan.models[roles[0]].model) if len(roles) == 1 else None
    own = {model.model: family_of(model.model) == family for model in job.models}
    return own if family is not None and len(set(own.values())) == 2 else None


def _unmeasured(work: _Work) -> dict[str, int]:
    kinds = Counter(rollout.failure for rollout in work.rolled.values() if rollout.failure is not None)
    return {str(kind): kinds[kind] for kind in sorted(kinds)}


# ---- flips -----------------------------------------------------------------------------------------


def _requires(job: JudgeCheckJob, meter: Meter, work: _Work) -> tuple[RequireResult, ...]:
    """Decide each `require` that reads the flip rate of a checked metric, on the first two judgements."""
    found = []
    for require in job.program.requires:
        read = [call.arguments[0] for call in calls(require.term) if call.function == "flip_rate"]
        names = [each.name for each in read if isinstance(each, MetricTerm)]
        if not names or not set(names) <= _reading(job):
            continue
        flips = {name: _flips(job, meter, work, name) for name in names}
        nothing = SplitEvidence(job.examples, 1, lambda *_: None, metric_ranges(job.program))
        evidence = Evidence(
            nothing, replace(nothing, examples=()), TextEvidence({}, None), flips={n: f.rate for n, f in flips.items()}
        )
        found.append(RequireResult(require.name, require.text, decide(require.term, evidence).definite, flips))
    return tuple(found)


def _reading(job: JudgeCheckJob) -> set[str]:
    """Return the metrics all of whose judges are checked."""
    terms = {judge.term for judge, _ in job.judges}
    needed = {metric.name: {judge.term for judge in judges_of(job.program, metric)} for metric in job.program.metrics}
    return {name for name, each in needed.items() if each and each <= terms}


def _flips(job: JudgeCheckJob, meter: Meter, work: _Work, metric: str) -> FlipCount:
    """Compare the values of a metric with the first and with the second judgement of each rollout."""
    places: list[dict[tuple[str, int, str], int]] = [
        {(item.example, item.sample, item.model): i for i, item in enumerate(asked.items)} for asked in work.asked
    ]
    differing = measured = 0
    for example in job.examples:
        rollout = work.rolled.get((job.models[0].role, example.id, 0))
        if rollout is None or rollout.failure is not None:
            continue
        values = []
        for repeat in (0, 1):
            verdicts: dict[CallTerm, Judged | JudgeFailed] = {}
            for place, asked in enumerate(work.asked):
                i = places[place].get((example.id, 0, job.models[0].model))
                judged = (
                    Judgements(asked.judge, asked.items, work.given[place]).judged(i, plain(repeat))
                    if i is not None
                    else Judged(Fraction(1, 2))
                )
                verdicts[asked.judge.term] = judged or JudgeFailed(asked.judge.roles[0], "no verdict")
            cell = meter.measure(example, rollout.trajectory, verdicts).cells[metric]
            values.append(cell.value if isinstance(cell, Scored) else None)
        if None not in values:
            measured += 1
            differing += values[0] != values[1]
    return FlipCount(differing, measured, len(job.examples))
