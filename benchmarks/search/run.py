"""One run of skillc's own loop in a world, with a scripted target and a scripted optimizer."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from benchmarks.search.optimizer import ScriptedOptimizer
from benchmarks.search.world import Settings, World, rules_in
from skillc.data.example import Example
from skillc.document.skill import Document, digest
from skillc.frontend import estimate, plan_file
from skillc.metrics.evaluate import Meter
from skillc.models.failures import BudgetReached
from skillc.optimize.ask import Optimizer
from skillc.optimize.engine import Engine
from skillc.optimize.loop import train
from skillc.optimize.observer import Silent
from skillc.optimize.rollouts import Outcome, Rollouts
from skillc.plan.initial import initial_document
from skillc.plan.steps import decisions_of, wave_size
from skillc.program.rollout import Rollout

PROGRAM = Path(__file__).with_name("world.skill")


@dataclass(frozen=True, slots=True)
class Job:
    """One run: an arm is the list of its `--set` changes to the program, `calls` the cap on target calls."""

    world: Settings
    seed: int
    changes: tuple[str, ...]
    calls: int
    program: Path = PROGRAM
    optimizer: type[ScriptedOptimizer] = ScriptedOptimizer


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run.

    Attributes:
        curve: (target calls so far, share of the attainable gain) of the best skill, at the start and each accept.
        decisions: by result.
        stages: target calls by stage.
        rules: of the last skill, by kind.
        asked: calls of the optimizer.
        gain: the share of the attainable gain of the best skill at the run's end.
    """

    curve: tuple[tuple[int, float], ...]
    decisions: Mapping[str, int]
    stages: Mapping[str, int]
    rules: Mapping[str, int]
    asked: int
    gain: float

    def at(self, calls: int) -> float:
        """The share of the attainable gain after so many target calls."""
        return max((point for point in self.curve if point[0] <= calls), default=(0, 0.0))[1]


class _Target:
    """The scripted target; it stops the run at the cap, as the ledger would."""

    def __init__(self, world: World, cap: int) -> None:
        self._world, self._cap = world, cap
        self._rules: dict[str, frozenset[str]] = {}
        self.stages: Counter[str] = Counter()

    async def __call__(self, text: str | None, example: Example, sample: int, stage: str) -> Rollout:
        if self.stages.total() >= self._cap:
            raise BudgetReached("calls")
        self.stages[stage] += 1
        told, case = text or "", int(example.id)
        if told not in self._rules:
            self._rules[told] = rules_in(told)
        right = self._world.right(self._rules[told], case) != self._world.slips(told, case, sample)
        answer = "right" if right else "wrong"
        return Rollout({"answer": answer}, answer)


class _Known(Rollouts):
    """Rollouts that remember which rules each skill held, by the digest that the history gives it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.rules: dict[str, frozenset[str]] = {}

    async def measure(
        self, skill: Document | None, examples: Sequence[Example], *, stage: str, sample: int = 0, **more: Any
    ) -> list[Outcome]:
        if skill is not None and stage in ("baseline", "gate"):
            self.rules.setdefault(digest(skill), _rules(skill))
        return await super().measure(skill, examples, stage=stage, sample=sample, **more)


class _Watch(Silent):
    """Notes how many target calls each decision came after."""

    def __init__(self, target: _Target) -> None:
        super().__init__()
        self._target = target
        self.marks: list[int] = []

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        super().decided(record)
        self.marks.append(self._target.stages.total())


class _NoTest:
    """There is no final test here, so nothing is kept back for it."""

    def set_aside(self) -> None:
        """Nothing."""

    def open_reserve(self) -> None:
        """Nothing."""


def run(job: Job) -> Ran:
    """Trains until the target calls are used up."""
    folder = Path(tempfile.mkdtemp(prefix="skillc-search-"))
    try:
        return asyncio.run(_run(job, folder))
    finally:
        shutil.rmtree(folder)


async def _run(job: Job, folder: Path) -> Ran:
    world, own = World(job.world, job.seed), job.world
    shutil.copy(job.program, folder)
    _write(folder / "train.jsonl", range(own.train))
    _write(folder / "validation.jsonl", range(own.train, own.train + own.validation))
    planned = plan_file(folder / job.program.name, settings=[f"data.seed={job.seed}", *job.changes])
    plan, dataset = planned.plan, estimate(planned).dataset
    target = _Target(world, job.calls)
    observer = _Watch(target)
    script = job.optimizer(world)
    rollouts = _Known(plan, target, Meter(plan, folder), observer)
    engine = Engine(
        plan=plan,
        dataset=dataset,
        rollouts=rollouts,
        optimizer=Optimizer(script, observer),  # type: ignore[arg-type]
        observer=observer,
        wave=wave_size(plan, len(dataset.validation)),
        planned=decisions_of(plan, len(dataset.train)),
        reserve=_NoTest(),
    )
    trained = await train(engine, initial_document(plan))
    curve = [(own.validation, 0.0)]
    for record, calls in zip(observer.decisions, observer.marks, strict=True):
        if record["result"] == "accept":
            curve.append((calls, world.gain(rollouts.rules[str(record["candidate"])])))
    return Ran(
        curve=tuple(curve),
        decisions=Counter(str(record["result"]) for record in observer.decisions),
        stages=dict(target.stages),
        rules=Counter(rule[0] for rule in _rules(trained.state.best)),
        asked=script.calls,
        gain=world.gain(_rules(trained.state.best)),
    )


def _rules(skill: Document) -> frozenset[str]:
    return frozenset().union(*(rules_in(rule.text) for rule in skill.rules))


def _write(path: Path, cases: Sequence[int]) -> None:
    rows = (json.dumps({"id": str(case), "case": f"case {case}", "answer": "right"}) for case in cases)
    path.write_text("".join(row + "\n" for row in rows))
