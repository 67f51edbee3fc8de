"""A validation split, an incumbent of a given level, and one fixed stream of patches: all drawn from a seed.

Answers are scripted, so that lazy and full gates meet the same candidates, and no model is in the way.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from skillc.data.dataset import Dataset
from skillc.document.skill import Document, document_of, for_target
from skillc.frontend import plan_file
from skillc.metrics.meter import Meter
from skillc.optimize.engine import Engine, SearchState
from skillc.optimize.host import NoReserve, SilentObserver
from skillc.optimize.rollouts import Rollouts
from skillc.optimize.schedule import Patience
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout
from skillc.trajectories.trajectory import one_turn

PRODUCTS = ("app", "shop", "hub", "cam")
# A fifth of the examples is fragile: any change of the text may flip them. The rest hardly ever moves.
FRAGILE, FLIPS_OF_FRAGILE, FLIPS_OF_OTHERS = 0.2, 0.15, 0.01

_PROGRAM = """language 1
task {{ input question: text; output answer: text }}
skill answer {{ about = "Answer."; frozen section role = "Answer."; trainable section rules }}
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
data {{ source = "none.jsonl"; field product: text; seed = 7 }}
goal correct = exact_match(answer)
budget {{ epochs = 1 }}
{gates}
"""


@dataclass(frozen=True)
class Stream:
    """Examples, the incumbent's answers, and for each patch the examples on which its answer is the other one."""

    examples: tuple[Example, ...]
    right: frozenset[str]
    patches: tuple[frozenset[str], ...]


def stream(level: float, *, examples: int = 200, patches: int = 60, seed: int = 1) -> Stream:
    """Half of the patches have no effect, a quarter harm, a quarter help; all of them flip fragile examples."""
    dice = random.Random(f"{seed} {level} {examples}")
    items = tuple(
        Example(f"e{i}", {"question": f"q{i}"}, {"answer": "yes"}, {"product": dice.choice(PRODUCTS)}, f"e{i}")
        for i in range(examples)
    )
    right = frozenset(item.id for item in dice.sample(items, round(level * examples)))
    moves = {item.id: FLIPS_OF_FRAGILE if dice.random() < FRAGILE else FLIPS_OF_OTHERS for item in items}
    found = []
    for i in range(patches):
        flipped = {name for name, chance in moves.items() if dice.random() < chance}
        kind = ("useless", "harmful", "useless", "helpful")[i % 4]
        if kind == "harmful":
            share = dice.uniform(0.03, 0.15)
            flipped |= {name for name in sorted(right) if dice.random() < share}
        if kind == "helpful":
            share = dice.uniform(0.1, 0.5)
            flipped |= {item.id for item in items if item.id not in right and dice.random() < share}
        found.append(frozenset(flipped))
    return Stream(items, right, tuple(found))


def plan_of(gates: str) -> Plan:
    """The plan of a program with these gates."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "world.skill"
        path.write_text(_PROGRAM.format(gates=gates), encoding="utf-8")
        return plan_file(path).plan


class Answers:
    """Runs rollouts from a stream and counts them; the text of a candidate is its number."""

    def __init__(self, world: Stream) -> None:
        self._world = world
        self._texts: dict[str, int] = {}
        self.sent = 0

    def document(self, number: int) -> Document:
        """The skill of a number; -1 is the incumbent."""
        document = document_of("answer", "Answer.", [("rules", "trainable", f"- patch number {number}", None)])
        self._texts[for_target(document)] = number
        return document

    async def __call__(self, skill: Skill | None, example: Example, sample: int, stage: str) -> Rollout:
        text = skill.text if skill is not None else None
        number = self._texts[text or ""]
        flipped = number >= 0 and example.id in self._world.patches[number]
        self.sent += 1
        return Rollout(
            one_turn("", {"answer": "yes" if (example.id in self._world.right) != flipped else "no"}, cost=0)
        )


def engine_of(plan: Plan, world: Stream, answers: Answers, wave: int, *, planned: int = 100) -> Engine:
    """The engine that a run would have."""
    observer = SilentObserver()
    return Engine(
        plan=plan,
        dataset=Dataset((), world.examples, (), ""),
        rollouts=Rollouts(plan, answers, Meter(plan, Path()), observer),  # type: ignore[arg-type]
        optimizer=None,  # type: ignore[arg-type]
        observer=observer,
        wave=wave,
        planned=planned,
        reserve=NoReserve(),
    )


def state_of(incumbent: Document, flips: Mapping[str, int]) -> SearchState:
    """The loop's state with nothing but an incumbent."""
    patience = Patience(None, Fraction(0), Fraction(0))
    return SearchState(incumbent, incumbent, incumbent, patience).with_counters(flips=flips)
