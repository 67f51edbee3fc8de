"""An engine with a scripted optimizer and a scripted target, for tests of single stages."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from fractions import Fraction

from conftest_cli import PROGRAM, WORDS, rows

from skillc.frontend import estimate, plan_file
from skillc.metrics.meter import Meter
from skillc.models.failures import CallFailed
from skillc.optimize.ask import Optimizer
from skillc.optimize.engine import Engine, Position, SearchState
from skillc.optimize.host import SilentObserver
from skillc.optimize.rollouts import Rollouts
from skillc.optimize.schedule import Patience
from skillc.plan.initial import initial_document
from skillc.tasks.runner import Rollout
from skillc.trajectories.trajectory import one_turn

PLACE = Position(epoch=1, step=1, total=8)
KIND_OF = {word: kind for kind, words in WORDS.items() for word in words}


def word_of(example):
    """The word of an example that says what kind it is."""
    return next(word for word in KIND_OF if word in example.inputs["text"])


def reads_words(skill, example):
    """A target that knows a word where the skill names it, and says `fruit` elsewhere."""
    word = word_of(example)
    return KIND_OF[word] if word in (skill or "") else "fruit"


class Script:
    """A client whose optimizer replies as told, and which keeps every call.

    Args:
        reply: gives the reply to a call: a text, or a value for JSON, or an exception to raise.
    """

    def __init__(self, reply):
        self._reply = reply
        self.calls = []
        self.flying = self.most_flying = 0
        self.seconds = 0.001

    async def complete(self, call):
        self.calls.append(call)
        self.flying += 1
        self.most_flying = max(self.most_flying, self.flying)
        await asyncio.sleep(self.seconds)
        self.flying -= 1
        reply = self._reply(call)
        if isinstance(reply, CallFailed):
            raise reply
        return SimpleNamespace(text=reply if isinstance(reply, str) else json.dumps(reply))

    @property
    def prompts(self):
        """Every prompt as one text, with the stage that asked."""
        return [(call.stage, "\n".join(message.content for message in call.messages)) for call in self.calls]

    def of(self, stage):
        """The prompts of a stage."""
        return [text for each, text in self.prompts if each == stage]


class Workshop:
    """An engine in a folder, with a state at the initial skill."""

    def __init__(self, folder, reply, *, program=PROGRAM, settings=(), answer=reads_words, data=None, steps=None):
        (folder / "things.skill").write_text(program)
        (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data or rows()))
        planned = plan_file(folder / "things.skill", settings=settings)
        self.plan, self.dataset = planned.plan, estimate(planned).dataset
        self.bounds = estimate(planned).bounds
        self.script, self.observer = Script(reply), SilentObserver()

        async def run(skill, example, sample, stage):
            self.rollouts += 1
            given = answer(skill.text if skill is not None else None, example)
            before = steps(example) if steps is not None else ()
            reply = one_turn(f"I say {given}", {"kind": given})
            return Rollout(replace(reply, steps=(*before, *reply.steps)))

        self.rollouts = 0
        self.engine = Engine(
            plan=self.plan,
            dataset=self.dataset,
            rollouts=Rollouts(self.plan, run, Meter(self.plan, folder), self.observer),
            optimizer=Optimizer(self.script, self.observer),
            observer=self.observer,
            wave=8,
            planned=8,
            reserve=SimpleNamespace(set_aside=lambda: None, open_reserve=lambda: None),
        )
        skill = initial_document(self.plan)
        self.state = SearchState(skill, skill, skill, Patience(None, Fraction(0), Fraction(0)))

    @property
    def train(self):
        """The training examples."""
        return self.dataset.train

    def measure_validation(self):
        """Measures the incumbent on the validation split, as the baseline does."""
        asyncio.run(self.engine.rollouts.measure(self.state.incumbent, self.dataset.validation, stage="baseline"))

    def measured(self, examples):
        """The examples with their outcomes under the incumbent."""
        outcomes = asyncio.run(self.engine.rollouts.measure(self.state.incumbent, examples, stage="rollout"))
        return list(zip(examples, outcomes, strict=True))
