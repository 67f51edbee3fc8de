"""The arms of a skill that is opened on demand: no skill, offered, and always read; and where it was opened.

Always read against no skill is what the text is worth; offered against always read is what the description loses or
saves. Whether the target opened the skill is measured on the offered arm alone: with the text in the prompt there would
be nothing to open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from skillc.document.skill import Document
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.optimize.description import wanted
from skillc.optimize.engine import Engine
from skillc.optimize.host import stop_reason
from skillc.optimize.rollouts import Rollouts
from skillc.outcomes import Example
from skillc.trajectories.signals import opened_skills


@dataclass(frozen=True, slots=True)
class OpeningScore:
    """Where the target opened a skill, over all measured rollouts of a split.

    Attributes:
        hits: rollouts that opened it where they should.
        wanted: rollouts in which it should be opened.
        strays: rollouts that opened it where it should stay closed.
        others: rollouts in which it should stay closed.
    """

    hits: int
    wanted: int
    strays: int
    others: int

    @property
    def verified(self) -> bool:
        """Whether there are rollouts of both kinds; without near misses or without cases a share says nothing."""
        return self.wanted > 0 and self.others > 0

    @property
    def precision(self) -> Fraction | None:
        """The share of openings that were wanted, 0 without any; None if it says nothing."""
        return Fraction(self.hits, max(1, self.hits + self.strays)) if self.verified else None

    @property
    def recall(self) -> Fraction | None:
        """The share of wanted openings that took place; None if it says nothing."""
        return Fraction(self.hits, self.wanted) if self.verified else None


def opening_score(engine: Engine, skill: Document, examples: Sequence[Example]) -> OpeningScore | None:
    """Return where a skill was opened on measured examples; None if no gate names where it should be."""
    condition = wanted(engine.plan)
    if condition is None:
        return None
    counts = {True: [0, 0], False: [0, 0]}
    for example in examples:
        for sample in range(engine.plan.optimize.samples):
            outcome = engine.rollouts.known(skill, example, sample)
            if outcome is None or not outcome.measured:
                continue
            count = counts[engine.rollouts.holds(condition, example)]
            count[0] += skill.name in opened_skills(outcome.trajectory)
            count[1] += 1
    return OpeningScore(*counts[True], *counts[False])


async def measure_always_read(engine: Engine, skill: Document, examples: Sequence[Example]) -> None:
    """Measure a skill as if it were always read, for comparison, as far as the budget admits."""
    if engine.always_read is not None:
        await _measure_arm(engine, engine.always_read, skill, examples, "always read", "a skill that is always read")


async def measure_no_skill(engine: Engine, examples: Sequence[Example]) -> None:
    """Measure the target without a skill, for comparison, as far as the budget admits."""
    await _measure_arm(engine, engine.rollouts, None, examples, "no skill", "no skill")


async def _measure_arm(
    engine: Engine, rollouts: Rollouts, skill: Document | None, examples: Sequence[Example], stage: str, what: str
) -> None:
    samples = engine.plan.optimize.samples
    engine.observer.stage(stage, len(examples) * samples)
    try:
        for sample in range(samples):
            await rollouts.measure(skill, examples, stage=stage, sample=sample)
    except BudgetReached:
        engine.observer.note(f"skipped the comparison with {what}: the budget does not admit it")
    except EndpointUnreachable as away:
        engine.observer.note(f"skipped the comparison with {what}: {away.message}")
    except asyncio.CancelledError:
        stop_reason(engine.observer)
