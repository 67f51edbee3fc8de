"""`skillc noise`: one skill, the same examples, several repeats at each concurrency."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillc.data.dataset import load_data
from skillc.data.split import Side
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.evaluate.measuring import (
    Measured,
    MeasuringJob,
    bound_of,
    check_caps,
    ending,
    failures_of,
    plan_with,
    spread_examples,
    until_stopped,
    with_retries,
)
from skillc.evaluate.skills import SkillArm, one_arm
from skillc.frontend import Planned
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.failures import EndpointUnreachable
from skillc.optimize.final import ComparisonArm
from skillc.optimize.host import NoReserve, Observer
from skillc.optimize.null_arm import NullGates, accepts_itself
from skillc.optimize.rollouts import Rollouts
from skillc.plan.models import TARGET
from skillc.plan.schema import Plan
from skillc.run.session import Session
from skillc.run.stop import Stop
from skillc.stats.noise import Difference, Noise, Repeats, difference_of, noise_of

CONCURRENCY = (1, 16)
_LEAST_REPEATS = 3
STAGE = "noise"
# Samples of other verbs are below; each repeat at each concurrency has its own, which no cache answers for another.
_FIRST_SAMPLE = 10_000_000
_REPEATS = 10_000


@dataclass(frozen=True, slots=True)
class NoiseOptions:
    """The user's options.

    Attributes:
        repeats: rollouts of each example at each concurrency; None for 3, or twice the program's `samples` if more.
        concurrency: rollouts in flight, one measurement each.
        examples: how many of the split; None for all.
        skill: a file; None for the compiled skill or, before the first compile, the initial one.
    """

    split: Side = "validation"
    repeats: int | None = None
    concurrency: tuple[int, ...] = CONCURRENCY
    examples: int | None = None
    skill: Path | None = None
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseJob(MeasuringJob):
    """A resolved measurement, with nothing sent; `plan` takes one sample per rollout."""

    arm: SkillArm
    repeats: int
    concurrency: tuple[int, ...]


def prepare_noise(planned: Planned, options: NoiseOptions) -> NoiseJob:
    """Resolve skill and data, and bound the cost.

    Raises:
        SkillcError: an option, a file or the model cannot be used, or the caps cannot pay for the measurement.
    """
    program, root = planned.plan, planned.root
    concurrency = tuple(dict.fromkeys(options.concurrency))
    _check_concurrency(program, concurrency)
    target = program.models[TARGET]
    plan = plan_with(program, [target], samples=1)
    dataset = load_data(program, root)
    examples = spread_examples(dataset, options.split, options.examples)
    repeats = options.repeats or max(_LEAST_REPEATS, 2 * program.optimize.samples)
    arm = one_arm(planned, options.skill)
    bound = bound_of(plan, [target], [arm], len(examples) * repeats * len(concurrency), dataset, root)
    check_caps(plan, bound, what="this measurement", fewer="fewer `--examples` or `--repeats`")
    return NoiseJob(
        planned=planned,
        plan=plan,
        split=options.split,
        dataset=dataset,
        examples=examples,
        bound=bound,
        arm=arm,
        repeats=repeats,
        concurrency=concurrency,
    )


def _check_concurrency(plan: Plan, concurrency: Sequence[int]) -> None:
    """Refuse a concurrency that the target's own limit never reaches."""
    most = plan.models[TARGET].pacing.concurrency
    too_much = next((each for each in concurrency if most is not None and each > most), None)
    if too_much is not None:
        raise SkillcError(
            f"model `{TARGET}` declares `concurrency = {most}`, so {too_much} rollouts are never in flight at once",
            hint=f"raise it, or use `--concurrency {most}`",
        )


@dataclass(frozen=True, slots=True)
class NoiseAt:
    """The repeats at one concurrency.

    Attributes:
        gates: the program's gates on the skill against itself; None without gates on single steps, or with too few
            repeats for two measurements of the program's `samples`.
        unmeasured: rollouts that failed, by kind of failure.
        not_run: rollouts that were not reached.
    """

    concurrency: int
    noise: Noise
    gates: NullGates | None
    unmeasured: Mapping[str, int]
    not_run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFound(Measured):
    """The result of a measurement.

    Attributes:
        at: by concurrency, in the order of the options.
        between: the first concurrency against each other one.
    """

    job: NoiseJob
    at: tuple[NoiseAt, ...]
    between: tuple[tuple[int, int, Difference], ...]


def sample_of(concurrency: int, repeat: int) -> int:
    """Return the sample of a repeat, which is part of every cache key."""
    return _FIRST_SAMPLE + concurrency * _REPEATS + repeat


def measure_noise(job: NoiseJob, observer: Observer, client: Client, stop: Stop | None = None) -> NoiseFound:
    """Measure under a client's budget until complete or stopped.

    Raises:
        SkillcError: models or metrics cannot be used, or no example was measured twice.
    """
    session, meter = Session(job.plan, client, observer, stop), Meter(job.plan, job.root, job.dataset.places)
    runs = {each: session.rollouts(meter, most=each) for each in job.concurrency}
    stopped = asyncio.run(_measure(job, runs, session))
    rows = {each: _rows(job, each, runs[each]) for each in job.concurrency}
    found = tuple(_noise_at(job, each, runs[each], rows[each], session) for each in job.concurrency)
    if not any(each.noise.examples for each in found):
        raise _nothing(found, client.lost)
    first, *others = job.concurrency
    goal = job.plan.goal
    return NoiseFound(
        job=job,
        at=found,
        between=tuple((first, c, difference_of(rows[first], rows[c], low=goal.low, high=goal.high)) for c in others),
        **ending(client, stopped),
    )


def _nothing(found: Sequence[NoiseAt], lost: EndpointUnreachable | None) -> SkillcError:
    kinds = sum((Counter(each.unmeasured) for each in found), Counter[str]())
    why = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "it ended too early"
    hint = lost.message if lost is not None else "run the same command again: completed rollouts are kept"
    return SkillcError(f"no example was measured twice at one concurrency: {why}", hint=hint)


async def _measure(job: NoiseJob, runs: Mapping[int, Rollouts], session: Session) -> str | None:
    """Measure repeat by repeat; return why it ended early."""

    async def repeats() -> None:
        for concurrency, rollouts in runs.items():
            for repeat in range(job.repeats):
                name = f"repeat {repeat + 1} of {job.repeats}, {concurrency} at once"
                await one_repeat(rollouts, sample_of(concurrency, repeat), name)

    async def one_repeat(rollouts: Rollouts, sample: int, name: str) -> None:
        await with_retries(
            session,
            job.examples,
            lambda todo, _: rollouts.measure(job.arm.skill, todo, stage=STAGE, sample=sample),
            lambda example: bool(rollouts.unmeasured(job.arm.skill, [example], sample)),
            names=(name, f"{name}, failed examples again"),
        )

    async with session.connected():
        return await until_stopped(session, repeats())


def _rows(job: NoiseJob, concurrency: int, rollouts: Rollouts) -> list[Repeats]:
    samples = [sample_of(concurrency, repeat) for repeat in range(job.repeats)]
    goal, skill = job.plan.goal.name, job.arm.skill
    return [
        Repeats(example.group, tuple(rollouts.score(skill, example, goal, sample) for sample in samples))
        for example in job.examples
    ]


def _noise_at(
    job: NoiseJob, concurrency: int, rollouts: Rollouts, rows: Sequence[Repeats], session: Session
) -> NoiseAt:
    goal, arm = job.plan.goal, ComparisonArm(rollouts, job.arm.skill, STAGE)
    unmeasured, not_run = failures_of([arm], job.examples, [sample_of(concurrency, i) for i in range(job.repeats)])
    return NoiseAt(
        concurrency=concurrency,
        noise=noise_of(rows, low=goal.low, high=goal.high, seed=job.plan.data.seed),
        gates=_gates(job, concurrency, rollouts, session),
        unmeasured=unmeasured,
        not_run=not_run,
    )


def _gates(job: NoiseJob, concurrency: int, rollouts: Rollouts, session: Session) -> NullGates | None:
    """Decide the gates of the program on the first two measurements of as many samples as it takes."""
    size, skill = job.program.optimize.samples, job.arm.skill
    if job.repeats < 2 * size or skill is None:
        return None
    samples = [sample_of(concurrency, repeat) for repeat in range(2 * size)]
    whole = [
        example
        for example in job.examples
        if all((found := rollouts.known(skill, example, sample)) and found.measured for sample in samples)
    ]
    engine = replace(session.engine(job.dataset, rollouts, NoReserve()), plan=job.program)
    return accepts_itself(engine, skill, whole, samples[:size], samples[size:])
