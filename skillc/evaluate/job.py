"""A resolved `skillc eval`: skills, models and examples, the spend bound, and the looks that it takes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.data.dataset import Dataset, load_data
from skillc.data.split import Side, split_digest
from skillc.dataclass import dataclass
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.evaluate.by_field import check_field, fields_of_data
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
from skillc.evaluate.one_shot import OPTIMIZER, check_one_shot, one_shot_bound
from skillc.evaluate.places import Place, PlaceKind, places_of, shared_examples
from skillc.evaluate.skills import ALIASES, ONE_SHOT, SkillArms, arms_of, check_test, own_paths
from skillc.frontend import Planned
from skillc.models.backends.function import FUNCTION
from skillc.models.endpoint import Endpoint
from skillc.optimize.host import Value
from skillc.plan.digest import run_id
from skillc.plan.lock import LookLock
from skillc.plan.schema import ModelPlan, Plan
from skillc.run.session import parts_of_run
from skillc.text import counted


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """The user's options.

    Attributes:
        split: `all` for every split apart; None for validation, or test with an adapter.
        models: `role`, `provider/name` or `role=provider/name`; empty for the program's target.
        skills: files, in addition to the program's skills.
        without: names of the program's skills to leave out.
        samples: rollouts per example; None for the program's.
        against: the reference: `none`, `initial`, `compiled` or a file; None for the initial skill.
        by: a field of the data; scores are shown for each of its values too.
        arms: names of the program's skills to score, or their aliases; empty for `none`, `initial` and `compiled`.
        rollouts: further kinds of rollouts, as a program writes them.
        programs: related programs, on whose data the skills are measured too.
        settings: `--set` of the call, for `rollouts`.
        adapters: `FOLDER`, `NAME=FOLDER`, or the name of an adapter that the program declares.
        adapter_models: adapters that another's server has, as models: `provider/name` or a role.
        allow_trained: evaluate adapters on examples that they were trained on.
        judge_check: a file with what `judge check --json` printed.
        junit: whether a JUnit file is written, which has no form for adapters.
    """

    split: Side | Literal["all"] | None = None
    models: tuple[str, ...] = ()
    skills: tuple[Path, ...] = ()
    without: tuple[str, ...] = ()
    samples: int | None = None
    offline: bool = False
    against: str | None = None
    by: str | None = None
    arms: tuple[str, ...] = ()
    rollouts: tuple[str, ...] = ()
    programs: tuple[Path, ...] = ()
    settings: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()
    adapter_models: tuple[str, ...] = ()
    allow_trained: bool = False
    judge_check: Path | None = None
    junit: bool = False

    @property
    def one_shot(self) -> bool:
        """Whether a one-shot skill is written first."""
        return ONE_SHOT in self.arms and ONE_SHOT not in self.without


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalJob(MeasuringJob):
    """A resolved evaluation, with nothing sent.

    Attributes:
        paths: of the compiled skill whose lock counts the looks at this test split.
        one_shot: whether a one-shot skill is still to be written, which joins the arms then.
        by: a field of the data; None for no parts.
        place: the kind of place; `own` for the program as it is.
        where: the label of the place, if there are several; empty otherwise.
        more_paths: of other compiled skills whose locks count the looks too.
        known: outcomes that need not be run, by the keys of the record.
        apart: what the stages of the ledger have behind the names of the arms, so that several jobs can be told apart.
    """

    paths: ArtifactPaths
    models: tuple[ModelPlan, ...]
    arms: SkillArms
    one_shot: bool = False
    by: str | None = None
    place: PlaceKind = "own"
    where: str = ""
    apart: str = ""
    more_paths: tuple[ArtifactPaths, ...] = ()
    known: Mapping[bytes, Value] = field(default_factory=dict, repr=False)

    @property
    def looks(self) -> dict[tuple[str, str], LookLock]:
        """The looks at the test split by role and arm, one per tested pair; empty on another split."""
        if self.split != "test":
            return {}
        sampled = self.program.model_copy(update={"optimize": self.plan.optimize})
        return _looks(sampled, self.root, self.dataset, self.models, self.arms)

    @property
    def arm_count(self) -> int:
        """The number of arms, with one that is still to be written."""
        return len(self.arms.each) + self.one_shot

    def with_one_shot(self, skill: Document | None) -> EvalJob:
        """Return the job with the written skill among its arms, before the compiled one; without it for None."""
        if not self.one_shot:
            return self
        return replace(self, one_shot=False, arms=self.arms if skill is None else self.arms.with_one_shot(skill))


def prepare_eval(planned: Planned, options: EvalOptions) -> EvalJob:
    """Resolve models, skills and data of one evaluation, and bound the cost.

    Raises:
        SkillcError: an option, file or model cannot be used, or the caps cannot pay for the evaluation.
    """
    assert options.split != "all"
    (own, *_) = places_of(planned, (), ())
    job = resolve_job(planned, options, own, options.split or "validation")
    check_caps(job.plan, job.bound)
    return job


def resolve_job(planned: Planned, options: EvalOptions, place: Place, split: Side, *, first: bool = True) -> EvalJob:
    """Resolve models, skills and data of one evaluation in one place, without a check of the caps.

    `first` is whether the one-shot skill is written for this one.

    Raises:
        SkillcError: an option, file or model cannot be used.
    """
    program, there, root = planned.plan, place.planned.plan, place.planned.root
    models = chosen_models(program, options.models, offline=options.offline)
    check_places(program, models, planned.root)
    if options.by is not None and place.kind != "data":
        check_field(there, options.by)
    plan = plan_with(there, models, samples=options.samples)
    if options.one_shot and first:
        check_one_shot(program, planned.root)
        plan = _with_optimizer(plan, program)
    arms = arms_of(
        program, own_paths(planned), options.skills, options.without, options.against, planned.root,
        names=[ALIASES.get(name, name) for name in options.arms], reader=there,
    )  # fmt: skip
    dataset = load_data(plan, root)
    examples = examples_of(dataset, split)
    shared = shared_examples(planned, examples) if place.kind == "data" else 0
    if split == "test":
        check_test(arms, dataset, place.paths, elsewhere=place.kind == "data")
    if split == "test" and shared:
        raise SkillcError(
            f"{counted(shared, 'test example')} of `{place.planned.path}` have inputs that the skill was made with",
            hint="remove them from one of the two programs, or measure on another split",
        )
    count = len(examples) * plan.optimize.samples
    bound = bound_of(plan, models, arms.each, count, dataset, root)
    if options.one_shot:
        bound += one_shot_bound(_with_optimizer(plan, program), models, count, dataset, root, written=first)
    notes = [*dataset.warnings]
    if place.kind == "own":
        notes = [*arms.notes, *notes, *_notes(options, models)]
    if shared:
        notes.append(f"{counted(shared, 'example')} of `{place.planned.path}` have inputs that the skill was made with")
    return EvalJob(
        planned=place.planned,
        plan=plan,
        split=split,
        dataset=dataset,
        examples=examples,
        bound=bound,
        notes=tuple(notes),
        paths=place.paths,
        models=models,
        arms=arms,
        one_shot=options.one_shot,
        by=options.by if options.by in fields_of_data(there) else None,
        place=place.kind,
        where=place.label,
    )


def _with_optimizer(plan: Plan, program: Plan) -> Plan:
    return plan.model_copy(update={"models": {**plan.models, OPTIMIZER: program.models[OPTIMIZER]}})


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
    return run_id(parts_of_run(plan, root, dataset, own_endpoints(plan, root)))


def own_endpoints(plan: Plan, root: Path) -> dict[str, Endpoint]:
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
