"""Measure skills by rollouts, each (skill, example, sample) once, and prefetch those of the next batch."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.skill import Document, digest
from skillc.gates.terms import Term
from skillc.json_values import JsonObject
from skillc.metrics.judging.combine import counts_of
from skillc.metrics.judging.judges import Judges, NoReference
from skillc.metrics.judging.statements import statement_marks
from skillc.metrics.meter import NO_VERDICTS, Meter, MetricError, unmeasured
from skillc.models.concurrency import SingleFlight, gather
from skillc.models.failures import BackendFailed
from skillc.models.pacing import prefetching
from skillc.optimize.host import Observer, Record, Unrecorded, Value, Wave
from skillc.outcomes import MICRO, Cell, Example, Scored, Unmeasured
from skillc.plan.schema import Plan
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout
from skillc.telemetry.spans import NO_SPAN, Attributes, Span, span
from skillc.trajectories.trajectory import Trajectory

# Arguments of one rollout: skill (None for no skill), example, sample index, stage.
Runner = Callable[[Skill | None, Example, int, str], Awaitable[Rollout]]

# Digest of the skill, id of the example, sample.
_Key: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One measured rollout: a cell per metric, and the parts that a prompt may show.

    Attributes:
        failure: why a judge gave no verdict; empty if all did, or if the rollout itself failed.
        judged: number of comparisons in both orders, number that the order decided, and number of verdicts that report
            instructions in the answer.
        statements: for each judge of statements, in the order of the plan, the score of each in millionths and its
            evidence.
    """

    cells: Mapping[str, Cell]
    trajectory: Trajectory
    feedback: str
    failure: str = ""
    judged: tuple[int, int, int] = (0, 0, 0)
    statements: tuple[tuple[tuple[int, str], ...], ...] = ()

    @property
    def answer(self) -> JsonObject | None:
        """Value by output; None without a readable answer."""
        return self.trajectory.answer

    @property
    def measured(self) -> bool:
        """Whether every metric has a score."""
        return all(isinstance(cell, Scored) for cell in self.cells.values())

    def to_json(self) -> Value:
        """Return values for the record: a score in millionths, a failure as its kind."""
        cells: dict[str, JsonValue] = {
            name: c.value if isinstance(c, Scored) else c.kind for name, c in self.cells.items()
        }
        value: dict[str, JsonValue] = {
            "cells": cells,
            "trajectory": dict(self.trajectory.to_json()),
            "feedback": self.feedback,
        }
        if self.failure:
            value["failure"] = self.failure
        if any(self.judged):
            value["judged"] = list(self.judged)
        if self.statements:
            value["statements"] = [[[score, why] for score, why in each] for each in self.statements]
        return value

    @classmethod
    def from_json(cls, value: Any) -> Outcome:
        """Read the values of `to_json`."""
        cells = {n: Scored(c) if isinstance(c, int) else Unmeasured(c) for n, c in value["cells"].items()}
        trajectory, judged = Trajectory.from_json(value["trajectory"]), tuple(value.get("judged", (0, 0, 0)))
        statements = tuple(tuple((score, why) for score, why in each) for each in value.get("statements", ()))
        return cls(cells, trajectory, value["feedback"], value.get("failure", ""), judged, statements)


class _ReadSkill(NamedTuple):
    """A skill as a rollout gets it, with its digest and the digest of the part that the target can read."""

    key: str
    skill: Skill | None
    text_digest: str | None


_READ_NOTHING = _ReadSkill("none", None, None)


class Rollouts:
    """Run and measure rollouts, each (skill, example, sample) once unless it fails.

    Args:
        plan: whose metrics are measured.
        runner: runs one rollout.
        meter: measures it.
        observer: gets the progress.
        record: has the outcomes of a resumed run.
        judges: asked before a rollout is measured; None if no metric reads a judge.
        initial: the skill that a judge compares with; None if none does.
    """

    def __init__(
        self,
        plan: Plan,
        runner: Runner,
        meter: Meter,
        observer: Observer,
        record: Record | None = None,
        *,
        judges: Judges | None = None,
        initial: Document | None = None,
    ) -> None:
        self._plan = plan
        self._runner = runner
        self._meter = meter
        self._observer = observer
        self._record = record or Unrecorded()
        self._judges = judges or None
        self._initial = initial
        self._attempts: Counter[_Key] = Counter()
        self._known: dict[_Key, Outcome] = {}
        self._held: dict[tuple[Term, str], bool] = {}
        self._flights: SingleFlight[_Key, Outcome] = SingleFlight()
        # By identity, because hashing and rendering are slow. The document is kept alive: its id is not reused.
        self._skills: dict[int, _ReadSkill] = {}

    @property
    def root(self) -> Path:
        """The program's folder."""
        return self._meter.root

    def known(self, skill: Document | None, example: Example, sample: int = 0) -> Outcome | None:
        """Return the outcome of an earlier rollout, or None."""
        return self._known.get((self._read(skill).key, example.id, sample))

    def outcome(self, skill: str, example: str, sample: int = 0) -> Outcome | None:
        """Return the outcome of an earlier rollout by the digest of its skill and the id of its example, or None."""
        return self._known.get((skill, example, sample))

    def examples(self) -> frozenset[str]:
        """Return the ids of the examples that any skill was run on."""
        return frozenset(example for _, example, _ in self._known)

    def holds(self, condition: Term, example: Example) -> bool:
        """Return whether a condition on the data holds for an example; kept for the whole run."""
        key = (condition, example.id)
        if key not in self._held:
            self._held[key] = self._meter.holds(condition, example)
        return self._held[key]

    def score(self, skill: Document | None, example: Example, metric: str, sample: int = 0) -> int | None:
        """Return the score of one sample in millionths, None if it is not measured."""
        outcome = self.known(skill, example, sample)
        cell = outcome.cells.get(metric) if outcome else None
        return cell.value if isinstance(cell, Scored) else None

    def total(self, skill: Document | None, example: Example, metric: str, *, samples: int) -> int | None:
        """Return the sum of the scores of all samples in millionths, None if one of them is not measured."""
        scores = [self.score(skill, example, metric, sample) for sample in range(samples)]
        measured = [score for score in scores if score is not None]
        return sum(measured) if len(measured) == samples else None

    def judged(self) -> tuple[int, int, int]:
        """Return the counts of `Outcome.judged` over all rollouts so far."""
        counts = [outcome.judged for outcome in self._known.values()]
        return sum(each[0] for each in counts), sum(each[1] for each in counts), sum(each[2] for each in counts)

    def is_measured(self, skill: Document | None, example: Example, samples: Iterable[int]) -> bool:
        """Return whether every metric has a score for all of some samples."""
        return all((known := self.known(skill, example, sample)) and known.measured for sample in samples)

    def unmeasured(self, skill: Document | None, examples: Iterable[Example], sample: int = 0) -> list[Example]:
        """Return the examples without a measured outcome, in order."""
        return [example for example in examples if not self.is_measured(skill, example, [sample])]

    async def measure(
        self, skill: Document | None, examples: Sequence[Example], *, stage: str, sample: int = 0, shown: bool = True
    ) -> list[Outcome]:
        """Return the outcomes of a skill on examples, in order; only unmeasured ones are run.

        `shown` reports progress to the observer.

        Raises:
            PermanentFailure, BudgetReached: from the models.
            MetricError: a metric raised or left its range.
        """
        read = self._read(skill)
        await self._measure_initial(read.key, examples, stage=stage, sample=sample)
        wave = self._record.wave()

        async def run(example: Example) -> Outcome:
            place = (read.key, example.id, sample)
            earlier, attempt = self._known.get(place), self._attempts[place]
            self._attempts[place] += 1

            async def work() -> Outcome:
                with span("rollout", _described(read, example, sample, attempt, stage)) as opened:
                    outcome = await rolled_out()
                    _measured_on(opened, outcome)
                    return outcome

            async def rolled_out() -> Outcome:
                try:
                    # If only a judge failed, the rollout itself is not repeated.
                    rollout = (
                        Rollout(earlier.trajectory)
                        if earlier is not None and earlier.failure
                        else await self._runner(read.skill, example, sample, stage)
                    )
                    return await self._measured(read.key, example, rollout, (sample, attempt), stage)
                except BackendFailed as problem:
                    raise problem.on(f"{self._meter.describe(example)}{self._meter.input_lines(example)}") from None

            outcome = await _recorded(wave, ["rollout", read.text_digest, example.id, sample], work)
            self._known[place] = outcome
            return outcome

        outcomes = await gather([self._one((read.key, e.id, sample), partial(run, e), shown=shown) for e in examples])
        wave.close()
        return outcomes

    def _read(self, skill: Document | None) -> _ReadSkill:
        if skill is None:
            return _READ_NOTHING
        if id(skill) not in self._skills:
            read = Skill.of(skill)
            self._skills[id(skill)] = _ReadSkill(digest(skill), read, read.digest(self._plan.skill.load))
        return self._skills[id(skill)]

    async def _one(self, key: _Key, run: Callable[[], Coroutine[Any, Any, Outcome]], *, shown: bool) -> Outcome:
        known = self._known.get(key)
        if known is None or not known.measured:
            known = await self._flights.join(key, run)
        if shown:
            self._observer.advance()
        return known

    async def judge_again(
        self,
        skill: Document | None,
        examples: Sequence[Example],
        *,
        stage: str,
        sample: int = 0,
        repeat: int = 1,
        attempts: int = 1,
    ) -> list[Outcome | None]:
        """Ask the judges of known rollouts again; return the outcomes, None for an example without a rollout.

        The outcomes of `measure` are unchanged.

        Args:
            skill: of the rollouts.
            examples: of the rollouts.
            stage: for the ledger.
            sample: of the rollouts.
            repeat: number of the judgement, from 1. Each number is a separate judgement.
            attempts: the maximum number of times a failing judge is asked.

        Raises:
            PermanentFailure, BudgetReached, MetricError: as `measure`.
        """
        read, wave = self._read(skill), self._record.wave()

        async def run(example: Example) -> Outcome | None:
            known = self.known(skill, example, sample)
            if known is None or not (known.measured or known.failure):
                return None
            found = known
            for attempt in range(attempts):

                async def work(attempt: int = attempt) -> Outcome:
                    index = (sample, attempt, repeat)
                    with span("judge again", _described(read, example, sample, attempt, stage)) as opened:
                        outcome = await self._measured(read.key, example, Rollout(known.trajectory), index, stage)
                        _measured_on(opened, outcome)
                        return outcome

                name = ["judged", read.text_digest, example.id, sample, repeat, attempt]
                found = await _recorded(wave, name, work)
                if found.measured:
                    break
            self._observer.advance()
            return found

        outcomes = await gather([run(example) for example in examples])
        wave.close()
        return outcomes

    async def _measure_initial(self, key: str, examples: Sequence[Example], *, stage: str, sample: int) -> None:
        """If a judge compares with the initial skill, run it on the examples that have no such rollout yet."""
        if self._initial is None or key == self._read(self._initial).key:
            return
        missing = [each for each in examples if self._initial_rollout(each, sample) is None]
        if missing:
            await self.measure(self._initial, missing, stage=stage, sample=sample, shown=False)

    def _initial_rollout(self, example: Example, sample: int) -> Trajectory | None:
        """Return the initial skill's rollout of an example, None without a whole one."""
        known = self.known(self._initial, example, sample)
        return known.trajectory if known is not None and (known.measured or known.failure) else None

    async def _measured(
        self, key: str, example: Example, rollout: Rollout, sample: tuple[int, ...], stage: str
    ) -> Outcome:
        """Measure a rollout after its judges were asked; `sample` is that of the rollout, and its attempt."""
        if rollout.failure is not None:
            why = f"{rollout.failure}: {rollout.detail}" if rollout.detail else rollout.failure
            return Outcome(unmeasured(self._plan, rollout.failure), Trajectory(), why)
        trajectory, verdicts = rollout.trajectory, NO_VERDICTS
        if self._judges is not None and trajectory.answer is not None:
            initial = self._initial
            own = initial is not None and key == self._read(initial).key
            reference = trajectory if own else None if initial is None else self._initial_rollout(example, sample[0])
            try:
                verdicts = await self._judges.judge(example, trajectory, initial=reference, sample=sample, stage=stage)
            except NoReference as problem:
                raise MetricError(f"{self._meter.describe(example)}: {problem.message}", hint=problem.hint) from None
        measured = self._meter.measure(example, trajectory, verdicts)
        found = statement_marks(self._judges.each if self._judges is not None else (), verdicts)
        return Outcome(measured.cells, trajectory, measured.feedback, measured.failure, counts_of(verdicts), found)


def _described(read: _ReadSkill, example: Example, sample: int, attempt: int, stage: str) -> Attributes:
    """Return the attributes of the span of a rollout."""
    return {
        "skillc.skill": read.key,
        "skillc.example": example.id,
        "skillc.sample": sample,
        "skillc.attempt": attempt,
        "skillc.stage": stage,
    }


def _measured_on(opened: Span, outcome: Outcome) -> None:
    """Set the scores of a rollout on its span; mark the span of an unmeasured rollout as failed."""
    if opened is NO_SPAN:
        return
    scored = {name: cell for name, cell in outcome.cells.items() if isinstance(cell, Scored)}
    opened.set({f"skillc.score.{name}": cell.value / MICRO for name, cell in scored.items()})
    failed = failure_kind(outcome)
    if failed is not None:
        opened.fail(failed, outcome.failure or outcome.feedback)


async def _recorded(wave: Wave, name: Sequence[JsonValue], work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    """Return the outcome recorded under a name; otherwise do the work and record it."""

    async def recordable() -> tuple[Value, bool]:
        outcome = await work()
        return outcome.to_json(), outcome.measured

    return Outcome.from_json(await wave.once(name, recordable))


def failure_kind(outcome: Outcome) -> str | None:
    """Return the kind of failure of an unmeasured outcome, or None."""
    return next((cell.kind for cell in outcome.cells.values() if isinstance(cell, Unmeasured)), None)


def is_failure(plan: Plan, outcome: Outcome) -> bool | None:
    """Return whether the goal is below its best value, None if it is not measured."""
    goal = outcome.cells[plan.goal.name]
    return goal.value < plan.goal.high * MICRO if isinstance(goal, Scored) else None


class Prefetcher:
    """Roll out the next step's batch with the lowest priority while a gate waits for its own rollouts.

    Every prefetched rollout is awaited, used or not, so that the charges of a run do not depend on timing. Without
    `rollouts` nothing is prefetched; `admits` returns whether that many more rollouts fit under the caps at worst.

    Attributes:
        sent: prefetched rollouts so far.
        wasted: those of them that no step used.
    """

    def __init__(self, rollouts: Rollouts | None, admits: Callable[[int], bool]) -> None:
        self._rollouts = rollouts
        self._admits = admits
        self._next: tuple[Example, ...] = ()
        self._open: list[tuple[str, int, asyncio.Task[list[Outcome]]]] = []
        self.sent = self.wasted = 0

    def expect(self, batch: Sequence[Example]) -> None:
        """Set the batch of the next step; empty if there is no next step or the skill will change before it."""
        self._next = tuple(batch)

    def send(self, skill: Document, *, beside: int) -> None:
        """Prefetch that batch for a skill, if it fits under the caps together with `beside` other rollouts."""
        if self._rollouts is None:
            return
        todo = self._rollouts.unmeasured(skill, self._next)
        if not todo or not self._admits(len(todo) + beside):
            return
        with prefetching():
            task = asyncio.ensure_future(self._rollouts.measure(skill, todo, stage="rollout", shown=False))
        self._open.append((digest(skill), len(todo), task))
        self.sent += len(todo)

    async def arrive(self, skill: Document | None) -> None:
        """Await all prefetched rollouts. Those for a skill other than the next step's are wasted.

        Raises:
            BudgetReached, PermanentFailure, MetricError: as `Rollouts.measure`.
        """
        while self._open:
            name, count, task = self._open[0]
            await asyncio.shield(task)
            self.wasted += count * (skill is None or name != digest(skill))
            del self._open[0]

    async def drop(self) -> None:
        """Cancel the rollouts in flight."""
        tasks = [task for _, _, task in self._open]
        self._open.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


NO_PREFETCH = Prefetcher(None, lambda rollouts: False)
