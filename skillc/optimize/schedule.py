"""The edit budget of a step: how many edits one candidate may carry (the textual learning rate)."""

from __future__ import annotations

import math
from fractions import Fraction

from skillc.budget.call_sizes import OPEN_SECTION
from skillc.document.skill import Document
from skillc.plan.schema import SchedulePlan


def edit_budget(schedule: SchedulePlan, step: int, steps: int, filled: Fraction = Fraction(1)) -> int:
    """Edits that step `step` (from 0) may make where the schedule takes `steps` steps.

    It goes from `start` to `end` with t, the lesser of two shares: of the steps that are over, and of the limits that
    the skill fills. An empty skill keeps its many edits however late it is. `linear` is start + (end - start) t and
    `cosine` end + (start - end) (1 + cos(pi t)) / 2, rounded to the nearest whole number. For `model` it is the most
    that the model may choose.

    Args:
        schedule: as declared.
        step: how many steps are over.
        steps: how many the schedule takes.
        filled: the share of the sections' limits that is used.
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
    """How much of the limits of its trainable sections a skill uses, from 0 to 1."""
    open_ = [section for section in skill.sections if section.mode == "trainable"]
    limits = sum(section.limit or OPEN_SECTION for section in open_)
    return min(Fraction(1), Fraction(sum(section.tokens for section in open_), max(1, limits)))
