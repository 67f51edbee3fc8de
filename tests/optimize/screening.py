"""A target that does what rules say of themselves, and an engine to screen edits with."""

import asyncio
import re
from fractions import Fraction
from pathlib import Path

from skillc.data.dataset import Dataset
from skillc.document.edits import Add
from skillc.document.skill import document_of
from skillc.gates.terms import CallTerm, FieldTerm
from skillc.language.loop import BudgetPlan, OptimizePlan
from skillc.metrics.meter import Meter
from skillc.optimize.engine import Engine, SearchState
from skillc.optimize.host import SilentObserver
from skillc.optimize.propose.proposals import Proposal
from skillc.optimize.rollouts import Rollouts
from skillc.optimize.schedule import Patience
from skillc.optimize.screen.screen import screen
from skillc.outcomes import Example
from skillc.plan.schema import DataPlan, FieldPlan, MetricPlan, Plan, SkillPlan, TaskPlan, TypePlan
from skillc.tasks.runner import Rollout
from skillc.trajectories.trajectory import one_turn

TEXT = TypePlan(kind="text")
GRADED = CallTerm("f1", (FieldTerm("answer"),))
EXACT = CallTerm("exact_match", (FieldTerm("answer"),))


def plan_of(*, term=EXACT, **optimize):
    return Plan(
        task=TaskPlan(
            inputs=(FieldPlan(name="case", type=TEXT, column="case"),),
            outputs=(FieldPlan(name="answer", type=TEXT, column="answer"),),
        ),
        skill=SkillPlan(name="s", artifact="s", about="", sections=()),
        models={},
        data=DataPlan(source="-"),
        metrics=(MetricPlan(name="correct", term=term, low=Fraction(0), high=Fraction(1), goal=True),),
        optimize=OptimizePlan(**optimize),
        budget=BudgetPlan(),
        gates=(),
    )


def example(name):
    return Example(name, {"case": name}, {"answer": "all of it"}, {}, name)


class Target:
    """Answers an example right where a rule `mends` it, where all of `a+b` stand that mend it together, or by luck."""

    def __init__(self, *, lucky=(), fails=lambda text, name: False, slips=lambda text, name: False):
        self.calls = []
        self._lucky = set(lucky)
        self._fails = fails
        self._slips = slips

    async def __call__(self, skill, example, sample, stage):
        text = skill.text if skill is not None else None
        await asyncio.sleep(0)
        self.calls.append((text, example.id, stage))
        if self._fails(text, example.id):
            return Rollout(failure="transport")
        rules = re.findall(r"(mends|helps|breaks|half mends) ([\w ]+?)(?: with (\w+))?\.", text)
        words = {name for verb, names, _ in rules if verb == "mends" for name in names.split()}
        part = {name for verb, names, _ in rules if verb == "half mends" for name in names.split()}
        broken = {name for verb, names, _ in rules if verb == "breaks" for name in names.split()}
        keys = {(name, key) for verb, names, key in rules if verb == "helps" for name in names.split()}
        together = {name for name, _ in keys if {(name, "left"), (name, "right")} <= keys}
        right = example.id in words | together or (example.id in self._lucky and "- " in text)
        answer = "all of it" if right else "all" if example.id in part else "none"
        answer = "none" if example.id in broken or self._slips(text, example.id) else answer
        return Rollout(one_turn(answer, {"answer": answer}))


def edit(text):
    return Add("rules", text)


def proposal(text, *cures, support=1, seen=""):
    """An edit whose author saw what it cites, and `seen` besides."""
    return Proposal(edit(text), cures, support, seen=frozenset((*cures, *seen.split())))


class Bench:
    """A state with an empty skill, whose outcomes on a batch are known."""

    def __init__(self, names, *, target=None, plan=None, rules=""):
        self.target = target or Target()
        self.batch = tuple(example(name) for name in names.split())
        plan = plan or plan_of()
        skill = document_of("s", "", [("rules", "trainable", rules, None)])
        observer = SilentObserver()
        self.engine = Engine(
            plan=plan,
            dataset=Dataset(self.batch, (), (), ""),
            rollouts=Rollouts(plan, self.target, Meter(plan, Path()), observer),
            optimizer=None,
            observer=observer,
            wave=8,
            planned=1,
            reserve=None,
        )
        self.state = SearchState(skill, skill, skill, Patience(None, Fraction(0), Fraction(0)))
        asyncio.run(self.engine.rollouts.measure(skill, self.batch, stage="rollout"))

    def screen(self, *proposals):
        """The proposals after their screen, whose counts the state keeps."""
        screened, counts = asyncio.run(screen(self.engine, self.state, proposals, self.batch))
        self.state = self.state.with_counters(screened=counts)
        return screened

    @property
    def sent(self):
        """Screening calls so far."""
        return [(text, name) for text, name, stage in self.target.calls if stage == "screen"]
