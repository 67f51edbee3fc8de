"""The edit budget of a step: how many edits one candidate may carry (the textual learning rate)."""

from __future__ import annotations

import math

from skillc.plan.schema import SchedulePlan


def edit_budget(schedule: SchedulePlan, step: int, steps: int) -> int:
    """Edits that step `step` (from 0) may make where the schedule takes `steps` steps.

    It is `start` at the first step, `end` at the last and at all that follow. `linear` is start + (end - start) t and
    `cosine` end + (start - end) (1 + cos(pi t)) / 2 with t = step / (steps - 1), rounded to the nearest whole number.
    For `model` it is the most that the model may choose.
    """
    if schedule.kind in ("constant", "model") or steps <= 1:
        return schedule.start
    t = min(step, steps - 1) / (steps - 1)
    if schedule.kind == "linear":
        exact = schedule.start + (schedule.end - schedule.start) * t
    else:
        exact = schedule.end + (schedule.start - schedule.end) * (1 + math.cos(math.pi * t)) / 2
    return round(exact)
