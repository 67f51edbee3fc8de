"""A world to run the loop in: rules that say what they solve and break, and an optimizer that reads from a script."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

from skillc.budget.steps import decisions_of
from skillc.data.dataset import Dataset
from skillc.frontend import check_file
from skillc.metrics.meter import Meter
from skillc.optimize.engine import Engine
from skillc.optimize.host import NoReserve, SilentObserver
from skillc.optimize.loop.train import train
from skillc.optimize.propose.replies import MetaSkillReply, ProposedEdit, ReflectReply, SlowUpdateReply
from skillc.optimize.rollouts import Rollouts
from skillc.outcomes import Example
from skillc.plan.initial import initial_document
from skillc.plan.resolve import resolve
from skillc.tasks.runner import Rollout
from skillc.trajectories.trajectory import one_turn

PROGRAM = """language 1
task {{
  input  text: text
  output kind: "yes" | "no"
}}
skill sort_things {{
  about = "Say yes."
  trainable section rules {{ limit = 4000 tokens }}
  {slow}
}}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data {{ source = "things.jsonl"; split = 2 : 1 : 2; seed = 3 }}
goal correct = exact_match(kind)
optimize {{ batch = 1; drafts = 0; update = edits; edits = 4; screen = 0; replay = 0; meta_skill = off; wave = 4
  {optimize} }}
budget {{ {budget} }}
{gates}
"""
BETTER = "gate better = candidate.correct > incumbent.correct"


def plan_of(tmp_path: Path, *, optimize="", budget="epochs = 1", gates=BETTER, slow=""):
    path = tmp_path / "things.skill"
    path.write_text(PROGRAM.format(optimize=optimize, budget=budget, gates=gates, slow=slow))
    checked = check_file(path)
    assert not checked.failed, [d.message for d in checked.diagnostics]
    plan = resolve(checked).plan
    assert plan is not None
    return plan


def examples(side, count, groups=None):
    return tuple(
        Example(
            f"{side}{i}", {"text": f"{side}{i}"}, {"kind": "yes"}, {}, f"{side}{i}" if groups is None else groups[i]
        )
        for i in range(count)
    )


def solves(*names):
    return f"solves {' '.join(names)} ."


class World:
    """The target: right where a rule of the skill solves the example and none breaks it; some calls fail."""

    def __init__(self, fails=lambda text, example, sample, stage: False, right=None):
        self.calls = []
        self._fails = fails
        self._right = right or self._by_rules

    async def __call__(self, skill, example, sample, stage):
        text = skill.text if skill is not None else None
        self.calls.append((stage, text, example.id, sample))
        if self._fails(text or "", example, sample, stage):
            return Rollout(failure="transport")
        await asyncio.sleep(0)
        return Rollout(one_turn("a reply", {"kind": "yes" if self._right(text or "", example, sample) else "no"}))

    def _by_rules(self, text, example, sample):
        named = {word: set() for word in ("solves", "breaks")}
        for word, names in re.findall(r"(solves|breaks) ([^.]*)\.", text):
            named[word] |= set(names.split())
        return example.id in named["solves"] - named["breaks"]

    def count(self, stage):
        return sum(call[0] == stage for call in self.calls)


class Script:
    """The optimizer: edits by step; a text is added as a rule. What is no text is asked as it stands."""

    failed = 0

    def __init__(self, edits, guidance=()):
        self._edits = edits
        self._guidance = list(guidance)
        self.asked = []

    async def ask(self, kind, messages, *, stage, sample, check=None):
        self.asked.append((stage, sample, messages[-1]["content"]))
        if kind is MetaSkillReply:
            return MetaSkillReply(memory="")
        if kind is SlowUpdateReply:
            return SlowUpdateReply(guidance=self._guidance.pop(0)) if self._guidance else None
        if kind is not ReflectReply:
            return None
        edits = self._edits(sample[1]) if callable(self._edits) else self._edits.get(sample[1], ())
        edits = (edits,) if isinstance(edits, (str, ProposedEdit)) else edits
        return ReflectReply(edits=tuple(add(edit) if isinstance(edit, str) else edit for edit in edits))


def add(text):
    return ProposedEdit(op="add", section="rules", text=text, rationale="scripted")


def engine_of(plan, script, *, world=None, train_size=4, validation=8, test=0, observer=None, initial=None):
    observer = observer or SilentObserver()
    world = world or World()
    dataset = Dataset(examples("t", train_size), examples("v", validation), examples("x", test), "d" * 64)
    return Engine(
        plan=plan,
        dataset=dataset,
        rollouts=Rollouts(plan, world, Meter(plan, Path()), observer),
        optimizer=script if isinstance(script, Script) else Script(script),
        observer=observer,
        wave=plan.optimize.wave or 4,
        planned=decisions_of(plan, train_size),
        reserve=NoReserve(),
    )


def trained(engine):
    """The run, from the program's initial skill."""
    return asyncio.run(train(engine, initial_document(engine.plan)))


def with_budget(plan, **caps):
    return plan.model_copy(update={"budget": replace(plan.budget, **caps)})


def results(engine_or_watch):
    return [record["result"] for record in engine_or_watch.decisions]
