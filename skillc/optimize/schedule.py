"""Seeds, batches, the edit schedule and patience: pure functions of the plan."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from skillc.budget.call_sizes import OPEN_SECTION
from skillc.dataclass import dataclass
from skillc.document.skill import Document
from skillc.language.loop import SchedulePlan
from skillc.outcomes import Example


def edit_budget(schedule: SchedulePlan, step: int, steps: int, filled: Fraction = Fraction(1)) -> int:
    """Return the edit budget of step `step` (from 0) in a schedule of `steps` steps.

    It decays from `start` to `end` with t, the smaller of the share of finished steps and the share `filled` of the
    sections' limits. An empty skill thus keeps a large edit budget even late in the run. `linear` is start + (end -
    start) t and `cosine` end + (start - end) (1 + cos(pi t)) / 2, rounded to the nearest whole number. For `model` it
    is the most that the model may choose.
    """
    if schedule.kind in ("constant", "model") or steps <= 1:
        return schedule.start
    t = float(min(Fraction(min(step, steps - 1), steps - 1), filled))
    if schedule.kind == "linear":
        exact = schedule.start + (schedule.end - schedule.start) * t
    else:
        exact = schedule.end + (schedule.start - schedule.end) * (1 + math.cos(math.pi * t)) / 2
    return round(exact)


def filled(skill: Document) -> Fraction:
    """Return the share of the limits of its trainable sections that a skill uses, from 0 to 1."""
    open_ = [section for section in skill.sections if section.mode == "trainable"]
    limits = sum(section.limit or OPEN_SECTION for section in open_)
    return min(Fraction(1), Fraction(sum(section.tokens for section in open_), max(1, limits)))


def seed_for(plan_seed: int, purpose: str, *, epoch: int = 0, step: int = 0) -> bytes:
    """Return 32 bytes for one purpose at one position of the run."""
    return hashlib.sha256(json.dumps([plan_seed, epoch, step, purpose]).encode()).digest()


def shuffled(examples: Iterable[Example], seed: bytes) -> list[Example]:
    """Sort examples by sha256(seed, id): a new example never changes the order of the others."""
    return sorted(examples, key=lambda example: hashlib.sha256(seed + example.id.encode()).digest())


def batches(examples: Sequence[Example], size: int, *, plan_seed: int, epoch: int) -> list[tuple[Example, ...]]:
    """Split one epoch into the fewest batches of at most `size` examples, all of about one size."""
    order = shuffled(examples, seed_for(plan_seed, "batches", epoch=epoch))
    count = -(-len(order) // size)
    ends = [len(order) * i // count for i in range(count + 1)] if count else []
    return [tuple(order[start:end]) for start, end in pairwise(ends)]


UNDECIDED_IN_A_ROW = 3

Result = Literal["accept", "reject", "undecided", "empty"]


@dataclass(frozen=True, slots=True)
class Patience:
    """Count steps without a gain. An accept that gains enough resets the count; an undecided step does not count.

    Attributes:
        limit: the most steps without a gain, None for no limit.
        min_gain: the gain since the last reset that resets the count again, in goal points.
        reference: the goal's mean at the last reset.
    """

    limit: int | None
    min_gain: Fraction
    reference: Fraction
    waited: int = 0
    undecided: int = 0

    def after(self, result: Result, goal: Fraction) -> Patience:
        """Return the count after a step that ended in `result` with the incumbent's goal at `goal`."""
        if result == "undecided":
            return replace(self, undecided=self.undecided + 1)
        if result == "accept" and goal - self.reference >= self.min_gain:
            return replace(self, waited=0, undecided=0, reference=goal)
        return replace(self, waited=self.waited + 1, undecided=0)

    def decided(self) -> Patience:
        """Return the count after a decision outside of steps. It only ends a series of undecided steps."""
        return replace(self, undecided=0)

    @property
    def reason(self) -> str | None:
        """Return why the run should end, or None."""
        if self.limit is not None and self.waited >= self.limit:
            return "patience"
        if self.undecided >= UNDECIDED_IN_A_ROW:
            return "undecided"
        return None
