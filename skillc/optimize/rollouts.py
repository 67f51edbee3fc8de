"""Rollouts with their scores: the one place where the loop measures a skill, and never the same thing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from skillc.data.example import Example
from skillc.document.render import for_target
from skillc.document.skill import Document, digest
from skillc.metrics.cells import Cell, Scored, Unmeasured
from skillc.metrics.evaluate import Meter, unmeasured
from skillc.optimize.observer import Observer
from skillc.plan.schema import Plan
from skillc.program.rollout import Rollout

# How one rollout is run: skill text (None for no skill), example, sample index, stage.
Runner = Callable[[str | None, Example, int, str], Awaitable[Rollout]]

NO_SKILL = "none"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rollout, measured: a cell per metric, and what a reflection may be shown."""

    cells: Mapping[str, Cell]
    answer: Mapping[str, JsonValue] | None
    reply: str
    feedback: str
    cost: int | None = 0

    @property
    def measured(self) -> bool:
        """Whether every metric has a score."""
        return all(isinstance(cell, Scored) for cell in self.cells.values())


class Rollouts:
    """Runs and measures rollouts; remembers each outcome by (skill, example, sample), failures excepted."""

    def __init__(self, plan: Plan, runner: Runner, meter: Meter, observer: Observer) -> None:
        self._plan = plan
        self._runner = runner
        self._meter = meter
        self._observer = observer
        self._known: dict[tuple[str, str, int], Outcome] = {}
        # By identity, with the document so that its identity is not given away: hashing renders the whole text.
        self._keys: dict[int, tuple[Document, str]] = {}

    def known(self, skill: Document | None, example: Example, sample: int = 0) -> Outcome | None:
        """The outcome that was measured before, or None where there is none."""
        return self._known.get((self._key(skill), example.id, sample))

    def score(self, skill: Document | None, example: Example, metric: str) -> int | None:
        """The score of sample 0 in millionths, None where it was not measured."""
        outcome = self.known(skill, example)
        cell = outcome.cells.get(metric) if outcome else None
        return cell.value if isinstance(cell, Scored) else None

    async def measure(
        self, skill: Document | None, examples: Sequence[Example], *, stage: str, sample: int = 0
    ) -> list[Outcome]:
        """The outcomes of a skill on examples, in their order; what is known and measured is not run again.

        Raises:
            PermanentFailure, BudgetReached: from the models.
            MetricError: a metric raised or left its range.
        """
        text = for_target(skill) if skill is not None else None
        key = self._key(skill)
        jobs = [self._one(key, text, example, sample, stage) for example in examples]
        return await gather(jobs)

    def _key(self, skill: Document | None) -> str:
        if skill is None:
            return NO_SKILL
        if id(skill) not in self._keys:
            self._keys[id(skill)] = (skill, digest(skill))
        return self._keys[id(skill)][1]

    async def _one(self, key: str, text: str | None, example: Example, sample: int, stage: str) -> Outcome:
        known = self._known.get((key, example.id, sample))
        if known is None or not known.measured:
            rollout = await self._runner(text, example, sample, stage)
            known = self._measured(example, rollout)
            self._known[key, example.id, sample] = known
        self._observer.advance()
        return known

    def _measured(self, example: Example, rollout: Rollout) -> Outcome:
        if rollout.failure is not None:
            return Outcome(unmeasured(self._plan, rollout.failure), None, "", f"not measured: {rollout.failure}")
        measured = self._meter.measure(example, rollout.prediction, rollout.problem)
        return Outcome(measured.cells, rollout.prediction, rollout.reply, measured.feedback, rollout.cost)


def failure_kind(outcome: Outcome) -> str | None:
    """What kept an outcome from being measured, or None."""
    return next((cell.kind for cell in outcome.cells.values() if isinstance(cell, Unmeasured)), None)


async def gather(jobs: Sequence[Awaitable[T]]) -> list[T]:
    """All results in order. The first error cancels the rest and waits for them, so nothing runs on behind it."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
