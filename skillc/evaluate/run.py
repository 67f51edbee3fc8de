"""`skillc eval`: skills and models → rollouts side by side → looks → scores and gains."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from skillc.artifact_paths import ArtifactPaths
from skillc.data.dataset import Dataset, load_data
from skillc.data.split import Side, split_digest
from skillc.errors import SkillcError
from skillc.evaluate.measuring import (
    Measured,
    MeasuringJob,
    as_target,
    bound_of,
    check_caps,
    check_places,
    chosen_models,
    ending,
    examples_of,
    failures_of,
    is_same,
    labels_of,
    plan_with,
    until_stopped,
    with_retries,
)
from skillc.evaluate.skills import NONE, SkillArm, SkillArms, arms_of, check_test, count_looks, own_paths
from skillc.frontend import Planned
from skillc.metrics.baselines import baseline_means
from skillc.metrics.meter import Meter
from skillc.models.backends.function import FUNCTION
from skillc.models.client import Client
from skillc.models.endpoint import Endpoint
from skillc.models.ledger import Tally
from skillc.optimize.final import ComparisonArm, measure_side_by_side, paired_scores, unmeasured_examples
from skillc.optimize.host import Observer
from skillc.optimize.rollouts import failure_kind
from skillc.outcomes import MICRO, ArmScore, Example, measured_mean
from skillc.plan.digest import run_id
from skillc.plan.lock import LookLock, ModelLock
from skillc.plan.models import TARGET
from skillc.plan.schema import ModelPlan, Plan
from skillc.run.session import Session, parts_of_run
from skillc.run.stop import Stop
from skillc.stats.power import mean_interval
from skillc.stats.verdict import PairedScore, Verdict, judge, without_test

# States of an example beside the kinds of failure.
_DONE, _NOT_RUN = "measured", "not run"
# The arms of one model, by name.
_Columns: TypeAlias = dict[str, ComparisonArm]


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """The user's options.

    Attributes:
        models: `role`, `provider/name` or `role=provider/name`; empty for the program's target.
        skills: files, in addition to the program's skills.
        without: names of the program's skills to leave out.
        samples: rollouts per example; None for the program's.
        against: the reference: `none`, `initial`, `compiled` or a file; None for the initial skill.
    """

    split: Side = "validation"
    models: tuple[str, ...] = ()
    skills: tuple[Path, ...] = ()
    without: tuple[str, ...] = ()
    samples: int | None = None
    offline: bool = False
    against: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalJob(MeasuringJob):
    """A resolved evaluation, with nothing sent.

    Attributes:
        paths: of the compiled skill and its lock.
        looks: at the test split by role and arm, one per tested pair; empty on another split.
    """

    paths: ArtifactPaths
    models: tuple[ModelPlan, ...]
    arms: SkillArms
    looks: Mapping[tuple[str, str], LookLock]


def prepare_eval(planned: Planned, options: EvalOptions) -> EvalJob:
    """Resolve models, skills and data, and bound the cost.

    Raises:
        SkillcError: an option, file or model cannot be used, or the caps cannot pay for the evaluation.
    """
    program, root = planned.plan, planned.root
    models = chosen_models(program, options.models, offline=options.offline)
    check_places(program, models, root)
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


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one skill under one model on the split.

    Attributes:
        goal: mean goal over the examples with every sample measured.
        interval: of that mean, over groups, at 95 %; None with fewer than two groups.
        unmeasured: number of examples whose calls failed, by kind of failure.
        not_run: number of examples that were not reached.
        metrics: means of the program's other metrics.
        tally: charged calls, tokens and money.
    """

    arm: SkillArm
    goal: ArmScore
    interval: tuple[Fraction, Fraction] | None
    unmeasured: Mapping[str, int] = field(default_factory=dict)
    not_run: int = 0
    metrics: Mapping[str, ArmScore] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of one skill over the reference under one model, paired by example.

    Attributes:
        look: number of this look at the test split; 0 without one.
        verdict: a claim only with a look.
    """

    arm: SkillArm
    look: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ScorePairs:
    """The scores of a skill and of the reference, before they are judged."""

    arm: SkillArm
    scores: tuple[PairedScore, ...]
    same: bool

    @property
    def tested(self) -> bool:
        """Whether there is a difference to judge."""
        return not self.same and any(None not in (pair.initial, pair.best) for pair in self.scores)


@dataclass(frozen=True, slots=True)
class ModelScores:
    """The scores of all skills under one model.

    Attributes:
        label: the model's name in a table.
        made_here: whether the compiled skill was made with this model.
        gains: of each skill except the reference.
        over_none: the compiled skill against no skill, without a verdict and a look. None if `gains` has that pair or
            one of the two is not scored.
    """

    model: ModelPlan
    label: str
    made_here: bool
    scores: tuple[Score, ...]
    gains: tuple[Gain, ...]
    over_none: Gain | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(Measured):
    """The result of an evaluation.

    Attributes:
        models: scores by model; empty if the test split was not measured completely.
        baselines: mean goal of simple classifiers, by name.
        made_with: the model that the compiled skill was made with; None if no compiled skill is scored.
    """

    job: EvalJob
    models: tuple[ModelScores, ...]
    baselines: dict[str, Fraction]
    made_with: ModelLock | None


def evaluate(job: EvalJob, observer: Observer, client: Client, stop: Stop | None = None) -> Evaluation:
    """Measure under a client's budget until complete or stopped; an incomplete test split has no scores.

    Raises:
        SkillcError: models, metrics or the lock cannot be used.
    """
    session, meter = Session(job.plan, client, observer, stop), Meter(job.plan, job.root, job.dataset.places)
    table: dict[str, _Columns] = {}
    for model in job.models:
        rollouts = session.rollouts(meter, model.role)
        table[model.role] = {arm.name: ComparisonArm(rollouts, arm.skill, arm.name) for arm in job.arms.each}
    columns = [each for row in table.values() for each in row.values()]
    stopped = asyncio.run(_measure(job, columns, session))
    not_tried = failures_of(columns, job.examples, range(job.plan.optimize.samples))[1]
    return Evaluation(
        job=job,
        models=_model_scores(job, table, client) if not not_tried or job.split != "test" else (),
        baselines=baseline_means(job.plan, job.dataset, job.examples, meter) if job.split != "train" else {},
        made_with=_made_with(job),
        **ending(client, stopped),
    )


async def _measure(job: EvalJob, arms: Sequence[ComparisonArm], session: Session) -> str | None:
    """Measure side by side; return why it ended early."""
    samples, goal = job.plan.optimize.samples, job.plan.goal.name
    work = with_retries(
        session,
        job.examples,
        lambda todo, _: measure_side_by_side(arms, todo, samples=samples),
        lambda example: bool(unmeasured_examples(arms, [example], goal, samples=samples)),
        names=(job.split, "failed examples, again"),
        each=len(arms) * samples,
    )
    async with session.connected():
        return await until_stopped(session, work)


def _made_with(job: EvalJob) -> ModelLock | None:
    return job.arms.lock.models.get(TARGET) if job.arms.lock and job.arms.compiled else None


def _model_scores(job: EvalJob, table: Mapping[str, _Columns], client: Client) -> tuple[ModelScores, ...]:
    """Score every model. Looks at the test split are counted in the lock before any score is returned."""
    pairs = {role: _pairs(job, columns) for role, columns in table.items()}
    tested = {(role, pair.arm.name) for role, row in pairs.items() for pair in row if pair.tested}
    looks = {key: look for key, look in job.looks.items() if key in tested}
    numbers = dict(zip(looks, count_looks(job.paths, list(looks.values())), strict=True)) if looks else {}
    labels, made_with, lines = labels_of(job.models), _made_with(job), client.ledger.charged.lines
    return tuple(
        ModelScores(
            model=model,
            label=labels[model.role],
            made_here=made_with is not None and is_same(model, made_with),
            scores=tuple(
                _score(job, arm, table[model.role][arm.name], lines.get((model.role, arm.name), Tally()))
                for arm in job.arms.each
            ),
            gains=tuple(_gain(job, pair, numbers.get((model.role, pair.arm.name), 0)) for pair in pairs[model.role]),
            over_none=_over_none(job, table[model.role]),
        )
        for model in job.models
    )


def _pairs(job: EvalJob, columns: _Columns) -> list[ScorePairs]:
    """Pair each skill with the reference, in the order of the table."""
    reference = job.arms.reference
    if reference is None:
        return []
    return [_pair(job, columns, reference, arm) for arm in job.arms.each if arm.name != reference.name]


def _pair(job: EvalJob, columns: _Columns, reference: SkillArm, arm: SkillArm) -> ScorePairs:
    goal, samples = job.plan.goal.name, job.plan.optimize.samples
    scores = paired_scores(columns[reference.name], columns[arm.name], job.examples, goal, samples=samples)
    return ScorePairs(arm, tuple(scores), arm.digest == reference.digest)


def _over_none(job: EvalJob, columns: _Columns) -> Gain | None:
    """Compare the compiled skill with no skill, on the same cells."""
    bare, compiled, reference = job.arms.named(NONE), job.arms.compiled, job.arms.reference
    if bare is None or compiled is None or reference in (bare, compiled):
        return None
    return _gain(job, _pair(job, columns, bare, compiled), 0)


def _gain(job: EvalJob, pair: ScorePairs, look: int) -> Gain:
    """Judge a pair; `look` is 0 if it is no look at the test split."""
    if pair.same:
        return Gain(pair.arm, 0, without_test("the two skills are the same", same=True))
    goal, seed, samples = job.plan.goal, job.plan.data.seed, job.plan.optimize.samples
    verdict = judge(pair.scores, low=goal.low, high=goal.high, look=max(1, look), seed=seed, samples=samples)
    return Gain(pair.arm, look, verdict)


def _score(job: EvalJob, arm: SkillArm, column: ComparisonArm, tally: Tally) -> Score:
    goal, samples = job.plan.goal, job.plan.optimize.samples
    totals = {
        metric.name: [column.rollouts.total(column.skill, e, metric.name, samples=samples) for e in job.examples]
        for metric in job.plan.metrics
        if metric.declared or metric.goal
    }
    means = {name: measured_mean(values, samples=samples) for name, values in totals.items()}
    scored = [
        (example.group, Fraction(total, samples * MICRO))
        for example, total in zip(job.examples, totals[goal.name], strict=True)
        if total is not None
    ]
    states = Counter(_state(column, example, goal.name, samples) for example in job.examples)
    return Score(
        arm=arm,
        goal=means.pop(goal.name),
        interval=mean_interval(scored, low=goal.low, high=goal.high),
        unmeasured={kind: states[kind] for kind in sorted(states) if kind not in (_DONE, _NOT_RUN)},
        not_run=states[_NOT_RUN],
        metrics=means,
        tally=tally,
    )


def _state(column: ComparisonArm, example: Example, metric: str, samples: int) -> str:
    if column.rollouts.total(column.skill, example, metric, samples=samples) is not None:
        return _DONE
    outcomes = [column.rollouts.known(column.skill, example, sample) for sample in range(samples)]
    kinds = [kind for outcome in outcomes if outcome is not None and (kind := failure_kind(outcome)) is not None]
    return kinds[0] if kinds else _NOT_RUN
