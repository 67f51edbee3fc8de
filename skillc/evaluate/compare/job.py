"""A resolved comparison of two skills: an evaluation of two arms, with what their compiles have recorded."""

from __future__ import annotations

from skillc.artifact_paths import ArtifactPaths
from skillc.budget.spend import SpendBound
from skillc.data.dataset import load_data
from skillc.data.split import Side as Split
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.evaluate.by_field import check_field
from skillc.evaluate.compare.sides import Side, check_one_task
from skillc.evaluate.compare.stored import stored_outcomes
from skillc.evaluate.job import EvalJob
from skillc.evaluate.measuring import (
    as_target,
    bound_of,
    check_caps,
    check_places,
    chosen_models,
    examples_of,
    plan_with,
)
from skillc.evaluate.skills import SkillArms, check_test, own_paths, read_arm
from skillc.frontend import Planned, plan_file


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The user's options.

    Attributes:
        model: `role`, `provider/name` or `role=provider/name`; None for the program's target.
        samples: rollouts per example; None for the program's.
        by: a field of the data; None for no parts.
    """

    split: Split = "test"
    model: str | None = None
    samples: int | None = None
    by: str | None = None
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareJob(EvalJob):
    """A resolved comparison, with nothing sent.

    Attributes:
        sides: the two skills; the gain is that of the second over the first.
        stored: whether every outcome is one that the two compiles have recorded.
    """

    sides: tuple[Side, Side]
    stored: bool


def prepare_compare(planned: Planned, sides: tuple[Side, Side], options: CompareOptions) -> CompareJob:
    """Resolve skills, model and examples, and bound the cost: nothing, if both compiles have recorded all outcomes.

    Raises:
        SkillcError: the skills are for different tasks, an option, file or model cannot be used, or the caps cannot
            pay.
    """
    program, root = planned.plan, planned.root
    models = chosen_models(program, [options.model] if options.model else [], offline=options.offline)
    check_places(program, models, root)
    if options.by is not None:
        check_field(program, options.by)
    plan = plan_with(program, models, samples=options.samples)
    dataset = load_data(plan, root)
    for side in sides:
        if side.program is not None and side.program.resolve() != planned.path.resolve():
            other = plan_file(side.program, offline=options.offline, complete=False)
            check_one_task((planned, dataset), (other, load_data(other.plan, other.root)))
    arms = _arms(planned, sides)
    examples = examples_of(dataset, options.split)
    if not examples:
        raise SkillcError(f"the split `{options.split}` has no examples", hint="name another with `--split`")
    paths = _paths(planned, sides)
    if options.split == "test":
        check_test(arms, dataset, paths[0])
    measured = as_target(program, models[0])
    measured = measured.model_copy(update={"optimize": plan.optimize})
    found = [
        None if arm.skill is None else stored_outcomes(side, arm.skill, measured, root, dataset, examples)
        for side, arm in zip(sides, arms.each, strict=True)
    ]
    known = {key: value for values in found if values is not None for key, value in values.items()}
    stored = all(values is not None for values in found)
    count = len(examples) * plan.optimize.samples
    bound = SpendBound() if stored else bound_of(plan, models, arms.each, count, dataset, root)
    check_caps(plan, bound, what="this comparison", fewer="a smaller split")
    return CompareJob(
        planned=planned,
        plan=plan,
        split=options.split,
        dataset=dataset,
        examples=examples,
        bound=bound,
        notes=dataset.warnings,
        paths=paths[0],
        more_paths=tuple(paths[1:]),
        models=models,
        arms=arms,
        by=options.by,
        known=known if stored else {},
        sides=sides,
        stored=stored,
    )


def _arms(planned: Planned, sides: tuple[Side, Side]) -> SkillArms:
    """Return the two skills under the names that the user gave them; the first is the reference."""
    one, other = (read_arm(planned.plan, side.file, name=side.name) for side in sides)
    if one.name == other.name:
        raise SkillcError(f"`{one.name}` is compared with itself", hint="name two skills")
    return SkillArms((one, other), None, (), one)


def _paths(planned: Planned, sides: tuple[Side, Side]) -> list[ArtifactPaths]:
    """Return the skills whose locks count a look at the test split: the program's, and those of both sides."""
    own = own_paths(planned)
    locked = [side.paths for side in sides if side.paths is not None and side.lock is not None]
    found = [paths for paths in (own, *locked) if paths.lock.is_file()]
    distinct = {paths.lock.resolve(): paths for paths in found}
    return list(distinct.values()) or [own]
