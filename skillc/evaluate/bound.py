"""What an evaluation takes at most, before anything is sent, and whether the caps pay for it."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.budget.bounds import preflight_stage
from skillc.budget.call_sizes import rollout_size
from skillc.budget.spend import Bound, Sizes
from skillc.document.skill import tokens
from skillc.errors import SkillcError
from skillc.evaluate.models import as_target
from skillc.evaluate.skills import Arm
from skillc.plan import figures
from skillc.plan.initial import task_text
from skillc.plan.models import TARGET
from skillc.plan.schema import ModelPlan, Plan, PricePlan
from skillc.tokens import count_tokens


def bound_of(
    plan: Plan,
    models: Sequence[ModelPlan],
    arms: Sequence[Arm],
    examples: int,
    sizes: Sizes,
    prices: dict[str, PricePlan | None],
) -> Bound:
    """Every arm under every model on all samples of all examples, as if no reply were known yet.

    Args:
        plan: of the evaluation, with its samples.
        models: by whose roles `prices` are given, in dollars per million tokens.
        arms: the skills.
        examples: of the split.
        sizes: of the data.
        prices: None where nobody says it.
    """
    whole, count = Bound(), examples * plan.optimize.samples
    for model in models:
        priced = {**prices, TARGET: prices.get(model.role)}
        for arm in arms:
            read = count_tokens(task_text(plan.task)) if arm.skill is None else tokens(arm.skill)
            whole += rollout_size(as_target(plan, model), sizes, priced, read).times(*[count] * 3)
    return whole


def preflight_of(plan: Plan, prices: dict[str, PricePlan | None]) -> int:
    """How many models are tried with one call before the first."""
    stage = preflight_stage(plan.models, prices)
    return stage.bound.most.calls if stage is not None else 0


def check_caps(plan: Plan, bound: Bound) -> None:
    """Refuses an evaluation that the caps surely end before it is whole.

    Raises:
        SkillcError: with the setting that would do.
    """
    least, about, budget = bound.least, bound.estimate, plan.budget
    if budget.calls is not None and least.calls > budget.calls:
        raise _too_little("calls", figures.count(least.calls), figures.count(budget.calls), str(least.calls))
    if budget.tokens is not None and least.tokens > budget.tokens:
        takes, enough = f"about {figures.tokens(about.tokens)}", figures.rounded_up(about.tokens)
        raise _too_little("tokens", takes, figures.tokens(budget.tokens), str(enough))
    if budget.cost is not None and least.cost is not None and least.cost > budget.cost:
        takes, cents = f"about {figures.dollars(about.cost)}", figures.cents_up(about.cost or least.cost)
        raise _too_little("cost", takes, figures.dollars(budget.cost), cents)


def _too_little(name: str, takes: str, allowed: str, enough: str) -> SkillcError:
    return SkillcError(
        f"the budget can't pay for this evaluation: it takes {takes} {name}, and {allowed} are allowed",
        hint=f"`--set budget.{name}={enough}` would do, and so would fewer models or skills",
    )
