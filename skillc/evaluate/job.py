"""What is asked for, with everything looked up and nothing sent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.budget.spend import Bound
from skillc.data.dataset import Dataset, sizes_of
from skillc.data.dataset import load as load_data
from skillc.data.examples import Example, split_digest
from skillc.errors import SkillcError
from skillc.evaluate.bound import bound_of, check_caps, preflight_of
from skillc.evaluate.looks import check_test, look_at, unknown_looks
from skillc.evaluate.models import as_target, check_places, chosen_models, plan_with
from skillc.evaluate.skills import Arms, arms_of
from skillc.frontend import Planned
from skillc.models.backends.function import FUNCTION
from skillc.models.endpoint import Endpoint
from skillc.models.prices import price_table
from skillc.owner import check_owner
from skillc.plan.digest import run_id
from skillc.plan.lock import LookLock, read_lock
from skillc.plan.schema import ModelPlan, Plan
from skillc.session import parts_of_run

Split = Literal["validation", "train", "test"]
SPLITS: tuple[Split, ...] = ("validation", "train", "test")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user asks for.

    Attributes:
        models: `role`, `provider/name` or `role=provider/name`; none for the program's target.
        skills: files beside the program's own skills.
        without: names of the program's own skills to leave out.
        samples: rollouts per example; None for the program's.
        against: what the others are compared with: `none`, `initial`, `compiled` or a file; None for the initial skill.
    """

    split: Split = "validation"
    models: tuple[str, ...] = ()
    skills: tuple[Path, ...] = ()
    without: tuple[str, ...] = ()
    samples: int | None = None
    offline: bool = False
    against: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """What will be measured, with everything looked up and nothing sent.

    Attributes:
        program: the program's own plan.
        plan: that of the evaluation: its models and judges, its samples.
        models: those that are tried, in order.
        paths: of the compiled skill and its lock.
        bound: what it takes at most.
        tried: models that preflight asks, one call each.
        looks: at the test split, one for each pair that is tested; empty on another split.
        notes: what the user should know before anything is sent.
    """

    program: Plan
    plan: Plan
    root: Path
    paths: ArtifactPaths
    split: Split
    dataset: Dataset
    examples: tuple[Example, ...]
    models: tuple[ModelPlan, ...]
    arms: Arms
    bound: Bound
    tried: int
    looks: Mapping[tuple[str, str], LookLock]
    notes: tuple[str, ...]


def prepared(planned: Planned, wanted: Wanted) -> Job:
    """Looks up models, skills and data, and what they take.

    Raises:
        SkillcError: whatever of it the user can mend, caps that cannot pay for it included.
    """
    program, root = planned.plan, planned.root
    models = chosen_models(program, wanted.models, offline=wanted.offline)
    check_places(program, models, os.environ, root)
    plan = plan_with(program, models, samples=wanted.samples)
    paths = ArtifactPaths.beside(root, program.skill.artifact)
    check_owner(planned.path, paths, read_lock(paths.lock) if paths.lock.exists() else None)
    arms = arms_of(plan, paths, wanted.skills, wanted.without, wanted.against)
    dataset = load_data(plan.task, plan.data, root)
    examples = {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}[wanted.split]
    if wanted.split == "test":
        check_test(arms, dataset, paths)
    prices = price_table(plan)
    bound = bound_of(plan, models, arms.each, len(examples), sizes_of(plan, dataset), prices)
    check_caps(plan, bound)
    sampled = program.model_copy(update={"optimize": plan.optimize})
    return Job(
        program=program,
        plan=plan,
        root=root,
        paths=paths,
        split=wanted.split,
        dataset=dataset,
        examples=examples,
        models=models,
        arms=arms,
        bound=bound,
        tried=preflight_of(plan, prices),
        looks=_looks(sampled, root, dataset, models, arms) if wanted.split == "test" else {},
        notes=(*arms.notes, *dataset.warnings, *_notes(wanted, models)),
    )


def _notes(wanted: Wanted, models: Sequence[ModelPlan]) -> list[str]:
    notes = []
    asked = len(set(wanted.models))
    if wanted.offline and asked > len(models):
        notes.append(f"`--offline` puts the rulebook in place of every model: of {asked} models {len(models)} is left")
    fixed = [model.model for model in models if model.parameters.get("temperature") == 0]
    if (wanted.samples or 1) > 1 and fixed:
        notes.append(f"`{fixed[0]}` has a temperature of 0: {wanted.samples} samples of it are much the same")
    return notes


def _looks(
    program: Plan, root: Path, dataset: Dataset, models: Sequence[ModelPlan], arms: Arms
) -> dict[tuple[str, str], LookLock]:
    """One look for each pair, in the order in which they are judged: skills first, then no skill."""
    reference, test = arms.reference, split_digest(dataset.test)
    if reference is None:
        return {}
    return {
        (model.role, arm.name): look_at(_run(as_target(program, model), root, dataset), reference, arm, test)
        for model in models
        for arm in sorted(arms.each, key=lambda arm: arm.skill is None)
        if arm.digest != reference.digest
    }


def _run(plan: Plan, root: Path, dataset: Dataset) -> str:
    """The name of the run that a compile of this plan is, so that a pair which it tested is the same look."""
    return run_id(parts_of_run(plan, root, dataset, _own_endpoints(plan, root)))


def _own_endpoints(plan: Plan, root: Path) -> dict[str, Endpoint]:
    """Of the models that functions answer for; a model that is not asked may lack its key."""
    found = {}
    for role, model in plan.models.items():
        try:
            own = FUNCTION.connect(model, os.environ, root)
        except SkillcError:
            continue
        if own is not None:
            found[role] = own[0]
    return found


def new_looks(job: Job) -> int:
    """How many looks the evaluation adds to those that the lock knows."""
    return unknown_looks(job.arms.lock.looks if job.arms.lock else (), list(job.looks.values()))
