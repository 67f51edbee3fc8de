"""What a check of judges runs: judges, skill, models, examples, labels and the spend bound, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillc.budget.judging import one_judge
from skillc.budget.spend import SpendBound
from skillc.data.dataset import load_data, sizes_of
from skillc.data.split import Side
from skillc.dataclass import dataclass
from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.evaluate.judge_check.labels import Label, read_labels
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
from skillc.evaluate.skills import INITIAL, NONE, SkillArm, one_arm
from skillc.frontend import Planned
from skillc.gates.terms import calls
from skillc.metrics.judging.check.questions import has_free_text, variants_of
from skillc.models.prices import price_table
from skillc.outcomes import Example
from skillc.plan.initial import initial_skill
from skillc.plan.judges import JudgePlan, judges_of, reads_judge
from skillc.plan.schema import MetricPlan, ModelPlan, Plan
from skillc.text import listed

EXAMPLES = 100
REPEATS = 3
_ADDED = 100


@dataclass(frozen=True, slots=True)
class JudgeCheckOptions:
    """The user's options.

    Attributes:
        metric: whose judges are checked; None for all.
        labels: a file with labels of people.
        truth: a metric without a judge whose value is the label of each rollout.
        repeats: plain questions about each answer.
        examples: the most of the split, evenly spread.
        samples: rollouts per example; None for the program's.
        targets: models that answer: `role`, `provider/name` or `role=provider/name`; empty for the program's target.
        skill: a file; None for the compiled skill or, before the first compile, the initial one.
        sheet: a new file for the answers; None asks the judges about them.
    """

    metric: str | None = None
    labels: Path | None = None
    truth: str | None = None
    repeats: int = REPEATS
    split: Side = "validation"
    examples: int = EXAMPLES
    samples: int | None = None
    targets: tuple[str, ...] = ()
    skill: Path | None = None
    sheet: Path | None = None
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheckJob(MeasuringJob):
    """A resolved check, with nothing sent.

    Attributes:
        known: the examples that a label may name, by id.
        models: that answer.
        judges: the checked ones, each with the names of the metrics that call it.
        arm: the skill of the rollouts.
        initial: the skill that a judge compares with; None without such a judge.
        truth: the metric whose value is the label; None without one.
        sheet: a file for the answers, of which no judge is asked; None without one.
    """

    known: Mapping[str, Example]
    models: tuple[ModelPlan, ...]
    judges: tuple[tuple[JudgePlan, tuple[str, ...]], ...]
    arm: SkillArm
    initial: SkillArm | None
    samples: int
    repeats: int
    labels: tuple[Label, ...]
    truth: MetricPlan | None
    sheet: Path | None


def prepare_judge_check(planned: Planned, options: JudgeCheckOptions) -> JudgeCheckJob:
    """Resolve judges, skill, models, examples and labels, and bound the cost.

    Raises:
        SkillcError: the program has no such judge, an option or a file cannot be used, or the caps cannot pay.
    """
    program, root = planned.plan, planned.root
    judges = _chosen_judges(program, options.metric)
    truth = _truth(program, options.truth)
    if options.labels is not None and truth is not None:
        raise SkillcError("`--labels` and `--truth` can't be used together", hint="leave one of them out")
    if options.sheet is not None and options.sheet.exists():
        raise SkillcError(f"`{options.sheet}` exists", hint="name another file: it may have labels")
    if options.labels is not None or options.sheet is not None:
        _check_one("--sheet" if options.sheet is not None else "--labels", judges)
    models = chosen_models(program, options.targets, offline=options.offline)
    check_places(program, models, root)
    roles = dict.fromkeys(role for judge, _ in judges for role in judge.roles)
    plan = plan_with(program, models, judged_by=() if options.sheet else roles)
    dataset = load_data(plan, root)
    examples = spread_examples(dataset, options.split, options.examples)
    known = {example.id: example for example in (*dataset.train, *dataset.validation)}
    initial = SkillArm(INITIAL, initial_skill(program, root))
    compares = any(judge.against == "initial" for judge, _ in judges)
    arm, notes = one_arm(planned, options.skill), list[str]()
    if compares and options.skill is None and arm.digest == initial.digest:
        # The initial skill's answers would be compared with themselves.
        arm, notes = SkillArm(NONE, None), ["answers without a skill are compared with those of the initial skill"]
    found = JudgeCheckJob(
        planned=planned,
        plan=plan,
        split=options.split,
        dataset=dataset,
        examples=examples,
        bound=SpendBound(),
        notes=(*notes, *_notes(program, judges), *dataset.warnings),
        known=known,
        models=models,
        judges=judges,
        arm=arm,
        initial=initial if compares else None,
        samples=options.samples or program.optimize.samples,
        repeats=options.repeats,
        labels=() if options.labels is None else read_labels(options.labels, judges[0][0], known),
        truth=truth,
        sheet=options.sheet,
    )
    rolled, judged = _rollouts_bound(found), _judges_bound(found)
    bound = rolled if options.sheet else rolled + judged
    fewer = "fewer `--examples` or `--repeats`"
    check_caps(plan, bound, what="this check", fewer=fewer)
    cap = plan.budget.judge_calls
    if not options.sheet and cap is not None and judged.least.calls > cap:
        raise SkillcError(
            f"the budget cannot pay for this check: it takes {judged.least.calls:,} calls of judges, and {cap:,} are "
            "allowed",
            hint=f"use `--set budget.judge_calls={judged.least.calls}`, or {fewer}",
        )
    return replace(found, bound=bound)


def _rollouts_bound(job: JudgeCheckJob) -> SpendBound:
    """Return the bound of all rollouts without their judges, which are asked apart."""
    bare = job.plan.model_copy(update={"metrics": ()})
    bound = bound_of(bare, job.models, [job.arm], len(job.examples) * job.samples, job.dataset, job.root)
    if job.initial is None:
        return bound
    one = bound_of(bare, job.models[:1], [job.initial], 1, job.dataset, job.root)
    more = len(job.examples) + len({label.example for label in job.labels})
    return bound + one.times(len(job.examples), len(job.examples), more)


def _judges_bound(job: JudgeCheckJob) -> SpendBound:
    """Return the bound of all questions to judges, with an empty cache."""
    sizes, prices, bound = sizes_of(job.plan, job.dataset, job.root), price_table(job.plan), SpendBound()
    items = len(job.examples) * job.samples * len(job.models) + len(job.labels)
    first = job.models[0]
    plain = as_target(job.plan, first)
    # A padded answer is twice as long, and an injection adds a sentence or two.
    longer = as_target(job.plan, first.model_copy(update={"max_reply": 2 * first.max_reply + _ADDED}))
    for judge, _ in job.judges:
        variants = variants_of(job.plan, judge, job.repeats)
        added = sum(each.kind in ("padded", "injected") for each in variants)
        for role in judge.roles:
            for target, count in ((plain, len(variants) - added), (longer, added)):
                bound += one_judge(target, judge, sizes, role, prices.get(role)).times(*[items * count] * 3)
    return bound


def _chosen_judges(plan: Plan, name: str | None) -> tuple[tuple[JudgePlan, tuple[str, ...]], ...]:
    """Return the judges of a metric and of those that it reads, or all, each with the metrics that call it."""
    known = {metric.name: metric for metric in plan.metrics}
    if name is not None and name not in known:
        near = suggest(name, known)
        hint = f"did you mean `{near}`?" if near else f"the program has {listed(known)}"
        raise SkillcError(f"no metric `{name}`", hint=hint)
    judges = judges_of(plan) if name is None else judges_of(plan, known[name])
    if not judges:
        what = "the program has no judge" if name is None else f"the metric `{name}` reads no judge"
        with_one = [metric.name for metric in plan.metrics if reads_judge(plan, metric)]
        hint = "a metric with one is `metric good = judge(answer, rubric, model = referee)`"
        raise SkillcError(what, hint=f"{listed(with_one)} read one" if with_one else hint)
    each = next((judge.rubric.each for judge in judges if judge.rubric.each is not None), None)
    if each is not None:
        raise SkillcError(
            f"a judge of the statements in `{each}` can't be checked: its rubric differs from example to example",
            hint="name a metric with another rubric: `--metric NAME`",
        )
    return tuple(
        (judge, tuple(metric.name for metric in plan.metrics if judge.term in calls(metric.term))) for judge in judges
    )


def _truth(plan: Plan, name: str | None) -> MetricPlan | None:
    """Return the metric that labels rollouts.

    Raises:
        SkillcError: there is none of that name, or it reads a judge.
    """
    if name is None:
        return None
    metric = next((metric for metric in plan.metrics if metric.name == name), None)
    if metric is None:
        known = [metric.name for metric in plan.metrics if not reads_judge(plan, metric)]
        hint = f"metrics without a judge: {listed(known)}" if known else "declare one, such as `exact_match(answer)`"
        raise SkillcError(f"no metric `{name}`", hint=hint)
    if reads_judge(plan, metric):
        raise SkillcError(f"`{name}` reads a judge, so it is no truth", hint="name a metric that code measures")
    return metric


def _check_one(option: str, judges: Sequence[tuple[JudgePlan, tuple[str, ...]]]) -> None:
    """Refuse labels for several judges, whose levels may mean other things.

    Raises:
        SkillcError: with a metric to name.
    """
    if len(judges) > 1:
        names = list(dict.fromkeys(name for _, metrics in judges for name in metrics))
        raise SkillcError(
            f"`{option}` is for one judge, and {listed(names, 'and')} have {len(judges)}",
            hint=f"name one: `--metric {names[0]}`",
        )


def _notes(plan: Plan, judges: Sequence[tuple[JudgePlan, tuple[str, ...]]]) -> list[str]:
    outputs = {judge.output for judge, _ in judges if not has_free_text(plan, judge)}
    return [
        f"`{name}` is not free text: it can neither be padded nor address its judge, so neither is measured"
        for name in sorted(outputs)
    ]
