"""What a recheck measures: the model, the skill, its learned parts and the spend bound, before anything is sent."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.owner import check_owner
from skillc.data.dataset import Dataset, load_data
from skillc.data.split import Side, split_digest
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.evaluate.job import compile_run
from skillc.evaluate.measuring import (
    MeasuringJob,
    as_target,
    bound_of,
    check_caps,
    check_places,
    chosen_models,
    examples_of,
    is_same,
    plan_with,
)
from skillc.evaluate.recheck.parts import Part, learned_parts, with_rules
from skillc.evaluate.skills import COMPILED, INITIAL, NONE, SkillArm, SkillArms, arms_of, check_test
from skillc.frontend import Planned
from skillc.outcomes import Example
from skillc.plan.digest import plan_digest
from skillc.plan.initial import initial_skill
from skillc.plan.judges import judges_of
from skillc.plan.lock import ArmLock, Lock, LookLock, add_look, read_lock
from skillc.plan.models import TARGET
from skillc.plan.schema import ModelPlan, Plan
from skillc.stats.power import LEAST_GROUPS, LEVEL
from skillc.stats.verdict import least_p
from skillc.text import counted


@dataclass(frozen=True, slots=True)
class RecheckOptions:
    """The user's options.

    Attributes:
        model: `role`, `provider/name` or `role=provider/name`; None for the program's target.
        samples: rollouts per example; None for the program's.
        examples: the most examples, a random part of the split; None for all.
        rules: the most rules, those first that more examples may concern; None for all.
        every: whether rules of the initial skill are measured too.
    """

    split: Side = "validation"
    model: str | None = None
    samples: int | None = None
    examples: int | None = None
    rules: int | None = None
    every: bool = False
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecheckJob(MeasuringJob):
    """A resolved recheck, with nothing sent.

    Attributes:
        model: the only target.
        skill: the compiled skill, written as its variants are.
        parts: those that are measured.
        left: those beyond the `rules` of the options.
        same: whether the lock's figures are over the same examples.
        look: at the test split; None on another split.
        number: of that look, else 1.
    """

    paths: ArtifactPaths
    model: ModelPlan
    skill: SkillArm
    parts: tuple[Part, ...]
    left: tuple[Part, ...]
    lock: Lock
    same: bool
    look: LookLock | None
    number: int

    @property
    def level(self) -> Fraction:
        """The level of all claims on the parts together."""
        return LEVEL / (self.number * self.number)

    def recorded(self, arm: Literal["best", "none"]) -> ArmLock | None:
        """Return the goal of the skill, or without a skill, on this split in the lock; None if the lock has none."""
        if self.split == "train":
            return None
        table = self.lock.validation if self.split == "validation" else self.lock.test
        found = table.best if arm == "best" else table.none
        return found if found is not None and found.mean is not None else None

    @property
    def arms(self) -> tuple[SkillArm, ...]:
        """The skill, no skill, and the skill without each part, in the order in which they are measured."""
        return _arms(self.skill, self.parts)


def arm_without(part: Part) -> SkillArm:
    """Return the skill without a part as an arm."""
    return SkillArm(f"without {part.name}", part.without)


def _arms(skill: SkillArm, parts: tuple[Part, ...]) -> tuple[SkillArm, ...]:
    return (skill, SkillArm(NONE, None), *map(arm_without, parts))


def prepare_recheck(planned: Planned, options: RecheckOptions, folder: Path | None = None) -> RecheckJob:
    """Resolve skill, model and data, and bound the cost; `folder` has the skill, by default the compiled one.

    Raises:
        SkillcError: there is no compiled skill, an option cannot be used, the split is too small for so many rules, or
            the caps cannot pay.
    """
    program, root = planned.plan, planned.root
    (model,) = chosen_models(program, [options.model] if options.model else [], offline=options.offline)
    check_places(program, [model], root)
    plan = plan_with(program, [model], samples=options.samples)
    paths = ArtifactPaths.of_folder(folder) if folder else ArtifactPaths.beside(root, program.skill.artifact)
    lock, compiled, notes = _compiled(planned, plan, paths)
    dataset = load_data(plan, root)
    if options.split == "test":
        check_test(SkillArms((compiled,), lock, (), None), dataset, paths)
    every = examples_of(dataset, options.split)
    examples = every[: options.examples]
    initial = initial_skill(plan, root)
    assert compiled.skill is not None
    document, rewritten = with_rules(compiled.skill, initial)
    skill = SkillArm(COMPILED, document, compiled.file)
    found = learned_parts(document, initial, examples, every=options.every)
    count = len(found) if options.rules is None else options.rules
    parts, left = tuple(found[:count]), tuple(found[count:])
    look, number = None, 1
    if options.split == "test":
        sampled = as_target(program.model_copy(update={"optimize": plan.optimize}), model)
        look = _look(skill, parts, compile_run(sampled, root, dataset), dataset)
        number = add_look(lock.looks, look)[1]
    _check_groups(examples, options.split, 1 + len(parts), LEVEL / (number * number))
    arms = _arms(skill, parts)
    if any(judge.against == "initial" for judge in judges_of(plan)):
        arms = (*arms, SkillArm(INITIAL, initial))
    bound = bound_of(plan, [model], arms, len(examples) * plan.optimize.samples, dataset, root)
    fewer = f"fewer rules: `--rules {max(1, len(parts) // 2)}`, or fewer examples with `--examples`"
    check_caps(plan, bound, fewer=fewer)
    same_data = lock.data.digest == dataset.digest
    return RecheckJob(
        planned=planned,
        plan=plan,
        split=options.split,
        dataset=dataset,
        examples=examples,
        bound=bound,
        notes=(*notes, *rewritten, *_notes(planned, lock, model, options, same_data=same_data), *dataset.warnings),
        paths=paths,
        model=model,
        skill=skill,
        parts=parts,
        left=left,
        lock=lock,
        same=same_data and len(examples) == len(every),
        look=look,
        number=number,
    )


def _compiled(planned: Planned, plan: Plan, paths: ArtifactPaths) -> tuple[Lock, SkillArm, list[str]]:
    """Return the lock, the skill as it was read, and notes.

    Raises:
        SkillcError: there is no compiled skill of this program.
    """
    if not paths.lock.exists():
        candidate = paths.candidate.skill
        hint = f"run `skillc compile {planned.path}`"
        if candidate.exists():
            hint = f"`skillc recheck {candidate.parent}` rechecks the skill that was not delivered"
        raise SkillcError(f"no compiled skill to recheck: `{paths.lock}` is missing", hint=hint)
    lock = read_lock(paths.lock)
    check_owner(planned.path, paths, lock)
    arms = arms_of(plan, paths, (), (NONE,), root=planned.root)
    if arms.compiled is None:
        raise SkillcError(f"no compiled skill to recheck: {arms.notes[0]}")
    return lock, arms.compiled, list(arms.notes)


def _look(skill: SkillArm, parts: tuple[Part, ...], run: str, dataset: Dataset) -> LookLock:
    """Return the look of a recheck: one for all its parts, whose claims share one level."""
    variants = "\n".join(sorted(arm_without(part).digest for part in parts))
    family = hashlib.sha256(f"recheck\n{variants}".encode()).hexdigest()
    return LookLock(run=run, initial=skill.digest, best=family, test=split_digest(dataset.test))


def _check_groups(examples: tuple[Example, ...], split: str, tests: int, level: Fraction) -> None:
    """Refuse a split on which no result could show anything.

    Raises:
        SkillcError: it has too few groups for so many tests.
    """
    groups = len({example.group for example in examples})
    if least_p(groups) <= level / tests:
        return
    enough = next((most for most in range(tests - 1, 1, -1) if least_p(groups) <= level / most), None)
    advice = "use more examples" if enough is None else f"use more examples, or `--rules {enough - 1}`"
    few = f", fewer than {LEAST_GROUPS}" if groups < LEAST_GROUPS else ""
    what = f"the {split} split has {counted(groups, 'group')} of examples{few}"
    raise SkillcError(f"not measurable: {what}, on which {counted(tests, 'test')} can show nothing", hint=advice)


def _notes(planned: Planned, lock: Lock, model: ModelPlan, options: RecheckOptions, *, same_data: bool) -> list[str]:
    """Return what makes the lock's figures differ for another reason than the model."""
    notes = []
    as_locked = lock.program.options is None and not options.offline
    if as_locked and lock.program.plan != plan_digest(planned.plan):
        notes.append("the program changed since the compile, so the lock's goal may have another meaning")
    if not same_data and options.split != "train":
        notes.append("the data changed since the compile: the lock's figures are over other examples")
    made_with = lock.models.get(TARGET)
    if made_with is not None and not is_same(model, made_with):
        settings = " under other settings" if model.model == made_with.model else ""
        notes.append(f"the skill was made with `{made_with.model}`{settings}")
    if options.split == "train":
        notes.append("the skill was trained on these examples, and the lock has no figures of them")
    elif options.split == "validation":
        notes.append(
            "the skill was selected on validation, so its figure in the lock is somewhat too high; `--split test` has "
            "held-out examples, and counts a look"
        )
    return notes
