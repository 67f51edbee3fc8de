"""Which models are asked one cheap question before a run spends anything, and what that takes."""

from __future__ import annotations

from collections.abc import Mapping

from skillc.plan.schema import ModelPlan, PricePlan
from skillc.plan.spend import Bound, call, total
from skillc.plan.stages import Stage

STAGE = "preflight"

# What is not reached over a network, so that there is nothing to find out.
_HERE = frozenset({"rulebook", "exec"})
_OWN = {"role", "price", "pacing"}
# Tokens of the question with what a provider puts around it, at most; of the reply, about.
_QUESTION, _MOST_QUESTION, _REPLY = 12, 64, 4


def tried_together(models: Mapping[str, ModelPlan]) -> tuple[tuple[str, ...], ...]:
    """The roles whose models are tried, in their order; those that would send the very same stand together."""
    groups: dict[str, list[str]] = {}
    for role, model in models.items():
        # A server that skillc starts is waited for until it answers, and a function of the user's own is not asked.
        if model.model.partition("/")[0] not in _HERE and model.serve is None and model.backend is None:
            groups.setdefault(model.model_dump_json(exclude=_OWN), []).append(role)
    return tuple(tuple(roles) for roles in groups.values())


def preflight_stage(models: Mapping[str, ModelPlan], prices: Mapping[str, PricePlan | None]) -> Stage | None:
    """One call for each model that is tried; None where there is none. A run that goes on later tries them again."""
    groups = tried_together(models)
    if not groups:
        return None
    first = [(models[group[0]], prices.get(group[0])) for group in groups]
    bound = Bound(
        total(call(_QUESTION, 1, price) for _, price in first),
        total(call(_QUESTION, min(_REPLY, model.max_reply), price) for model, price in first),
        total(call(_MOST_QUESTION, model.max_reply, price) for model, price in first),
    )
    alone = len(groups) == len(groups[0]) == 1
    return Stage(STAGE, groups[0][0] if alone else "all", bound)
