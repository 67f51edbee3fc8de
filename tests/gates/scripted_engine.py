"""An engine whose rollouts answer from a table: what the gates and the loop see, without any model."""

import asyncio
import random
from dataclasses import replace
from fractions import Fraction

from skillc.data.dataset import Dataset
from skillc.document.skill import document_of, for_target
from skillc.gates.stages import stage_of
from skillc.gates.terms import FieldTerm, MeanTerm, Operation
from skillc.language.loop import BudgetPlan, OptimizePlan
from skillc.metrics.meter import RolloutScores
from skillc.models.failures import BudgetReached
from skillc.optimize.engine import Engine, SearchState
from skillc.optimize.host import NoReserve, SilentObserver
from skillc.optimize.rollouts import Rollouts
from skillc.optimize.schedule import Patience
from skillc.outcomes import MICRO, Scored
from skillc.plan.schema import (
    DataPlan,
    FieldPlan,
    GatePlan,
    MetricPlan,
    ModelPlan,
    Plan,
    SectionPlan,
    SkillPlan,
    TaskPlan,
    TypePlan,
)
from skillc.tasks.runner import Rollout
from skillc.trajectories.trajectory import one_turn

BETTER = Operation(">", (MeanTerm("candidate", "m"), MeanTerm("incumbent", "m")))


def skill(text, rules=""):
    """A document that says `text`, with rules to edit."""
    return document_of("things", "Sort things.", [("role", "frozen", text, None), ("rules", "trainable", rules, None)])


def gate(term, name="better", for_=None):
    return GatePlan(name=name, term=term, text="", stage=stage_of(term), **({"for_": for_} if for_ else {}))


def plan(gates=(), *, optimize=None, budget=None, seed=7):
    """A plan with the metrics `m` (0 to 1, the goal) and `wide` (-2 to 3)."""
    text = TypePlan(kind="text")
    return Plan(
        task=TaskPlan(
            inputs=(FieldPlan(name="ask", type=text, column="ask"),),
            outputs=(FieldPlan(name="say", type=text, column="say"),),
        ),
        skill=SkillPlan(
            name="things",
            artifact="things",
            about="Sort things.",
            sections=(SectionPlan(name="role", mode="frozen"), SectionPlan(name="rules", mode="trainable")),
        ),
        models={role: ModelPlan(role=role, model="rulebook/v1") for role in ("target", "optimizer")},
        data=DataPlan(source="x.jsonl", seed=seed),
        metrics=(
            MetricPlan(name="m", term=FieldTerm("say"), low=Fraction(0), high=Fraction(1), goal=True),
            MetricPlan(name="wide", term=FieldTerm("say"), low=Fraction(-2), high=Fraction(3)),
        ),
        optimize=OptimizePlan(**(optimize or {})),
        budget=BudgetPlan(**(budget or {"epochs": 2})),
        gates=tuple(gates) or (gate(BETTER),),
    )


class Meter:
    """The prediction is the score of each metric, in whole units."""

    def measure(self, example, trajectory, verdicts):
        return RolloutScores(
            {name: Scored(round(value * MICRO)) for name, value in trajectory.answer["scores"].items()}, ""
        )


class Script:
    """Runs rollouts from `scores(skill, example, sample)`: metrics by name, or None for a call that always fails.

    Attributes:
        sent: (stage, skill, example, sample), in the order in which the calls were made.
        cap: calls after which `stop` is raised, as a rule a budget that is reached; None for no cap.
    """

    def __init__(self, scores, *, seed=0, cap=None):
        self.scores, self.sent, self.cap = scores, [], cap
        self.names = {}
        self.stop = BudgetReached("calls")
        self._random = random.Random(seed)

    def name(self, document, name):
        self.names[for_target(document)] = name
        return document

    async def __call__(self, skill, example, sample, stage):
        text = skill.text if skill is not None else None
        if self.cap is not None and len(self.sent) >= self.cap:
            raise self.stop
        self.sent.append((stage, self.names.get(text, text), example.id, sample))
        for _ in range(self._random.randrange(4)):
            await asyncio.sleep(0)
        found = self.scores(self.names.get(text, text), example.id, sample)
        if found is None:
            return Rollout(failure="transport")
        return Rollout(one_turn("said", {"scores": found, "say": found.get("say", "")}, cost=1000))


def engine(program, script, examples, train=(), *, wave=4, observer=None, planned=3):
    observer = observer or SilentObserver()
    return Engine(
        plan=program,
        dataset=Dataset(tuple(train), tuple(examples), (), ""),
        rollouts=Rollouts(program, script, Meter(), observer),
        optimizer=None,
        observer=observer,
        wave=wave,
        planned=planned,
        reserve=NoReserve(),
        max_rollout_cost=2000,
    )


def state(incumbent, **known):
    """A state whose best and initial skill are the incumbent, unless others are given."""
    start = SearchState(incumbent, incumbent, incumbent, Patience(None, Fraction(0), Fraction(0)))
    return replace(start, **known)


async def measured(run, *skills):
    """Measures skills on the whole validation split."""
    for document in skills:
        for sample in range(run.plan.optimize.samples):
            await run.rollouts.measure(document, run.dataset.validation, stage="baseline", sample=sample)
