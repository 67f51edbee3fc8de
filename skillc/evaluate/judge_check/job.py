"""What a check of judges runs: judges, skill, models, examples, labels and the spend bound, before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.owner import check_owner
from skillc.budget.bounds import preflight_stage, tried_models
from skillc.budget.call_sizes import CallSizer
from skillc.budget.judging import one_judge
from skillc.budget.spend import Sizes, SpendBound
from skillc.data.dataset import Dataset, load_data, sizes_of
from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.evaluate.job import as_target, check_caps, check_places, chosen_models
from skillc.evaluate.judge_check.labels import Label, read_labels
from skillc.evaluate.skills import COMPILED, INITIAL, NONE, SkillArm, arms_of
from skillc.frontend import Planned
from skillc.gates import units
from skillc.gates.terms import CallTerm, MetricTerm, walk
from skillc.metrics.judging.check.variants import has_free_text, variants_of
from skillc.models.prices import price_table
from skillc.outcomes import Example
from skillc.plan.judges import JudgePlan, judges_of, reads_judge
from skillc.plan.lock import read_lock
from skillc.plan.models import TARGET, simulated_users
from skillc.plan.schema import MetricPlan, ModelPlan, Plan, PricePlan
from skillc.text import counted, listed

Split = Literal["validation", "train"]
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
        sheet: whether the answers are only written down, without a judge.
    """

    metric: str | None = None
    labels: Path | None = None
    truth: str | None = None
    repeats: int = REPEATS
    split: Split = "validation"
    examples: int = EXAMPLES
    samples: int | None = None
    targets: tuple[str, ...] = ()
    skill: Path | None = None
    sheet: bool = False
    offline: bool = False


@dataclass(frozen=True, slots=True)
class JudgeCheckJob:
    """A resolved check, with nothing sent.

    Attributes:
        plan: with the models that run alone: those that answer, the checked judges, and simulated users.
        judges: the checked ones, each with the names of the metrics that call it.
        examples: spread over the split.
        known: those that a label may name, by id.
        models: that answer.
        arm: the skill of the rollouts.
        initial: the skill that a judge compares with; None without such a judge.
        truth: the metric whose value is the label; None without one.
        items: the most items that each judge may be asked about.
        sheet: whether the answers are only written down.
    """

    program: Plan
    plan: Plan
    root: Path
    split: Split
    dataset: Dataset
    examples: tuple[Example, ...]
    known: Mapping[str, Example]
    models: tuple[ModelPlan, ...]
    judges: tuple[tuple[JudgePlan, tuple[str, ...]], ...]
    arm: SkillArm
    initial: SkillArm | None
    samples: int
    repeats: int
    labels: tuple[Label, ...]
    truth: MetricPlan | None
    items: int
    sheet: bool
    bound: SpendBound
    preflight_calls: int
    notes: tuple[str, ...]

    @property
    def rollouts(self) -> int:
        """The rollouts whose answers are judged."""
        return len(self.examples) * self.samples * len(self.models)


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
    if options.labels is not None or options.sheet:
        _check_one("--sheet" if options.sheet else "--labels", judges)
    models = chosen_models(program, options.targets, offline=options.offline)
    check_places(program, models, os.environ, root)
    roles = [*dict.fromkeys(role for judge, _ in judges for role in judge.roles), *simulated_users(program)]
    asked = {role: program.models[role] for role in ([] if options.sheet else roles) if role in program.models}
    plan = program.model_copy(update={"models": {**asked, **{model.role: model for model in models}}})
    dataset = load_data(plan, root)
    every = {"validation": dataset.validation, "train": dataset.train}[options.split]
    most = min(options.examples, len(every))
    examples = tuple(every[i * len(every) // most] for i in range(most))
    if not examples:
        raise SkillcError(f"the split `{options.split}` has no examples", hint="name another with `--split`")
    known = {example.id: example for example in (*dataset.train, *dataset.validation)}
    compares = any(judge.against == "initial" for judge, _ in judges)
    arm, initial, notes = _arm(planned, options.skill, compares=compares)
    labels = _labels(options.labels, judges, known)
    samples = options.samples or program.optimize.samples
    items = len(examples) * samples * len(models) + len(labels)
    prices = price_table(plan)
    preflight = preflight_stage(tried_models(plan), prices)
    found = JudgeCheckJob(
        program=program,
        plan=plan,
        root=root,
        split=options.split,
        dataset=dataset,
        examples=examples,
        known=known,
        models=models,
        judges=judges,
        arm=arm,
        initial=initial if compares else None,
        samples=samples,
        repeats=options.repeats,
        labels=labels,
        truth=truth,
        items=items,
        sheet=options.sheet,
        bound=SpendBound(),
        preflight_calls=preflight.bound.most.calls if preflight is not None else 0,
        notes=(*notes, *_notes(program, judges), *dataset.warnings),
    )
    rolled, judged = bounds_of(found, sizes_of(plan, dataset, root), prices)
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


def bounds_of(
    job: JudgeCheckJob, sizes: Sizes, prices: Mapping[str, PricePlan | None]
) -> tuple[SpendBound, SpendBound]:
    """Return the bounds of all rollouts, and of all questions to judges, with an empty cache."""
    rolled, judged = SpendBound(), SpendBound()
    # Rollouts without their judges, which are asked apart.
    bare = job.plan.model_copy(update={"metrics": ()})
    count = len(job.examples) * job.samples
    for model in job.models:
        sizer = CallSizer(as_target(bare, model), sizes, {**prices, TARGET: prices.get(model.role)})
        rolled += sizer.arm(job.arm.skill).times(*[count] * 3)
    if job.initial is not None:
        first = job.models[0]
        sizer = CallSizer(as_target(bare, first), sizes, {**prices, TARGET: prices.get(first.role)})
        more = len(job.examples) + len({label.example for label in job.labels})
        rolled += sizer.arm(job.initial.skill).times(len(job.examples), len(job.examples), more)
    first = job.models[0]
    plain = as_target(job.plan, first)
    # A padded answer is twice as long, and an injection adds a sentence or two.
    longer = as_target(job.plan, first.model_copy(update={"max_reply": 2 * first.max_reply + _ADDED}))
    for judge, _ in job.judges:
        variants = variants_of(job.plan, judge, job.repeats)
        added = sum(each.kind in ("padded", "injected") for each in variants)
        for role in judge.roles:
            for target, count in ((plain, len(variants) - added), (longer, added)):
                questions = job.items * count
                judged += one_judge(target, judge, sizes, role, prices.get(role)).times(*[questions] * 3)
    return rolled, judged


def _chosen_judges(plan: Plan, name: str | None) -> tuple[tuple[JudgePlan, tuple[str, ...]], ...]:
    """Return the judges of a metric and of those that it reads, or all, each with the metrics that call it."""
    known = {metric.name: metric for metric in plan.metrics}
    if name is not None and name not in known:
        near = suggest(name, known)
        hint = f"did you mean `{near}`?" if near else f"the program has {listed(known)}"
        raise SkillcError(f"no metric `{name}`", hint=hint)
    metrics = plan.metrics if name is None else _read_by(plan, known[name])
    judges = judges_of(plan, metrics)
    if not judges:
        what = "the program has no judge" if name is None else f"the metric `{name}` reads no judge"
        with_one = [metric.name for metric in plan.metrics if reads_judge(plan, metric)]
        hint = "a metric with one is `metric good = judge(answer, rubric, model = referee)`"
        raise SkillcError(what, hint=f"{listed(with_one)} read one" if with_one else hint)
    return tuple(
        (judge, tuple(metric.name for metric in plan.metrics if judge.term in _calls(metric))) for judge in judges
    )


def _calls(metric: MetricPlan) -> list[CallTerm]:
    return [part for part in walk(metric.term) if isinstance(part, CallTerm)]


def _read_by(plan: Plan, metric: MetricPlan) -> tuple[MetricPlan, ...]:
    below = [plan.metric(part.name) for part in walk(metric.term) if isinstance(part, MetricTerm)]
    return (metric, *(each for one in below for each in _read_by(plan, one)))


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


def _labels(
    path: Path | None, judges: Sequence[tuple[JudgePlan, tuple[str, ...]]], known: Mapping[str, Example]
) -> tuple[Label, ...]:
    return () if path is None else read_labels(path, judges[0][0], known)


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


def _arm(planned: Planned, file: Path | None, *, compares: bool) -> tuple[SkillArm, SkillArm, list[str]]:
    """Return the skill of the rollouts, the initial skill, and notes.

    It is that of a file, else the compiled one, else the initial one. Where a judge compares with the initial skill,
    whose answers have nothing to be compared with, rollouts without a skill are judged in its place.
    """
    plan, root = planned.plan, planned.root
    paths = ArtifactPaths.beside(root, plan.skill.artifact)
    if file is None:
        check_owner(planned.path, paths, read_lock(paths.lock) if paths.lock.exists() else None)
    arms = arms_of(plan, paths, [file] if file is not None else [], [COMPILED] if file is not None else [], root=root)
    initial = next(arm for arm in arms.each if arm.name == INITIAL)
    if file is not None:
        return next(arm for arm in arms.each if arm.name not in (NONE, INITIAL)), initial, []
    found = arms.compiled or initial
    if compares and found.digest == initial.digest:
        none = next(arm for arm in arms.each if arm.name == NONE)
        return none, initial, ["answers without a skill are compared with those of the initial skill"]
    return found, initial, []


def _notes(plan: Plan, judges: Sequence[tuple[JudgePlan, tuple[str, ...]]]) -> list[str]:
    outputs = {judge.output for judge, _ in judges if not has_free_text(plan, judge)}
    return [
        f"`{name}` is not free text: it can neither be padded nor address its judge, so neither is measured"
        for name in sorted(outputs)
    ]


def preview_lines(job: JudgeCheckJob) -> list[str]:
    """Return the lines to print before anything is sent: what is asked, and the bound."""
    most, about = job.bound.most, job.bound.estimate
    answers = [
        counted(len(job.examples), f"{job.split} example"),
        *([counted(job.samples, "sample")] if job.samples > 1 else []),
        *([counted(len(job.models), "target")] if len(job.models) > 1 else []),
    ]
    questions = sum(len(variants_of(job.plan, judge, job.repeats)) * judge.calls for judge, _ in job.judges)
    preflight = f", and {counted(job.preflight_calls, 'preflight call')}" if job.preflight_calls else ""
    labelled = f", {counted(len(job.labels), 'labelled answer')}" if job.labels else ""
    asked = "" if job.sheet else f", {counted(questions, 'question')} about each answer"
    return [
        f"{' x '.join(answers)}{labelled}{asked}: at most "
        f"{counted(most.calls, 'call')}, {units.tokens(most.tokens)} tokens, {units.dollars(most.cost)} "
        f"(about {units.tokens(about.tokens)}, {units.dollars(about.cost)}){preflight}"
    ]
