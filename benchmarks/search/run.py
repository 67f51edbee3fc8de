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

from benchmarks.search.mixed import Mix, MixedWorld
from benchmarks.search.mixed_optimizer import MixedOptimizer
from benchmarks.search.optimizer import ScriptedOptimizer
from benchmarks.search.world import Settings, World
from skillc.budget.steps import decisions_of, wave_size
from skillc.document.skill import Document, digest
from skillc.frontend import estimate, plan_file
from skillc.metrics.meter import Meter
from skillc.models.failures import BudgetReached
from skillc.optimize.ask import Optimizer
from skillc.optimize.engine import Engine
from skillc.optimize.host import SilentObserver
from skillc.optimize.loop.train import train
from skillc.optimize.rollouts import Outcome, Rollouts
from skillc.outcomes import Example
from skillc.plan.initial import initial_document
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout
from skillc.trajectories.trajectory import one_turn

PROGRAM = Path(__file__).with_name("world.skill")
MIXED_PROGRAM = Path(__file__).with_name("mixed.skill")


@dataclass(frozen=True, slots=True)
class Job:
    """One run: an arm is the list of its `--set` changes to the program, `calls` the cap on target calls."""

    world: Settings | Mix
    seed: int
    changes: tuple[str, ...]
    calls: int
    program: Path | None = None
    optimizer: type[ScriptedOptimizer] | None = None

    @property
    def source(self) -> Path:
        """The program; by default the one of the kind of world."""
        return self.program or (PROGRAM if isinstance(self.world, Settings) else MIXED_PROGRAM)

    def script(self, world: World | MixedWorld) -> ScriptedOptimizer:
        """The optimizer; by default the one of the kind of world."""
        if isinstance(world, MixedWorld):
            return MixedOptimizer(world)
        return (self.optimizer or ScriptedOptimizer)(world)


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

    def __init__(self, world: Any, cap: int) -> None:
        self._world, self._cap = world, cap
        self._rules: dict[str, Any] = {}
        self.stages: Counter[str] = Counter()

    async def __call__(self, skill: Skill | None, example: Example, sample: int, stage: str) -> Rollout:
        text = skill.text if skill is not None else None
        if self.stages.total() >= self._cap:
            raise BudgetReached("calls")
        self.stages[stage] += 1
        told, case = text or "", int(example.id)
        if told not in self._rules:
            self._rules[told] = self._world.read(told)
        answer = self._world.answer(told, self._rules[told], case, sample)
        return Rollout(one_turn(answer, {"answer": answer}))


class _Known(Rollouts):
    """Rollouts that remember the text of each skill's rules, by the digest that the history gives it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.texts: dict[str, str] = {}

    async def measure(
        self, skill: Document | None, examples: Sequence[Example], *, stage: str, sample: int = 0, **more: Any
    ) -> list[Outcome]:
        if skill is not None and stage in ("baseline", "gate"):
            self.texts.setdefault(digest(skill), _text(skill))
        return await super().measure(skill, examples, stage=stage, sample=sample, **more)


class _Watch(SilentObserver):
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
    own = job.world
    world: Any = own.draw(job.seed)
    shutil.copy(job.source, folder)
    _write(folder / "train.jsonl", world, range(own.train))
    _write(folder / "validation.jsonl", world, range(own.train, own.train + own.validation))
    planned = plan_file(folder / job.source.name, settings=[f"data.seed={job.seed}", *job.changes])
    plan, dataset = planned.plan, estimate(planned).dataset
    target = _Target(world, job.calls)
    observer = _Watch(target)
    script = job.script(world)
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
            curve.append((calls, world.gain(world.read(rollouts.texts[str(record["candidate"])]))))
    best = world.read(_text(trained.state.best))
    return Ran(
        curve=tuple(curve),
        decisions=Counter(str(record["result"]) for record in observer.decisions),
        stages=dict(target.stages),
        rules=Counter(rule[0] for rule in best),
        asked=script.calls,
        gain=world.gain(best),
    )


def _text(skill: Document) -> str:
    return "\n".join(rule.text for rule in skill.rules)


def _write(path: Path, world: Any, cases: Sequence[int]) -> None:
    path.write_text("".join(json.dumps(world.row(case)) + "\n" for case in cases))
