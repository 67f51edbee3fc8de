"""Which models are asked one cheap question before a run spends anything, so that a wrong key or address is found."""

from __future__ import annotations

from collections.abc import Mapping

from skillc.plan.schema import ModelPlan

# What is not reached over a network, so that there is nothing to find out.
_HERE = frozenset({"rulebook", "exec"})
_OWN = {"role", "price", "pacing"}


def tried_together(models: Mapping[str, ModelPlan]) -> tuple[tuple[str, ...], ...]:
    """The roles whose models are tried, in their order; those that would send the very same stand together."""
    groups: dict[str, list[str]] = {}
    for role, model in models.items():
        if is_networked(model):
            groups.setdefault(model.model_dump_json(exclude=_OWN), []).append(role)
    return tuple(tuple(roles) for roles in groups.values())


def is_networked(model: ModelPlan) -> bool:
    """Whether somebody else has to be there for a model to answer."""
    return model.model.partition("/")[0] not in _HERE
