"""One run of skillc's own loop in a world, with a scripted target and a scripted optimizer."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from benchmarks.search.optimizer import ScriptedOptimizer
from benchmarks.search.world import Settings, World, ideas
from skillc.data.example import Example
from skillc.document.skill import digest
from skillc.frontend import estimate, plan_file
from skillc.metrics.evaluate import Meter
from skillc.models.failures import BudgetReached
from skillc.optimize.ask import Optimizer
from skillc.optimize.engine import Engine
from skillc.optimize.loop import train
from skillc.optimize.observer import Silent
from skillc.optimize.rollouts import Rollouts
from skillc.plan.initial import initial_document
from skillc.plan.steps import steps_of, wave_size
from skillc.program.rollout import Rollout

PROGRAM = Path(__file__).with_name("world.skill")


@dataclass(frozen=True, slots=True)
class Job:
    """What one process works on: an arm is a list of `--set` changes of the program."""

    world: Settings
    seed: int
    changes: tuple[str, ...]
    calls: int


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it.

    Attributes:
        curve: (target calls so far, share of the attainable gain) at the start and after each accept.
        decisions: by result.
        stages: target calls by stage.
        kinds: rules of the final skill by their first letter.
    """

    curve: tuple[tuple[int, float], ...]
    decisions: Mapping[str, int]
    stages: Mapping[str, int]
    kinds: Mapping[str, int]
    optimizer_calls: int

    def at(self, calls: int) -> float:
        """The share of the attainable gain after so many target calls."""
        return next(gain for spent, gain in reversed(self.curve) if spent <= calls)


class _Target:
    """The scripted target; it stops the run at the cap, as the ledger would."""

    def __init__(self, world: World, cap: int) -> None:
        self._world, self._cap = world, cap
        self._rules: dict[str, frozenset[str]] = {}
        self.calls = 0
        self.stages: dict[str, int] = {}

    async def __call__(self, text: str | None, example: Example, sample: int, stage: str) -> Rollout:
        if self.calls >= self._cap:
            raise BudgetReached("calls")
        self.calls += 1
        self.stages[stage] = self.stages.get(stage, 0) + 1
        told = text or ""
        if told not in self._rules:
            self._rules[told] = ideas(told)
        case = int(example.id)
        right = self._world.right(self._rules[told], case) != self._world.slips(told, case, sample)
        return Rollout({"answer": "right" if right else "wrong"}, "right" if right else "wrong")


class _Watch(Silent):
    """Notes how many target calls each decision came after."""

    def __init__(self, target: _Target) -> None:
        super().__init__()
        self._target = target
        self.marks: list[int] = []

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        super().decided(record)
        self.marks.append(self._target.calls)


class _NoTest:
    """There is no final test here, so nothing is kept back for it."""

    def set_aside(self) -> None:
        """Nothing."""

    def open_reserve(self) -> None:
        """Nothing."""


def run(job: Job) -> Ran:
    """Trains until the target calls are used up."""
    folder = Path(tempfile.mkdtemp(prefix="search-"))
    try:
        return asyncio.run(_run(job, folder))
    finally:
        shutil.rmtree(folder)


async def _run(job: Job, folder: Path) -> Ran:
    world = World(job.world, job.seed)
    shutil.copy(PROGRAM, folder)
    own = job.world
    _rows(folder / "train.jsonl", range(own.train))
    _rows(folder / "validation.jsonl", range(own.train, own.train + own.validation))
    planned = plan_file(folder / PROGRAM.name, settings=[f"data.seed={job.seed}", *job.changes])
    plan, dataset = planned.plan, estimate(planned).dataset
    target = _Target(world, job.calls)
    observer = _Watch(target)
    script = ScriptedOptimizer(world)
    engine = Engine(
        plan=plan,
        dataset=dataset,
        rollouts=Rollouts(plan, target, Meter(plan, folder), observer),
        optimizer=Optimizer(script, observer),  # type: ignore[arg-type]
        observer=observer,
        wave=wave_size(plan, len(dataset.validation)),
        planned=steps_of(plan, len(dataset.train)),
        reserve=_NoTest(),
    )
    texts: dict[str, frozenset[str]] = {}
    measure = engine.rollouts.measure

    async def keep(skill, examples, **options):  # type: ignore[no-untyped-def]
        if skill is not None:
            key = digest(skill)
            texts.setdefault(key, frozenset().union(*(ideas(rule.text) for rule in skill.rules)))
        return await measure(skill, examples, **options)

    engine.rollouts.measure = keep  # type: ignore[method-assign]
    trained = await train(engine, initial_document(plan.skill))
    curve = [(own.validation, 0.0)]
    counts: dict[str, int] = {}
    for record, calls in zip(observer.decisions, observer.marks, strict=True):
        result = str(record["result"])
        counts[result] = counts.get(result, 0) + 1
        if result == "accept":
            curve.append((calls, world.gain(texts[str(record["candidate"])])))
    final = frozenset().union(*(ideas(rule.text) for rule in trained.state.incumbent.rules))
    kinds: dict[str, int] = {}
    for rule in final:
        kinds[rule[0]] = kinds.get(rule[0], 0) + 1
    return Ran(tuple(curve), counts, target.stages, kinds, script.calls)


def _rows(path: Path, cases: Sequence[int]) -> None:
    rows = (json.dumps({"id": str(case), "case": f"case {case}", "answer": "right"}) for case in cases)
    path.write_text("".join(row + "\n" for row in rows))
