"""Worlds with a known truth: only the worth of a skill decides how often an answer is right.

An answer is a coin that falls by sha256, so the same world always gives the same run. The coin is thrown anew for each
prompt and example: two skills of the same worth then differ on as many examples as two strangers would, which is the
hardest case for whoever wants to claim a gain, and for whoever wants to show one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skillc.data.dataset import Dataset
from skillc.outcomes import Example
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout
from skillc.trajectories.trajectory import one_turn

HELPFUL = "Read the second sentence first."
ANSWERS = ("right", "wrong")


def coin(*parts: object) -> float:
    """A number from 0 to 1 that depends on the parts alone."""
    told = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "big") / 2**64


@dataclass(frozen=True, slots=True)
class World:
    """What an example's answer depends on.

    Attributes:
        share: how often an answer is right without the helpful rule.
        worth: what the helpful rule adds to it; 0 is a world without signal.
        per_group: whether all examples of a group share one coin, as the tickets of one customer may.
        stable: how much of the examples always have the same answer, whatever the prompt.
        noisy: whether each sample throws its own coin, with a chance that is the example's own: a target with a
            temperature.
        per_customer: examples of one group.
    """

    share: float = 0.5
    worth: float = 0.0
    per_group: bool = False
    stable: float = 0.0
    noisy: bool = False
    per_customer: int = 1

    def right(self, text: str | None, example: Example, sample: int) -> bool:
        """Whether the target answers an example rightly under a skill's text."""
        unit = example.group if self.per_group else example.id
        chance = self.share + (self.worth if HELPFUL in (text or "") else 0.0)
        if self.noisy:
            own = min(1.0, max(0.0, chance + (coin("own", example.id) - 0.5) * 0.8))
            return coin(text, example.id, sample) < own
        if coin("stable", unit) < self.stable:
            return coin("always", unit) < chance
        return coin(text, unit, sample if self.noisy else 0) < chance

    async def run(self, skill: Skill | None, example: Example, sample: int, stage: str) -> Rollout:
        """One rollout, as the engine asks for it."""
        text = skill.text if skill is not None else None
        answer = ANSWERS[0] if self.right(text, example, sample) else ANSWERS[1]
        return Rollout(one_turn(answer, {"answer": answer}))


def dataset(world: World, sizes: tuple[int, int, int], name: object) -> Dataset:
    """Examples of a run: another name, other coins. Groups stay on one side."""
    sides = [_side(world, size, f"{name}/{side}") for side, size in zip(("train", "val", "test"), sizes, strict=True)]
    return Dataset(sides[0], sides[1], sides[2], digest=hashlib.sha256(str(name).encode()).hexdigest())


def _side(world: World, size: int, name: str) -> tuple[Example, ...]:
    return tuple(
        Example(
            id=f"{name}/{i}",
            inputs={"question": f"{name} {i}"},
            gold={"answer": ANSWERS[0]},
            fields={"kind": "ab"[i % 2]},
            group=f"{name}/{i // world.per_customer}",
        )
        for i in range(size)
    )


Proposer = Callable[[Sequence[int]], Sequence[str]]


def proposer(name: object, *, edits: int = 3, helpful: float = 0.0) -> Proposer:
    """Rules that an optimizer proposes at (epoch, step, ordinal, ...): worthless ones, and at some odds the helpful."""

    def propose(sample: Sequence[int]) -> list[str]:
        texts = [f"Mind point {coin(name, sample, i):.9f}." for i in range(edits)]
        if coin(name, sample, "helpful") < helpful:
            texts[0] = HELPFUL
        return texts

    return propose
