"""A resolved `skillc eval`: skills, models and examples, the spend bound, and the looks that it takes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.data.dataset import Dataset, load_data
from skillc.data.split import Side, split_digest
from skillc.errors import SkillcError
from skillc.evaluate.by_field import check_field
from skillc.evaluate.measuring import (
    MeasuringJob,
    as_target,
    bound_of,
    check_caps,
    check_places,
    chosen_models,
    examples_of,
    plan_with,
)
from skillc.evaluate.skills import SkillArms, arms_of, check_test, own_paths
from skillc.frontend import Planned
from skillc.models.backends.function import FUNCTION
from skillc.models.endpoint import Endpoint
from skillc.plan.digest import run_id
from skillc.plan.lock import LookLock
from skillc.plan.schema import ModelPlan, Plan
from skillc.run.session import parts_of_run


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """The user's options.

    Attributes:
        models: `role`, `provider/name` or `role=provider/name`; empty for the program's target.
        skills: files, in addition to the program's skills.
        without: names of the program's skills to leave out.
        samples: rollouts per example; None for the program's.
        against: the reference: `none`, `initial`, `compiled` or a file; None for the initial skill.
        by: a field of the data; scores are shown for each of its values too.
    """

    split: Side = "validation"
    models: tuple[str, ...] = ()
    skills: tuple[Path, ...] = ()
    without: tuple[str, ...] = ()
    samples: int | None = None
    offline: bool = False
    against: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalJob(MeasuringJob):
    """A resolved evaluation, with nothing sent.

    Attributes:
        paths: of the compiled skill and its lock.
        looks: at the test split by role and arm, one per tested pair; empty on another split.
        by: a field of the data; None for no parts.
        where: what is measured, where a run has several jobs; empty for the program as it is.
    """

    paths: ArtifactPaths
    models: tuple[ModelPlan, ...]
    arms: SkillArms
    looks: Mapping[tuple[str, str], LookLock]
    by: str | None = None
    where: str = ""


def prepare_eval(planned: Planned, options: EvalOptions) -> EvalJob:
    """Resolve models, skills and data, and bound the cost.

    Raises:
        SkillcError: an option, file or model cannot be used, or the caps cannot pay for the evaluation.
    """
    program, root = planned.plan, planned.root
    models = chosen_models(program, options.models, offline=options.offline)
    check_places(program, models, root)
    if options.by is not None:
        check_field(program, options.by)
    plan = plan_with(program, models, samples=options.samples)
    paths = own_paths(planned)
    arms = arms_of(plan, paths, options.skills, options.without, options.against, root)
    dataset = load_data(plan, root)
    examples = examples_of(dataset, options.split)
    if options.split == "test":
        check_test(arms, dataset, paths)
    bound = bound_of(plan, models, arms.each, len(examples) * plan.optimize.samples, dataset, root)
    check_caps(plan, bound)
    sampled = program.model_copy(update={"optimize": plan.optimize})
    return EvalJob(
        planned=planned,
        plan=plan,
        split=options.split,
        dataset=dataset,
        examples=examples,
        bound=bound,
        notes=(*arms.notes, *dataset.warnings, *_notes(options, models)),
        paths=paths,
        models=models,
        arms=arms,
        looks=_looks(sampled, root, dataset, models, arms) if options.split == "test" else {},
        by=options.by,
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
