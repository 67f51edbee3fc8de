"""Resolve the arms of one model, with and without adapters and the skill, before anything is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from pathlib import Path

from skillc.budget.spend import SpendBound
from skillc.data.dataset import Dataset, load_data
from skillc.data.split import split_digest
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.evaluate.adapters.adapter import Adapter, base_notes, check_untrained, named_adapters, served_adapters
from skillc.evaluate.adapters.judges import FlipRates, judged_by, read_flips
from skillc.evaluate.by_field import check_field
from skillc.evaluate.job import EvalJob, EvalOptions, compile_run
from skillc.evaluate.measuring import as_target, bound_of, check_caps, chosen_models, examples_of, plan_with
from skillc.evaluate.skills import ALIASES, ARMS, COMPILED, NONE, SkillArm, SkillArms, arms_of, check_test, own_paths
from skillc.frontend import Planned
from skillc.plan.lock import LookLock, add_look
from skillc.plan.models import TARGET
from skillc.plan.schema import ModelPlan, Plan
from skillc.stats.power import LEVEL
from skillc.stats.verdict import least_p
from skillc.text import counted, listed

BASE, SKILL, LORA, BOTH = "base", "skill", "lora", "skill+lora"
ADAPTER_ARMS = (LORA, BOTH)
ALL = (BASE, SKILL, LORA, BOTH)
ARM_NAMES = (*ARMS, *ALIASES, *ADAPTER_ARMS)
"""Every name that `--arms` accepts."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One model with one skill.

    Attributes:
        name: `base`, `skill`, `lora` or `skill+lora`; with several adapters `lora NAME`.
        adapter: None for the base model.
        skill: the arm of the skill, `none` for no skill.
        model: the target, or the adapter as a model of its own.
    """

    name: str
    adapter: Adapter | None
    skill: SkillArm
    model: ModelPlan


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms that are compared: the gain is that of `arm` over `reference`."""

    arm: Arm
    reference: Arm

    @property
    def name(self) -> str:
        """The name in tables and in JSON."""
        return f"{self.arm.name} – {self.reference.name}"

    @property
    def is_question(self) -> bool:
        """Whether it compares an adapter with the skill: the question that the evaluation answers."""
        return (kind(self.arm), kind(self.reference)) == (LORA, SKILL)


def kind(arm: Arm) -> str:
    """Return which of the four arms it is, whatever its adapter."""
    bare = arm.skill.skill is None
    if arm.adapter is None:
        return BASE if bare else SKILL
    return LORA if bare else BOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsJob(EvalJob):
    """A resolved evaluation of arms, with nothing sent.

    Attributes:
        each: the arms in the order of the table.
        pairs: the question first; all are one family of tests.
        adapters: those of the arms.
        look: at the test split, one for the whole family; None on another split.
        number: of that look, else 1.
        judged: roles of the judges that the goal asks.
        flips: how often they contradict themselves, from the named judge check.
    """

    each: tuple[Arm, ...]
    pairs: tuple[Pair, ...]
    adapters: tuple[Adapter, ...]
    look: LookLock | None
    number: int
    judged: tuple[str, ...]
    flips: Mapping[str, FlipRates] = field(default_factory=dict)

    @property
    def level(self) -> Fraction:
        """The level of all claims together."""
        return LEVEL / (self.number * self.number)

    @property
    def arm_count(self) -> int:
        """The number of arms."""
        return len(self.each)

    @property
    def looks(self) -> dict[tuple[str, str], LookLock]:
        """The look at the test split."""
        return {} if self.look is None else {(TARGET, "arms"): self.look}


def asks_for_adapters(options: EvalOptions) -> bool:
    """Return whether an evaluation compares adapters."""
    return bool(options.adapters or options.adapter_models or set(options.arms) & set(ADAPTER_ARMS))


def prepare_arms(planned: Planned, options: EvalOptions) -> ArmsJob:
    """Resolve arms, adapters and examples, and bound the cost.

    Raises:
        SkillcError: an option does not go with adapters, an adapter, file or model cannot be used, an adapter was
            trained on the evaluated examples, or the caps cannot pay.
    """
    _check_options(options)
    assert options.split != "all"
    split = options.split or "test"
    wanted = _wanted(options.arms)
    program, root = planned.plan, planned.root
    models = chosen_models(program, options.models, offline=options.offline)
    target = models[0].model_copy(update={"role": TARGET})
    original = program.model_copy(update={"models": {**program.models, TARGET: target}})
    changed, served = served_adapters(original, options.adapters, root) if options.adapters else (original, ())
    adapters = _distinct((*served, *named_adapters(changed, options.adapter_models, root, offline=options.offline)))
    target = changed.models[TARGET]
    plan = plan_with(changed, [target, *(adapter.model for adapter in adapters)], samples=options.samples)
    if options.by is not None:
        check_field(program, options.by)
    dataset = load_data(plan, root)
    examples = examples_of(dataset, split)
    if not examples:
        raise SkillcError(f"the split `{split}` has no examples", hint="name another with `--split`")
    skills = _skills(planned, plan, wanted, options.skills)
    each = _arms(wanted, target, adapters, skills)
    pairs = _pairs(each)
    paths = own_paths(planned)
    if split == "test":
        check_test(skills, dataset, paths)
    trained = check_untrained(adapters, examples, split, allowed=options.allow_trained)
    look, number = None, 1
    if split == "test" and skills.lock is not None:
        sampled = as_target(program.model_copy(update={"optimize": plan.optimize}), target)
        look = _look(each, compile_run(sampled, root, dataset), dataset)
        number = add_look(skills.lock.looks, look)[1]
    bound, count = SpendBound(), len(examples) * plan.optimize.samples
    for model in dict.fromkeys(arm.model.role for arm in each):
        read = [arm.skill for arm in each if arm.model.role == model]
        bound += bound_of(plan, [plan.models[model]], read, count, dataset, root)
    check_caps(plan, bound, fewer="fewer arms")
    notes = [
        *skills.notes,
        *dataset.warnings,
        *base_notes(target, adapters, root),
        *trained,
        *_notes(examples, pairs, split, number),
    ]
    return ArmsJob(
        planned=planned,
        plan=plan,
        split=split,
        dataset=dataset,
        examples=examples,
        bound=bound,
        notes=tuple(notes),
        paths=paths,
        models=(target, *(adapter.model for adapter in adapters)),
        arms=skills,
        by=None,
        each=each,
        pairs=pairs,
        adapters=adapters,
        look=look,
        number=number,
        judged=judged_by(plan),
        flips=read_flips(options.judge_check, plan) if options.judge_check is not None else {},
    )


def _check_options(options: EvalOptions) -> None:
    """Refuse options that have no meaning beside an adapter.

    Raises:
        SkillcError: one is set.
    """
    if not options.adapters and not options.adapter_models:
        (name, *_) = [name for name in options.arms if name in ADAPTER_ARMS]
        raise SkillcError(
            f"the arm `{name}` needs an adapter",
            hint="name one: `--adapter FOLDER`, or `--adapter-model hosted_vllm/NAME` if a server already has it",
        )
    refused = {
        "--without": options.without,
        "--against": options.against,
        "--rollout": options.rollouts,
        "--on": options.programs,
        "--by": options.by,
        "--split all": options.split == "all",
        "--junit": options.junit,
    }
    found = next((name for name, value in refused.items() if value), None)
    if found is not None:
        hint = "leave one arm out with `--arms`" if found == "--without" else f"remove `{found}`"
        raise SkillcError(f"`{found}` does not go with an adapter", hint=hint)
    for name, values in (("--model", options.models), ("--skill", options.skills)):
        if len(values) > 1:
            raise SkillcError(f"an evaluation with an adapter takes one `{name}`", hint="run it once for each")


def _wanted(arms: Collection[str]) -> tuple[str, ...]:
    """Return the wanted of the four arms, in the order of the table; all of them by default.

    Raises:
        SkillcError: one has no place beside an adapter, or none has one.
    """
    names = {NONE: BASE, COMPILED: SKILL}
    wanted = {names.get(name, name) for name in arms} or set(ALL)
    other = next((name for name in arms if name in wanted and name not in ALL), None)
    if other is not None:
        raise SkillcError(f"the arm `{other}` does not go with an adapter", hint=f"valid arms: {listed(ALL)}")
    if not wanted & set(ADAPTER_ARMS):
        raise SkillcError("no arm uses the adapter", hint="add `lora` to `--arms`")
    if len(wanted) == 1:
        raise SkillcError("one arm alone can be compared with nothing", hint=f"valid arms: {listed(ALL)}")
    return tuple(name for name in ALL if name in wanted)


def _distinct(adapters: Sequence[Adapter]) -> tuple[Adapter, ...]:
    names = [adapter.name for adapter in adapters]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SkillcError(
            f"two adapters have the name `{twice}`", hint=f"name one of them: `--adapter {twice}2=FOLDER`"
        )
    return tuple(adapters)


def _skills(planned: Planned, plan: Plan, wanted: Sequence[str], files: Sequence[Path]) -> SkillArms:
    """Return no skill and the compiled one, or the one of a file, as far as an arm uses them.

    Raises:
        SkillcError: there is no skill for an arm that uses one.
    """
    uses_skill = bool({SKILL, BOTH} & set(wanted))
    names = [NONE, *([COMPILED] if uses_skill and not files else [])]
    found = arms_of(plan, own_paths(planned), files if uses_skill else (), (), root=planned.root, names=names)
    if uses_skill and all(arm.skill is None for arm in found.each):
        raise SkillcError(
            f"there is no skill to compare the adapter with: {found.notes[0]}",
            hint=f"compile the program, give a skill with `--skill FILE`, or use `--arms {BASE},{LORA}`",
        )
    return found


def _arms(wanted: Sequence[str], target: ModelPlan, adapters: Sequence[Adapter], skills: SkillArms) -> tuple[Arm, ...]:
    bare = next(arm for arm in skills.each if arm.skill is None)
    skill = next((arm for arm in skills.each if arm.skill is not None), bare)
    read = {BASE: bare, SKILL: skill, LORA: bare, BOTH: skill}
    found = [Arm(name, None, read[name], target) for name in wanted if name not in ADAPTER_ARMS]
    for adapter in adapters:
        apart = f" {adapter.name}" if len(adapters) > 1 else ""
        found += [Arm(name + apart, adapter, read[name], adapter.model) for name in wanted if name in ADAPTER_ARMS]
    return tuple(found)


def _pairs(arms: Sequence[Arm]) -> tuple[Pair, ...]:
    """Return the compared pairs: adapter against skill first, then both against each, then each against the base."""
    pairs = []
    for one, other in ((LORA, SKILL), (BOTH, SKILL), (BOTH, LORA), (SKILL, BASE), (LORA, BASE), (BOTH, BASE)):
        pairs += [
            Pair(arm, reference)
            for arm in arms
            for reference in arms
            if (kind(arm), kind(reference)) == (one, other)
            and (reference.adapter is None or reference.adapter is arm.adapter)
        ]
    return tuple(pairs)


def _look(arms: Sequence[Arm], run: str, dataset: Dataset) -> LookLock:
    """Return the look of all pairs: one, as their claims share one level."""
    parts = sorted(f"{kind(arm)} {arm.adapter.digest if arm.adapter is not None else ''}" for arm in arms)
    family = hashlib.sha256("\n".join(["arms", *parts]).encode()).hexdigest()
    skill = next((arm.skill for arm in arms if arm.skill.skill is not None), arms[0].skill)
    return LookLock(run=run, initial=skill.digest, best=family, test=split_digest(dataset.test))


def _notes(examples: Sequence[object], pairs: Sequence[Pair], split: str, number: int) -> list[str]:
    groups = len({getattr(example, "group", None) for example in examples})
    if split != "test" or least_p(groups) <= LEVEL / (number * number) / len(pairs):
        return []
    return [
        f"the test split has {counted(groups, 'group')}, on which {counted(len(pairs), 'test')} at look {number} can "
        f"show nothing: use more examples, or fewer arms"
    ]
