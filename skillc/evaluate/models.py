"""The models that skills are tried with: roles of the program, and others that take the target's place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.models.backends.registry import connect
from skillc.models.endpoint import provider_of
from skillc.plan.lock import ModelLock
from skillc.plan.models import TARGET, asked, judges, override_models, put_offline
from skillc.plan.schema import ModelPlan, Plan
from skillc.text import listed

_SERVED = frozenset({"hosted_vllm", "vllm"})


def chosen_models(plan: Plan, texts: Sequence[str], *, offline: bool) -> tuple[ModelPlan, ...]:
    """The models by what the user wrote, each once; the program's target where nothing was written.

    A role is taken with its settings, and so is a model that a role has. Any other model takes a role's place as
    `compile --model` puts it there: that of the target, or of the role in `role=provider/name`.

    Args:
        plan: the program.
        texts: `role`, `provider/name` or `role=provider/name`.
        offline: the rulebook stands in for every model.

    Raises:
        SkillcError: there is no such role, or a model names no provider.
    """
    found: dict[str, ModelPlan] = {}
    for model in [_chosen(plan, text.strip()) for text in texts] or [plan.models[TARGET]]:
        put = put_offline(plan.model_copy(update={"models": {model.role: model}})) if offline else None
        answers = model if put is None else put.models[model.role]
        # A model that was put in the place of another one goes by its own name, or by the rulebook's.
        role = model.role if model.role in plan.models or put is None else answers.model
        answers = answers.model_copy(update={"role": role})
        found.setdefault(answers.model_dump_json(exclude={"role", "pacing"}), answers)
    return _apart(tuple(found.values()))


def _chosen(plan: Plan, text: str) -> ModelPlan:
    role, equals, name = (part.strip() for part in text.partition("="))
    if equals and "/" not in role:
        return _in_place(plan, role, name)
    if "/" in text:
        same = [each for each in plan.models.values() if each.model == text]
        by_target = sorted(same, key=lambda each: each.role != TARGET)
        return by_target[0] if by_target else _in_place(plan, TARGET, text)
    if text not in plan.models:
        near = suggest(text, plan.models)
        roles = listed(plan.models)
        known = f"did you mean `{near}`?" if near else f"the program has {roles}"
        raise SkillcError(f"there is no model `{text}`", hint=f"{known}; others are named with their provider: `a/b`")
    return plan.models[text]


def _in_place(plan: Plan, role: str, name: str) -> ModelPlan:
    """Another model in a role's place, under its own name; the role itself where it has that model already."""
    model = override_models(plan, {role: name}).models[role]
    return model if model == plan.models[role] else model.model_copy(update={"role": name})


def _apart(models: tuple[ModelPlan, ...]) -> tuple[ModelPlan, ...]:
    """The models under roles of which no two are the same."""
    taken: Counter[str] = Counter()
    apart = []
    for model in models:
        taken[model.role] += 1
        number = taken[model.role]
        apart.append(model if number == 1 else model.model_copy(update={"role": f"{model.role} #{number}"}))
    return tuple(apart)


def plan_with(plan: Plan, models: Sequence[ModelPlan], *, samples: int | None = None) -> Plan:
    """The plan with these models and the judges alone, so that no other has to be there."""
    kept = {role: plan.models[role] for role in judges(plan) if role in plan.models}
    roles = {**kept, **{model.role: model for model in models}}
    changes: dict[str, object] = {"models": roles}
    if samples is not None:
        changes["optimize"] = replace(plan.optimize, samples=samples)
    return plan.model_copy(update=changes)


def as_target(plan: Plan, model: ModelPlan) -> Plan:
    """The plan with a model in the target's place, as a compile of it would have it."""
    models = {**plan.models, TARGET: model.model_copy(update={"role": TARGET})}
    return asked(plan.model_copy(update={"models": models}))


def check_places(plan: Plan, models: Sequence[ModelPlan], environ: Mapping[str, str], root: Path) -> None:
    """Says how a server's model gets its address, where the program does not declare the model.

    Raises:
        SkillcError: nobody says where its server is.
    """
    for model in models:
        if model.role in plan.models or provider_of(model.model) not in _SERVED:
            continue
        try:
            connect(model, environ, root)
        except SkillcError as problem:
            block = f'`model other = "{model.model}" {{ base_url = "http://localhost:8000/v1" }}`'
            hint = f"declare it in the program, {block}, with that or with `serve = vllm {{}}`, and try `--model other`"
            raise SkillcError(problem.message, hint=hint) from None


def labels_of(models: Sequence[ModelPlan]) -> dict[str, str]:
    """How each role's model is called in a table: by its name, and by its role too where two share the name."""
    names = Counter(model.model for model in models)
    return {model.role: model.model if names[model.model] == 1 else f"{model.model} ({model.role})" for model in models}


def is_same(model: ModelPlan, locked: ModelLock) -> bool:
    """Whether a model is the one that a lock names, parameters included."""
    return (model.model, model.parameters) == (locked.model, locked.parameters)
