"""`skillc noise`: one skill, the same examples, several repeats at each concurrency."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.models.serving.records import ServerSummary
from skillc.noise.job import NoiseJob
from skillc.optimize.final import RETRIES
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.gate.null import NullGates, accepts_itself
from skillc.optimize.host import Observer, stop_reason
from skillc.optimize.rollouts import Rollouts, failure_kind
from skillc.run.session import Session
from skillc.run.stop import Stop
from skillc.stats.noise import Difference, Noise, Repeats, difference_of, noise_of

STAGE = "noise"
# Samples of other verbs are below; each repeat at each concurrency has its own, which no cache answers for another.
_FIRST_SAMPLE = 10_000_000
_REPEATS = 10_000


class _NoReserve:
    """Nothing is set aside, as there is no final test."""

    def set_aside(self) -> None:
        """Do nothing."""

    def open_reserve(self) -> None:
        """Do nothing."""


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


@dataclass(frozen=True, slots=True)
class NoiseFound:
    """The result of a measurement.

    Attributes:
        at: by concurrency, in the order of the options.
        between: the first concurrency against each other one.
        stopped: why it ended early: `interrupted`, `time`, a cap's name, or `down` for an unreachable model.
        lost: the error of a model that became unreachable.
    """

    job: NoiseJob
    at: tuple[NoiseAt, ...]
    between: tuple[tuple[int, int, Difference], ...]
    stopped: str | None
    spent: dict[str, JsonValue]
    served: tuple[ServerSummary, ...]
    lost: EndpointUnreachable | None = None


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
    stopped = asyncio.run(_measured(job, runs, session))
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
        stopped=stopped,
        spent=client.ledger.snapshot(),
        served=client.servers.summaries(),
        lost=client.lost,
    )


def _nothing(found: Sequence[NoiseAt], lost: EndpointUnreachable | None) -> SkillcError:
    kinds = sum((Counter(each.unmeasured) for each in found), Counter[str]())
    why = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "it ended too early"
    hint = lost.message if lost is not None else "run the same command again: completed rollouts are kept"
    return SkillcError(f"no example was measured twice at one concurrency: {why}", hint=hint)


async def _measured(job: NoiseJob, runs: Mapping[int, Rollouts], session: Session) -> str | None:
    """Measure repeat by repeat, failed rollouts up to three times; return why it ended early."""
    skill, stop = job.arm.skill, session.stop
    async with session.connected():
        try:
            with stop.cuts(clock=True):
                for concurrency, rollouts in runs.items():
                    for repeat in range(job.repeats):
                        sample = sample_of(concurrency, repeat)
                        for attempt in range(1 + RETRIES):
                            todo = rollouts.unmeasured(skill, job.examples, sample)
                            if stop.reason is not None:
                                return stop.reason
                            if not todo:
                                break
                            again = ", failed examples again" if attempt else ""
                            name = f"repeat {repeat + 1} of {job.repeats}, {concurrency} at once{again}"
                            session.watch.stage(name, len(todo))
                            await rollouts.measure(skill, todo, stage=STAGE, sample=sample)
        except BudgetReached as cap:
            return cap.cap
        except EndpointUnreachable:
            return DOWN
        except asyncio.CancelledError:
            return stop_reason(session.watch)
    return None


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
    goal, unmeasured, not_run = job.plan.goal, Counter[str](), 0
    for example in job.examples:
        for repeat in range(job.repeats):
            outcome = rollouts.known(job.arm.skill, example, sample_of(concurrency, repeat))
            kind = failure_kind(outcome) if outcome is not None else None
            not_run += outcome is None
            unmeasured.update([kind] if kind is not None else [])
    return NoiseAt(
        concurrency=concurrency,
        noise=noise_of(rows, low=goal.low, high=goal.high, seed=job.plan.data.seed),
        gates=_gates(job, concurrency, rollouts, session),
        unmeasured=dict(unmeasured),
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
    engine = replace(session.engine(job.dataset, rollouts, _NoReserve()), plan=job.program)
    return accepts_itself(engine, skill, whole, samples[:size], samples[size:])
