"""The judges behind a goal, and how often they contradict themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.gates.terms import metrics_read
from skillc.language.judges import judge_calls, judge_roles
from skillc.plan.schema import Plan

HIGH = 0.1
"""The flip rate above which a judge hides differences of a few points: 10 % of the answers get another verdict."""


@dataclass(frozen=True, slots=True)
class FlipRates:
    """Shares of answers that get another verdict; None if that was not measured.

    Attributes:
        again: when the judge is asked the same again.
        other_order: when the two answers, or the levels, are shown in the other order.
    """

    again: float | None
    other_order: float | None

    @property
    def is_high(self) -> bool:
        """Whether the judge contradicts itself too often for a small difference."""
        return max(self.again or 0.0, self.other_order or 0.0) > HIGH


def judged_by(plan: Plan) -> tuple[str, ...]:
    """Return the roles of the judges that the goal asks, each once."""
    read = metrics_read(plan.goal.term)
    terms = [metric.term for metric in plan.metrics if metric.goal or metric.name in read]
    return tuple(dict.fromkeys(role for call in judge_calls([plan.goal.term, *terms]) for role in judge_roles(call)))


def read_flips(file: Path, plan: Plan) -> dict[str, FlipRates]:
    """Return the flip rates in a check of judges, by role; only of judges that have the same model now.

    Raises:
        SkillcError: the file cannot be read, or is not what `judge check --json` prints.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))["judges"]
        judges = [(dict(each["models"]), _rates(each)) for each in found]
    except OSError as problem:
        raise SkillcError(f"`{file}` cannot be read: {problem.strerror}") from problem
    except (ValueError, KeyError, TypeError) as problem:
        raise SkillcError(
            f"`{file}` is no check of judges", hint=f"write it: `skillc judge check PROGRAM --json > {file}`"
        ) from problem
    rates: dict[str, FlipRates] = {}
    for models, flips in judges:
        for role, model in models.items():
            if role in plan.models and plan.models[role].model == model:
                rates[role] = _worse(rates.get(role), flips)
    return rates


def _worse(one: FlipRates | None, other: FlipRates) -> FlipRates:
    """Return the larger rates, where one judge is asked by several metrics."""
    if one is None:
        return other
    pairs = ((one.again, other.again), (one.other_order, other.other_order))
    again, order = (max((rate for rate in pair if rate is not None), default=None) for pair in pairs)
    return FlipRates(again, order)


def _rates(judge: Mapping[str, Any]) -> FlipRates:
    again, order = judge["repeats"], judge["other_order"]
    return FlipRates(
        *(None if each is None or each["differ"] is None else float(each["differ"]) for each in (again, order))
    )
