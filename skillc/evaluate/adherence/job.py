"""What an adherence check runs: skill, rules, models and the spend bound, before anything is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.budget.spend import Spend, SpendBound, one_call
from skillc.data.dataset import Dataset, load_data, sizes_of
from skillc.data.split import Side, split_digest
from skillc.dataclass import dataclass
from skillc.document.skill import Document, Rule
from skillc.errors import SkillcError
from skillc.evaluate.adherence.by_code import checkable
from skillc.evaluate.job import compile_run
from skillc.evaluate.measuring import (
    MeasuringJob,
    as_target,
    bound_of,
    check_caps,
    check_places,
    chosen_models,
    plan_with,
    spread_examples,
)
from skillc.evaluate.recheck.parts import with_rules
from skillc.evaluate.skills import INITIAL, SkillArm, SkillArms, check_test, one_arm, own_paths
from skillc.frontend import Planned
from skillc.models.prices import price_table
from skillc.models.rulebook.sentences import DecisionRule
from skillc.plan.initial import initial_skill
from skillc.plan.lock import LookLock, add_look, read_lock
from skillc.plan.models import judges
from skillc.plan.schema import ModelPlan, Plan
from skillc.plan.settings import override
from skillc.stats.power import LEVEL
from skillc.tokens import count_tokens

# Tokens around a prompt's own content, of one rule in a prompt and in a reply, and of a reply without rules, as
# measured on the templates; of a second question.
_AROUND, _A_RULE, _A_MARK, _AROUND_MARKS, _ASKED_AGAIN = 620, 25, 60, 40, 60


@dataclass(frozen=True, slots=True)
class AdherenceOptions:
    """The user's options.

    Attributes:
        judge: the model that marks: `role`, `provider/name` or `role=provider/name`; None for the program's first
            judge, or its optimizer.
        skill: a file; None for the compiled skill.
        examples: the most of the split, evenly spread; None for all.
        samples: rollouts per example; None for the program's.
        judge_all: ask the model about rules too that code can check.
        caps: settings of the budget that replace those of the program.
    """

    split: Side = "validation"
    judge: str | None = None
    skill: Path | None = None
    examples: int | None = None
    samples: int | None = None
    judge_all: bool = False
    caps: Mapping[str, str] | None = None
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AdherenceJob(MeasuringJob):
    """A resolved check, with nothing sent.

    Attributes:
        target: the model of the rollouts.
        judge: the model that marks; None if code can check every rule.
        skill: whose rollouts are marked.
        initial: the program's skill, on the same examples.
        rules: in the order of the skill.
        by_code: condition and answer of the rules that code checks, by id.
        batch: rules of one call.
        look: at the test split; None on another split.
        number: of that look, else 1.
    """

    paths: ArtifactPaths
    target: ModelPlan
    judge: ModelPlan | None
    skill: SkillArm
    initial: SkillArm
    rules: tuple[Rule, ...]
    by_code: Mapping[str, DecisionRule]
    batch: int
    look: LookLock | None
    number: int

    @property
    def samples(self) -> int:
        """Rollouts of each example."""
        return self.plan.optimize.samples

    @property
    def level(self) -> Fraction:
        """The level of all claims on the rules together."""
        return LEVEL / (self.number * self.number)

    @property
    def judged(self) -> tuple[Rule, ...]:
        """The rules that the model marks."""
        return tuple(rule for rule in self.rules if rule.id not in self.by_code)


def prepare_adherence(planned: Planned, options: AdherenceOptions) -> AdherenceJob:
    """Resolve skill, rules, models and examples, and bound the cost.

    Raises:
        SkillcError: there is no skill with rules, an option cannot be used, or the caps cannot pay.
    """
    program, root = planned.plan, planned.root
    (target,) = chosen_models(program, [], offline=options.offline)
    paths, skill = own_paths(planned), one_arm(planned, options.skill)
    assert skill.skill is not None
    rules = rules_of(skill.skill, initial_skill(program, root))
    if not rules:
        what = "the compiled skill" if skill.name not in (INITIAL,) else "the initial skill"
        hint = "compile the program first, or name a skill with `--skill`" if skill.name == INITIAL else None
        raise SkillcError(f"{what} has no rules in a trainable section, so there is nothing to check", hint=hint)
    read = {rule.id: found for rule in rules if (found := checkable(program, rule)) is not None}
    by_code = {} if options.judge_all else read
    judge = None if len(by_code) == len(rules) else _judge(program, options)
    models = [target, *([judge] if judge is not None else [])]
    check_places(program, models, root)
    plan = plan_with(program, models, samples=options.samples)
    plan = override(plan, options.caps or {})
    dataset = load_data(plan, root)
    lock = read_lock(paths.lock) if paths.lock.exists() else None
    if options.split == "test":
        check_test(SkillArms((skill,), lock, (), None), dataset, paths)
    examples = spread_examples(dataset, options.split, options.examples)
    initial = SkillArm(INITIAL, initial_skill(program, root))
    batch = _batch(judge, len(rules) - len(by_code))
    look, number = None, 1
    if options.split == "test" and lock is not None:
        look = _look(program, target, skill, initial, dataset, root)
        number = add_look(lock.looks, look)[1]
    count = len(examples) * plan.optimize.samples
    arms = [skill, *([initial] if initial.digest != skill.digest else [])]
    bound = bound_of(plan, [target], arms, count, dataset, root)
    judged = [rule for rule in rules if rule.id not in by_code]
    if judge is not None:
        bound += _marks_bound(plan, target, judge, judged, batch, dataset, root).times(*[count] * 3)
    check_caps(plan, bound, what="this check", fewer="fewer `--examples`")
    return AdherenceJob(
        planned=planned,
        plan=plan,
        split=options.split,
        dataset=dataset,
        examples=examples,
        bound=bound,
        notes=dataset.warnings,
        paths=paths,
        target=target,
        judge=judge,
        skill=skill,
        initial=initial,
        rules=rules,
        by_code=by_code,
        batch=batch,
        look=look,
        number=number,
    )


def rules_of(skill: Document, initial: Document) -> tuple[Rule, ...]:
    """Return the rules of a skill that was read from its files, in order: not the lines of scripts."""
    document, _ = with_rules(skill, initial)
    return tuple(rule for section in document.sections if not section.is_script for rule in section.rules)


def _judge(program: Plan, options: AdherenceOptions) -> ModelPlan:
    """Return the model that marks: as the user names it, else the first judge of the program, else its optimizer."""
    role = options.judge or next(iter(judges(program)), "optimizer")
    (model,) = chosen_models(program, [role], offline=options.offline)
    return model


def _batch(judge: ModelPlan | None, rules: int) -> int:
    """Return how many rules one call marks: all, unless the longest reply is too short for them."""
    fitting = rules if judge is None else max(1, (judge.max_reply - _AROUND_MARKS) // _A_MARK)
    return max(1, min(rules, fitting))


def _look(
    program: Plan, target: ModelPlan, skill: SkillArm, initial: SkillArm, dataset: Dataset, root: Path
) -> LookLock:
    """Return the look of a check: one for all its rules, whose claims share one level."""
    run = compile_run(as_target(program, target), root, dataset)
    family = hashlib.sha256(f"adherence\n{skill.digest}".encode()).hexdigest()
    return LookLock(run=run, initial=initial.digest, best=family, test=split_digest(dataset.test))


def _marks_bound(
    plan: Plan, target: ModelPlan, judge: ModelPlan, rules: list[Rule], batch: int, dataset: Dataset, root: Path
) -> SpendBound:
    """Return the bound of the calls that mark one rollout; each reply may be asked for once more."""
    sizes, price, limit = (
        sizes_of(plan, dataset, root),
        price_table(plan).get(judge.role),
        plan.optimize.trajectory_limit,
    )
    texts = sum(count_tokens(rule.text) + _A_RULE for rule in rules)
    calls = -(-len(rules) // batch)
    reply = min(_AROUND_MARKS + _A_MARK * batch, judge.max_reply)
    about = _AROUND + sizes.inputs.mean + 2 * sizes.outputs.mean + texts // calls
    most = _AROUND + sizes.inputs.most + limit + target.max_reply + texts + judge.max_reply + _ASKED_AGAIN
    each, largest = one_call(about, reply, price), one_call(most, judge.max_reply, price)
    return SpendBound(Spend() + each, each, largest).times(calls, calls, 2 * calls)
