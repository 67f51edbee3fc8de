"""What a measurement of noise runs: skill, examples, repeats, concurrencies and the spend bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.owner import check_owner
from skillc.budget.bounds import preflight_stage, tried_models
from skillc.budget.spend import SpendBound
from skillc.data.dataset import Dataset, load_data, sizes_of
from skillc.errors import SkillcError
from skillc.evaluate.job import bound_of, check_caps, plan_with
from skillc.evaluate.skills import COMPILED, INITIAL, NONE, SkillArm, arms_of
from skillc.frontend import Planned
from skillc.models.prices import price_table
from skillc.outcomes import Example
from skillc.plan.lock import read_lock
from skillc.plan.models import TARGET
from skillc.plan.schema import Plan

Split = Literal["validation", "train"]
CONCURRENCY = (1, 16)
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class NoiseOptions:
    """The user's options.

    Attributes:
        repeats: rollouts of each example at each concurrency; None for 3, or twice the program's `samples` if more.
        concurrency: rollouts in flight, one measurement each.
        examples: how many of the split; None for all.
        skill: a file; None for the compiled skill or, before the first compile, the initial one.
    """

    split: Split = "validation"
    repeats: int | None = None
    concurrency: tuple[int, ...] = CONCURRENCY
    examples: int | None = None
    skill: Path | None = None
    offline: bool = False


@dataclass(frozen=True, slots=True)
class NoiseJob:
    """A resolved measurement, with nothing sent.

    Attributes:
        program: with its gates and samples.
        plan: what runs: one sample per rollout.
        examples: spread over the split.
    """

    program: Plan
    plan: Plan
    root: Path
    split: Split
    dataset: Dataset
    examples: tuple[Example, ...]
    arm: SkillArm
    repeats: int
    concurrency: tuple[int, ...]
    bound: SpendBound
    preflight_calls: int

    @property
    def rollouts(self) -> int:
        """All rollouts."""
        return len(self.examples) * self.repeats * len(self.concurrency)


def prepare_noise(planned: Planned, options: NoiseOptions) -> NoiseJob:
    """Resolve skill and data, and bound the cost.

    Raises:
        SkillcError: an option, a file or the model cannot be used, or the caps cannot pay for the measurement.
    """
    program, root = planned.plan, planned.root
    concurrency = tuple(dict.fromkeys(options.concurrency))
    _check_concurrency(program, concurrency)
    target = program.models[TARGET]
    plan = plan_with(program, [target], samples=1)
    dataset = load_data(program, root)
    split = {"validation": dataset.validation, "train": dataset.train}[options.split]
    examples = _spread(split, options.examples)
    if not examples:
        raise SkillcError(f"the split `{options.split}` has no examples", hint="name another with `--split`")
    repeats = options.repeats or max(_REPEATS, 2 * program.optimize.samples)
    arm = _arm(planned, options.skill)
    prices = price_table(plan)
    preflight = preflight_stage(tried_models(plan), prices)
    count = len(examples) * repeats * len(concurrency)
    bound = bound_of(plan, [target], [arm], count, sizes_of(plan, dataset, root), prices)
    check_caps(plan, bound, what="this measurement", fewer="fewer `--examples` or `--repeats`")
    return NoiseJob(
        program=program,
        plan=plan,
        root=root,
        split=options.split,
        dataset=dataset,
        examples=examples,
        arm=arm,
        repeats=repeats,
        concurrency=concurrency,
        bound=bound,
        preflight_calls=preflight.bound.most.calls if preflight is not None else 0,
    )


def _check_concurrency(plan: Plan, concurrency: Sequence[int]) -> None:
    """Refuse a concurrency that the target's own limit never reaches."""
    most = plan.models[TARGET].pacing.concurrency
    too_much = next((each for each in concurrency if most is not None and each > most), None)
    if too_much is not None:
        raise SkillcError(
            f"model `{TARGET}` declares `concurrency = {most}`, so {too_much} rollouts are never in flight at once",
            hint=f"raise it, or use `--concurrency {most}`",
        )


def _spread(split: Sequence[Example], count: int | None) -> tuple[Example, ...]:
    """Return so many examples of a split, evenly spread; all if there are fewer."""
    most = len(split) if count is None else min(count, len(split))
    return tuple(split[i * len(split) // most] for i in range(most))


def _arm(planned: Planned, file: Path | None) -> SkillArm:
    """Return the skill of a file, else the compiled one, else the initial one."""
    plan, root = planned.plan, planned.root
    paths = ArtifactPaths.beside(root, plan.skill.artifact)
    if file is None:
        check_owner(planned.path, paths, read_lock(paths.lock) if paths.lock.exists() else None)
    files = [file] if file is not None else []
    found = arms_of(plan, paths, files, (NONE, COMPILED) if files else (NONE,), root=root)
    if file is not None:
        return next(arm for arm in found.each if arm.name not in (INITIAL, COMPILED))
    arm = found.compiled or found.named(INITIAL)
    assert arm is not None
    return arm
