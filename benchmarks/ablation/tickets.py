"""One run on `examples/tickets` with the embedded rulebook for both models, up to a cap on target calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.search.run import _NoTest
from skillc.budget.steps import decisions_of, wave_size
from skillc.document.skill import Document
from skillc.frontend import estimate, plan_file
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.failures import BudgetReached
from skillc.models.rulebook import answer
from skillc.optimize.ask import Optimizer
from skillc.optimize.engine import Engine
from skillc.optimize.host import SilentObserver
from skillc.optimize.loop.train import train
from skillc.optimize.rollouts import Rollouts
from skillc.outcomes import Example
from skillc.plan.initial import initial_document
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout, RolloutRunner

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "tickets" / "tickets.skill"


@dataclass(frozen=True, slots=True)
class Job:
    """One run; the seed also decides the split of the tickets."""

    seed: int
    settings: tuple[str, ...]
    calls: int


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it: the goal's mean on the test split for the initial and the best skill, and what was decided."""

    before: float
    after: float
    accepted: int
    decisions: int
    calls: int

    @property
    def gain(self) -> float:
        return self.after - self.before


async def rulebook(sent: Mapping[str, Any]) -> dict[str, Any]:
    """The transport: the rulebook itself, without litellm around it."""
    text = answer(sent["messages"], {name: sent[name] for name in ("max_tokens", "temperature") if name in sent})
    usage = {"prompt_tokens": 300, "completion_tokens": 10}
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage, "model": "rulebook"}


class _Capped:
    """Ends the run at a number of target calls."""

    def __init__(self, runner: RolloutRunner, cap: int) -> None:
        self._runner, self._cap = runner, cap
        self.calls = 0

    async def __call__(self, skill: Skill | None, example: Example, sample: int, stage: str) -> Rollout:
        if stage != "test":
            if self.calls >= self._cap:
                raise BudgetReached("calls")
            self.calls += 1
        return await self._runner(skill, example, sample, stage)


def run(job: Job) -> Ran:
    """Trains until the calls are used up, then measures both skills on the test split."""
    return asyncio.run(_run(job))


async def _run(job: Job) -> Ran:
    uncapped = ["budget.time=none", "budget.patience=none", "budget.epochs=20"]
    planned = plan_file(PROGRAM, settings=[f"data.seed={job.seed}", *uncapped, *job.settings])
    plan, dataset = planned.plan, estimate(planned).dataset
    observer = SilentObserver()
    with Client(plan, transport=rulebook) as client:
        target = _Capped(RolloutRunner(plan, client), job.calls)
        rollouts = Rollouts(plan, target, Meter(plan, planned.root), observer)
        engine = Engine(
            plan=plan,
            dataset=dataset,
            rollouts=rollouts,
            optimizer=Optimizer(client, observer),
            observer=observer,
            wave=wave_size(plan, len(dataset.validation)),
            planned=decisions_of(plan, len(dataset.train)),
            reserve=_NoTest(),
        )
        trained = await train(engine, initial_document(plan))
        state = trained.state

        async def scored(skill: Document) -> float:
            await rollouts.measure(skill, dataset.test, stage="test")
            scores = [rollouts.score(skill, example, plan.goal.name) or 0 for example in dataset.test]
            return sum(scores) / len(scores) / 10**6

        before, after = await scored(state.initial), await scored(state.best)
    return Ran(before, after, state.accepted, state.decisions, target.calls)
