"""What an evaluation measures: models, skills, data and the spend bound, resolved before anything is sent."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.owner import check_owner
from skillc.budget.bounds import preflight_stage, tried_models
from skillc.budget.call_sizes import CallSizer
from skillc.budget.spend import Sizes, SpendBound
from skillc.data.dataset import Dataset, load_data, sizes_of
from skillc.data.split import split_digest
from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.evaluate.skills import SkillArm, SkillArms, arms_of, check_test
from skillc.frontend import Planned
from skillc.gates import units
from skillc.models.backends.function import FUNCTION
from skillc.models.backends.registry import connect
from skillc.models.endpoint import VLLM_PROVIDERS, Endpoint
from skillc.models.prices import price_table
from skillc.outcomes import Example
from skillc.plan.digest import run_id
from skillc.plan.lock import LookLock, ModelLock, read_lock
from skillc.plan.models import TARGET, judges, override_models, put_offline, simulated_users, with_used_models
from skillc.plan.schema import ModelPlan, Plan, PricePlan
from skillc.run.session import parts_of_run
from skillc.text import listed


def chosen_models(plan: Plan, texts: Sequence[str], *, offline: bool) -> tuple[ModelPlan, ...]:
    """Return the models that the user named, each once; by default the program's target.

    A role, or a model of a role, comes with its settings. Any other model replaces a role's as `compile --model` does:
    that of the target, or of the role in `role=provider/name`.

    Args:
        plan: the program.
        texts: `role`, `provider/name` or `role=provider/name`.
        offline: the rulebook replaces every model.

    Raises:
        SkillcError: a role does not exist, or a model has no provider.
    """
    found: dict[str, ModelPlan] = {}
    for model in [_chosen(plan, text.strip()) for text in texts] or [plan.models[TARGET]]:
        put = put_offline(plan.model_copy(update={"models": {model.role: model}})) if offline else None
        answers = model if put is None else put.models[model.role]
        # A replacement is called by its own name, or by the rulebook's.
        role = model.role if model.role in plan.models or put is None else answers.model
        answers = answers.model_copy(update={"role": role})
        found.setdefault(answers.model_dump_json(exclude={"role", "pacing"}), answers)
    return _distinct_roles(found.values())


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
        raise SkillcError(f"no model `{text}`", hint=f"{known}; name other models with their provider: `a/b`")
    return plan.models[text]


def _in_place(plan: Plan, role: str, name: str) -> ModelPlan:
    """Return another model in place of a role's, under its name; the role itself if it already has that model."""
    model = override_models(plan, {role: name}).models[role]
    return model if model == plan.models[role] else model.model_copy(update={"role": name})


def _distinct_roles(models: Iterable[ModelPlan]) -> tuple[ModelPlan, ...]:
    """Return the models with distinct roles, numbering repeated ones."""
    taken: Counter[str] = Counter()
    distinct = []
    for model in models:
        taken[model.role] += 1
        number = taken[model.role]
        distinct.append(model if number == 1 else model.model_copy(update={"role": f"{model.role} #{number}"}))
    return tuple(distinct)


def plan_with(plan: Plan, models: Sequence[ModelPlan], *, samples: int | None = None) -> Plan:
    """Return the plan with only these models, judges and simulated users, so that no other has to be configured."""
    kept = {role: plan.models[role] for role in (*judges(plan), *simulated_users(plan)) if role in plan.models}
    roles = {**kept, **{model.role: model for model in models}}
    changes: dict[str, object] = {"models": roles}
    if samples is not None:
        changes["optimize"] = replace(plan.optimize, samples=samples)
    return plan.model_copy(update=changes)


def as_target(plan: Plan, model: ModelPlan) -> Plan:
    """Return the plan of a compile with a model as the target."""
    models = {**plan.models, TARGET: model.model_copy(update={"role": TARGET})}
    return with_used_models(plan.model_copy(update={"models": models}))


def check_places(plan: Plan, models: Sequence[ModelPlan], environ: Mapping[str, str], root: Path) -> None:
    """Refuse an undeclared model of a local server, which has no address.

    Raises:
        SkillcError: no server address is configured for it.
    """
    for model in models:
        if model.role in plan.models or model.provider not in VLLM_PROVIDERS:
            continue
        try:
            connect(model, environ, root)
        except SkillcError as problem:
            block = f'`model other = "{model.model}" {{ base_url = "http://localhost:8000/v1" }}`'
            hint = f"declare it in the program, {block} or with `serve = vllm {{}}`, and use `--model other`"
            raise SkillcError(problem.message, hint=hint) from None


def labels_of(models: Sequence[ModelPlan]) -> dict[str, str]:
    """Return each role's label in a table: the model's name, with the role where two share the name."""
    names = Counter(model.model for model in models)
    return {model.role: model.model if names[model.model] == 1 else f"{model.model} ({model.role})" for model in models}


def is_same(model: ModelPlan, locked: ModelLock) -> bool:
    """Return whether a model is the one in a lock, parameters included."""
    return (model.model, model.parameters) == (locked.model, locked.parameters)


def bound_of(
    plan: Plan,
    models: Sequence[ModelPlan],
    arms: Sequence[SkillArm],
    examples: int,
    sizes: Sizes,
    prices: dict[str, PricePlan | None],
) -> SpendBound:
    """Return the bound of the spending of all arms, models, examples and samples, with an empty cache.

    `plan` is the evaluation's; `prices` are in dollars per million tokens by role, None for an unknown one.
    """
    whole, count = SpendBound(), examples * plan.optimize.samples
    for model in models:
        priced = {**prices, TARGET: prices.get(model.role)}
        for arm in arms:
            whole += CallSizer(as_target(plan, model), sizes, priced).arm(arm.skill).times(*[count] * 3)
    return whole


def check_caps(
    plan: Plan, bound: SpendBound, *, what: str = "this evaluation", fewer: str = "fewer models or skills"
) -> None:
    """Refuse a measurement that cannot be completed under the caps; `what` and `fewer` name it and a fix in the error.

    Raises:
        SkillcError: with a sufficient setting.
    """
    least, about, budget = bound.least, bound.estimate, plan.budget
    found: tuple[str, str, str, str] | None = None
    if budget.calls is not None and least.calls > budget.calls:
        found = "calls", f"{least.calls:,}", f"{budget.calls:,}", str(least.calls)
    elif budget.tokens is not None and least.tokens > budget.tokens:
        takes, enough = f"about {units.tokens(about.tokens)}", str(units.rounded_up(about.tokens))
        found = "tokens", takes, units.tokens(budget.tokens), enough
    elif budget.cost is not None and least.cost is not None and least.cost > budget.cost:
        takes, cents = f"about {units.dollars(about.cost)}", units.cents_up(about.cost or least.cost)
        found = "cost", takes, units.dollars(budget.cost), cents
    if found is not None:
        name, takes, allowed, enough = found
        raise SkillcError(
            f"the budget cannot pay for {what}: it takes {takes} {name}, and {allowed} are allowed",
            hint=f"use `--set budget.{name}={enough}`, or {fewer}",
        )


Split = Literal["validation", "train", "test"]


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """The user's options.

    Attributes:
        models: `role`, `provider/name` or `role=provider/name`; empty for the program's target.
        skills: files, in addition to the program's skills.
        without: names of the program's skills to leave out.
        samples: rollouts per example; None for the program's.
        against: the reference: `none`, `initial`, `compiled` or a file; None for the initial skill.
    """

    split: Split = "validation"
    models: tuple[str, ...] = ()
    skills: tuple[Path, ...] = ()
    without: tuple[str, ...] = ()
    samples: int | None = None
    offline: bool = False
    against: str | None = None


@dataclass(frozen=True, slots=True)
class EvalJob:
    """A resolved evaluation, with nothing sent.

    Attributes:
        plan: the evaluation's plan: its models and judges, its samples.
        paths: of the compiled skill and its lock.
        preflight_calls: one per model.
        looks: at the test split by role and arm, one per tested pair; empty on another split.
        notes: to report before anything is sent.
    """

    program: Plan
    plan: Plan
    root: Path
    paths: ArtifactPaths
    split: Split
    dataset: Dataset
    examples: tuple[Example, ...]
    models: tuple[ModelPlan, ...]
    arms: SkillArms
    bound: SpendBound
    preflight_calls: int
    looks: Mapping[tuple[str, str], LookLock]
    notes: tuple[str, ...]


def prepare_eval(planned: Planned, options: EvalOptions) -> EvalJob:
    """Resolve models, skills and data, and bound the cost.

    Raises:
        SkillcError: an option, file or model cannot be used, or the caps cannot pay for the evaluation.
    """
    program, root = planned.plan, planned.root
    models = chosen_models(program, options.models, offline=options.offline)
    check_places(program, models, os.environ, root)
    plan = plan_with(program, models, samples=options.samples)
    paths = ArtifactPaths.beside(root, program.skill.artifact)
    check_owner(planned.path, paths, read_lock(paths.lock) if paths.lock.exists() else None)
    arms = arms_of(plan, paths, options.skills, options.without, options.against, planned.root)
    dataset = load_data(plan, root)
    examples = {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}[options.split]
    if options.split == "test":
        check_test(arms, dataset, paths)
    prices = price_table(plan)
    preflight = preflight_stage(tried_models(plan), prices)
    bound = bound_of(plan, models, arms.each, len(examples), sizes_of(plan, dataset, root), prices)
    check_caps(plan, bound)
    sampled = program.model_copy(update={"optimize": plan.optimize})
    return EvalJob(
        program=program,
        plan=plan,
        root=root,
        paths=paths,
        split=options.split,
        dataset=dataset,
        examples=examples,
        models=models,
        arms=arms,
        bound=bound,
        preflight_calls=preflight.bound.most.calls if preflight is not None else 0,
        looks=_looks(sampled, root, dataset, models, arms) if options.split == "test" else {},
        notes=(*arms.notes, *dataset.warnings, *_notes(options, models)),
    )


def _notes(options: EvalOptions, models: Sequence[ModelPlan]) -> list[str]:
    notes = []
    asked = len(set(options.models))
    if options.offline and asked > len(models):
        notes.append(f"`--offline` replaces every model by the rulebook: of {asked} models {len(models)} is left")
    fixed = [model.model for model in models if model.parameters.get("temperature") == 0]
    if (options.samples or 1) > 1 and fixed:
        notes.append(f"`{fixed[0]}` has temperature 0: its {options.samples} samples will be nearly the same")
    return notes


def _looks(
    program: Plan, root: Path, dataset: Dataset, models: Sequence[ModelPlan], arms: SkillArms
) -> dict[tuple[str, str], LookLock]:
    """Return one look for each pair, in the order of the verdicts: skills first, then no skill."""
    reference, test = arms.reference, split_digest(dataset.test)
    if reference is None:
        return {}
    return {
        (model.role, arm.name): LookLock(
            run=compile_run(as_target(program, model), root, dataset),
            initial=reference.digest,
            best=arm.digest,
            test=test,
        )
        for model in models
        for arm in sorted(arms.each, key=lambda arm: arm.skill is None)
        if arm.digest != reference.digest
    }


def compile_run(plan: Plan, root: Path, dataset: Dataset) -> str:
    """Return the id of the run that compiles this plan: a pair that it tested is the same look."""
    return run_id(parts_of_run(plan, root, dataset, _own_endpoints(plan, root)))


def _own_endpoints(plan: Plan, root: Path) -> dict[str, Endpoint]:
    """Return the endpoints of models that are Python functions; other models may lack their key."""
    found = {}
    for role, model in plan.models.items():
        try:
            own = FUNCTION.connect(model, os.environ, root)
        except SkillcError:
            continue
        if own is not None:
            found[role] = own[0]
    return found
