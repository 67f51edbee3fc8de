"""When the null arm of a compile runs: the initial skill, measured a second time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from skillc.budget.spend import Spend, SpendBound, Stage
from skillc.plan.models import TARGET, judges, simulated_users
from skillc.plan.schema import RULEBOOK, ModelPlan, Plan

NULL_ARM = "null arm"
MOST_OF_ESTIMATE = Fraction(1, 10)
"""The share of the expected rollouts that an automatic null arm may take."""

Turn = Literal["first", "last"]


def null_arm_turn(plan: Plan, once: SpendBound, stages: Sequence[Stage]) -> Turn | None:
    """Return whether the null arm runs before the first step, after the final test, or not at all.

    It runs first if no cap can be reached even with it, so that it changes no decision. Otherwise it runs last, with
    the rest of the budget.

    Args:
        plan: the program.
        once: the rollouts of the initial skill on validation.
        stages: all others.
    """
    wanted = plan.optimize.null_arm
    if wanted == "never" or not once.most.calls:
        return None
    total = sum((stage.bound for stage in stages), SpendBound())
    on_target = sum(stage.bound.estimate.calls for stage in stages if stage.role == TARGET)
    if wanted == "auto" and (is_deterministic(plan) or once.estimate.calls > MOST_OF_ESTIMATE * on_target):
        return None
    if wanted == "always" or (_fits(plan, total.most + once.most) and plan.budget.time is None):
        return "first"
    return "last"


def null_arm_stage(rollout: SpendBound, count: int, turn: Turn) -> Stage:
    """Return the stage of so many rollouts; the estimate leaves out one that runs last, with the rest of the budget."""
    return Stage(NULL_ARM, TARGET, rollout.times(0, count if turn == "first" else 0, count))


def placed(stages: tuple[Stage, ...], stage: Stage, turn: Turn) -> tuple[Stage, ...]:
    """Return the stages in the order of the run, with that of the null arm."""
    if not stage.bound.most.calls:
        return stages
    before = next((i for i, each in enumerate(stages) if each.name == "baseline"), -1) + 1
    at = before if turn == "first" else len(stages)
    return (*stages[:at], stage, *stages[at:])


def is_deterministic(plan: Plan) -> bool:
    """Return whether rollouts are known to come out alike: every model that they ask is the rulebook without noise."""
    roles = (TARGET, *judges(plan), *simulated_users(plan))
    return all(_always_alike(plan.models[role]) for role in roles if role in plan.models)


def _always_alike(model: ModelPlan) -> bool:
    extra = model.parameters.get("extra_body")
    noise = model.parameters.get("noise") or (extra.get("noise") if isinstance(extra, dict) else None)
    return model.provider == RULEBOOK and not noise


def _fits(plan: Plan, spend: Spend) -> bool:
    budget = plan.budget
    if budget.judge_calls is not None or budget.judge_cost is not None:
        return False
    pairs = ((budget.calls, spend.calls), (budget.tokens, spend.tokens), (budget.cost, spend.cost))
    return all(cap is None or (value is not None and value <= cap) for cap, value in pairs)
