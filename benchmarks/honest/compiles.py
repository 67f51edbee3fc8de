"""Whole compiles in a world: baseline, steps, final test and verdict by skillc's own engine, models scripted."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from worlds import HELPFUL, Proposer, World, dataset, proposer

from skillc.budget.steps import steps_of, wave_size
from skillc.data.dataset import Dataset
from skillc.document.skill import Document, digest
from skillc.frontend import plan_file
from skillc.metrics.meter import Meter
from skillc.optimize.ask import Optimizer
from skillc.optimize.engine import Engine, mean_score
from skillc.optimize.final import final_test
from skillc.optimize.host import SilentObserver
from skillc.optimize.loop.train import TrainResult, train
from skillc.optimize.propose.replies import AggregateReply, MetaSkillReply, ProposedEdit, ReflectReply
from skillc.optimize.rollouts import Rollouts
from skillc.plan.initial import initial_document
from skillc.plan.lock import LookLock, add_look
from skillc.plan.schema import Plan
from skillc.stats.verdict import Verdict

PROGRAM = """language 1
task {
  input  question: text
  output answer: "right" | "wrong"
}
skill guess {
  about = "Answer questions."
  frozen section role = "You answer."
  trainable section rules { limit = 4000 tokens }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "none.jsonl"; field kind: text }
goal correct = exact_match(answer)
optimize {
  batch = 12; minibatch = 12; edits = constant(2); drafts = 0; update = edits
  replay = 0; successes = off; meta_skill = off
}
budget { steps = 10; patience = 1000 steps }
gate better = GATE
"""
STRICT = "candidate.correct > incumbent.correct"
CONFIDENT = "confidence(candidate.correct > incumbent.correct) >= 95%"


@dataclass(frozen=True, slots=True)
class Size:
    """Examples on each side, and steps of the run."""

    train: int = 48
    validation: int = 60
    test: int = 200
    steps: int = 10


@dataclass(frozen=True, slots=True)
class Result:
    """The report of one compile, and the truth.

    Attributes:
        inflation: how far the best skill's validation mean lies above its true mean; None without an accept.
        helpful: whether the best skill holds the helpful rule.
    """

    verdict: Verdict
    decisions: tuple[Mapping[str, Any], ...]
    accepted: int
    inflation: float | None
    helpful: bool
    look: LookLock
    trained: TrainResult
    notes: tuple[str, ...] = ()

    @property
    def gain(self) -> float:
        """The gain that is reported; 0 where the initial skill stays."""
        return float(self.verdict.gain or 0)


class Scripted(Optimizer):
    """An optimizer that proposes by a function of the sample."""

    def __init__(self, propose: Proposer) -> None:
        self._propose = propose

    async def ask(self, kind: type[Any], messages: Any, *, sample: tuple[int, ...], **_: Any) -> Any:
        """A typed reply; the edits cite the first trajectories of their minibatch."""
        if kind is MetaSkillReply:
            return MetaSkillReply(memory="Nothing to remember.")
        if kind is AggregateReply:
            # Without a merge of the optimizer's own, equal edits are joined and all are kept.
            return None
        assert kind is ReflectReply, kind
        cited = ("t1", "t2", "t3")
        return ReflectReply(
            edits=tuple(ProposedEdit(op="add", section="rules", text=t, cures=cited) for t in self._propose(sample))
        )


class Open:
    """A budget without caps keeps nothing back."""

    def set_aside(self) -> None:
        """Nothing."""

    def open_reserve(self) -> None:
        """Nothing."""


@cache
def plan_of(gate: str = STRICT, samples: int = 1) -> Plan:
    """The plan of the program with a gate."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "guess.skill"
        path.write_text(PROGRAM.replace("GATE", gate), encoding="utf-8")
        return plan_file(path, settings=(f"optimize.samples={samples}",)).plan


def engine_of(world: World, data: Dataset, propose: Proposer, plan: Plan, observer: SilentObserver) -> Engine:
    """The engine of a compile, with the world for a target."""
    return Engine(
        plan=plan,
        dataset=data,
        rollouts=Rollouts(plan, world.run, Meter(plan, Path()), observer),
        optimizer=Scripted(propose),
        observer=observer,
        wave=wave_size(plan, len(data.validation)),
        planned=max(1, steps_of(plan, len(data.train)) * plan.optimize.candidates),
        reserve=Open(),
    )


def compile_in(
    world: World,
    propose: Proposer,
    *,
    name: object,
    size: Size = Size(),
    gate: str = STRICT,
    samples: int = 1,
    looks: Sequence[LookLock] = (),
    run: str = "0" * 64,
) -> Result:
    """One compile, from the baseline to the verdict.

    Args:
        world: the target.
        propose: the optimizer.
        name: names the data: the same name, the same examples.
        size: of the data and the run.
        gate: the one gate.
        samples: rollouts per example.
        looks: earlier looks at this test split.
        run: id of the run.
    """
    plan = plan_of(gate, samples)
    plan = plan.model_copy(update={"budget": replace(plan.budget, steps=size.steps)})
    data = dataset(world, (size.train, size.validation, size.test), name)
    observer = SilentObserver()
    engine = engine_of(world, data, propose, plan, observer)
    return asyncio.run(_compile(engine, initial_document(plan), observer, tuple(looks), run, world))


async def _compile(
    engine: Engine, initial: Document, observer: SilentObserver, looks: tuple[LookLock, ...], run: str, world: World
) -> Result:
    trained = await train(engine, initial)
    best = trained.state.best
    look = LookLock(run=run, initial=digest(initial), best=digest(best))
    tested = await final_test(trained, look=add_look(looks, look)[1])
    found = mean_score(trained.engine, best, engine.plan.goal.name) if trained.state.accepted else None
    helpful = holds_helpful_rule(best)
    true = Fraction(str(world.share + (world.worth if helpful else 0.0)))
    return Result(
        verdict=tested.verdict,
        decisions=tuple(observer.decisions),
        accepted=trained.state.accepted,
        inflation=None if found is None else float(found - true),
        helpful=helpful,
        look=look,
        trained=trained,
        notes=tuple(observer.notes),
    )


def holds_helpful_rule(skill: Document) -> bool:
    """Whether a skill holds the helpful rule."""
    return any(HELPFUL in rule.text for section in skill.sections for rule in section.rules)


def in_a_row(world: World, *, name: object, count: int, size: Size = Size()) -> list[Result]:
    """Compiles one after the other on the same data, each with new replies of the optimizer; every look is counted."""
    results: list[Result] = []
    looks: tuple[LookLock, ...] = ()
    for i in range(count):
        found = compile_in(world, proposer((name, i)), name=name, size=size, looks=looks)
        if found.verdict.n:
            looks, _ = add_look(looks, found.look)
        results.append(found)
    return results
