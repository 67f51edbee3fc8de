"""Scores of an evaluation: means, paired gains, wins and losses, latency and cost, overall and by parts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from statistics import median
from typing import TypeAlias

from skillc.dataclass import dataclass
from skillc.evaluate.by_field import parts_by
from skillc.evaluate.job import EvalJob
from skillc.evaluate.skills import NONE, SkillArm
from skillc.models.ledger import Tally
from skillc.optimize.final import ComparisonArm, paired_scores
from skillc.optimize.rollouts import Outcome, failure_kind
from skillc.outcomes import MICRO, ArmScore, Example, Scored, measured_mean
from skillc.plan.schema import ModelPlan
from skillc.review.confidence import ends_of_mean
from skillc.stats.verdict import PairedScore, Verdict, judge, without_test

DONE, NOT_RUN = "measured", "not run"
"""States of an example beside the kinds of failure."""
Columns: TypeAlias = Mapping[str, ComparisonArm]
"""The arms of one model, by name."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Latency and list price of the measured rollouts of one skill; judges and simulated users are not included.

    Attributes:
        rollouts: measured rollouts.
        right: those with the best possible goal.
        timed: those whose latency is known: not of the embedded model, nor of replies that an earlier version cached.
        median, p95: seconds of a timed rollout; None without one.
        tokens: of all rollouts.
        cost: of all rollouts in nano-dollars; None if a price is unknown.
    """

    rollouts: int = 0
    right: int = 0
    timed: int = 0
    median: float | None = None
    p95: float | None = None
    tokens: int = 0
    cost: int | None = 0

    @property
    def per_rollout(self) -> Fraction | None:
        """Nano-dollars for each rollout; None if unknown."""
        return None if self.cost is None or not self.rollouts else Fraction(self.cost, self.rollouts)

    @property
    def per_right(self) -> Fraction | None:
        """Nano-dollars for each right answer; None if unknown, or if none is right."""
        return None if self.cost is None or not self.right else Fraction(self.cost, self.right)


@dataclass(frozen=True, slots=True)
class Duel:
    """The examples on which a skill scores higher than the reference, lower, and the same."""

    wins: int = 0
    losses: int = 0
    ties: int = 0


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
        costs: latency and cost of a rollout.
    """

    arm: SkillArm
    goal: ArmScore
    interval: tuple[Fraction, Fraction] | None
    unmeasured: Mapping[str, int] = field(default_factory=dict)
    not_run: int = 0
    metrics: Mapping[str, ArmScore] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    costs: Costs = field(default_factory=Costs)


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of one skill over the reference under one model, paired by example.

    Attributes:
        look: number of this look at the test split; 0 without one.
        verdict: a claim only with a look.
        duel: wins, losses and ties over the examples that are measured under both.
    """

    arm: SkillArm
    look: int
    verdict: Verdict
    duel: Duel = field(default_factory=Duel)


@dataclass(frozen=True, slots=True)
class Part:
    """The scores of all skills on the examples with one value of a field, without a test.

    Attributes:
        value: of the field.
        examples: with this value.
        scores: of each skill.
        gains: mean difference to the reference and its duel, by skill, over the examples measured under both.
    """

    value: str
    examples: int
    scores: tuple[Score, ...]
    gains: Mapping[str, tuple[Fraction | None, Duel]]


@dataclass(frozen=True, slots=True)
class ScorePairs:
    """The scores of a skill and of the reference, before they are judged."""

    arm: SkillArm
    scores: tuple[PairedScore, ...]
    same: bool
    duel: Duel = field(default_factory=Duel)

    @property
    def measured(self) -> tuple[PairedScore, ...]:
        """The pairs that are measured under both."""
        return tuple(pair for pair in self.scores if None not in (pair.initial, pair.best))

    @property
    def tested(self) -> bool:
        """Whether there is a difference to judge."""
        return not self.same and bool(self.measured)


@dataclass(frozen=True, slots=True)
class ModelScores:
    """The scores of all skills under one model.

    Attributes:
        label: the model's name in a table.
        made_here: whether the compiled skill was made with this model.
        gains: of each skill except the reference.
        pairs: the scores behind the gains.
        over_none: the compiled skill against no skill, without a verdict and a look. None if `gains` has that pair or
            one of the two is not scored.
        parts: by the value of the field that `--by` names; empty without it.
    """

    model: ModelPlan
    label: str
    made_here: bool
    scores: tuple[Score, ...]
    gains: tuple[Gain, ...]
    pairs: tuple[ScorePairs, ...]
    over_none: Gain | None = None
    parts: tuple[Part, ...] = ()


# ---- pairs ----------------------------------------------------------------------------------------


def pairs_of(job: EvalJob, columns: Columns) -> list[ScorePairs]:
    """Pair each skill with the reference, in the order of the table."""
    reference = job.arms.reference
    if reference is None:
        return []
    return [pair_of(job, columns, reference, arm) for arm in job.arms.each if arm.name != reference.name]


def pair_of(job: EvalJob, columns: Columns, reference: SkillArm, arm: SkillArm) -> ScorePairs:
    """Pair one skill with another."""
    goal, samples = job.plan.goal.name, job.plan.optimize.samples
    one, other = columns[reference.name], columns[arm.name]
    scores = paired_scores(one, other, job.examples, goal, samples=samples)
    return ScorePairs(arm, tuple(scores), arm.digest == reference.digest, duel_of(job, one, other, job.examples))


def gain_of(job: EvalJob, pair: ScorePairs, look: int) -> Gain:
    """Judge a pair; `look` is 0 if it is no look at the test split."""
    if pair.same:
        return Gain(pair.arm, 0, without_test("the two skills are the same", same=True), pair.duel)
    goal, seed, samples = job.plan.goal, job.plan.data.seed, job.plan.optimize.samples
    verdict = judge(
        pair.scores,
        low=goal.low,
        high=goal.high,
        look=max(1, look),
        seed=seed,
        samples=samples,
        rates=goal.rates,
    )
    return Gain(pair.arm, look, verdict, pair.duel)


def over_none(job: EvalJob, columns: Columns) -> Gain | None:
    """Compare the compiled skill with no skill, on the same cells."""
    bare, compiled, reference = job.arms.named(NONE), job.arms.compiled, job.arms.reference
    if bare is None or compiled is None or reference in (bare, compiled):
        return None
    return gain_of(job, pair_of(job, columns, bare, compiled), 0)


def _totals(job: EvalJob, column: ComparisonArm, example: Example) -> int | None:
    goal, samples = job.plan.goal.name, job.plan.optimize.samples
    return column.rollouts.total(column.skill, example, goal, samples=samples)


def _moved(job: EvalJob, one: ComparisonArm, other: ComparisonArm, examples: Sequence[Example]) -> list[int]:
    """Return the differences of the examples that are measured under both, in millionths, over all samples."""
    totals = [(_totals(job, one, example), _totals(job, other, example)) for example in examples]
    return [after - before for before, after in totals if before is not None and after is not None]


def duel_of(job: EvalJob, one: ComparisonArm, other: ComparisonArm, examples: Sequence[Example]) -> Duel:
    """Count the examples on which the second arm scores higher, lower and the same, of those measured under both."""
    moved = _moved(job, one, other, examples)
    wins, losses = sum(each > 0 for each in moved), sum(each < 0 for each in moved)
    return Duel(wins, losses, len(moved) - wins - losses)


# ---- scores ---------------------------------------------------------------------------------------


def score_of(
    job: EvalJob,
    arm: SkillArm,
    column: ComparisonArm,
    examples: Sequence[Example],
    *,
    tally: Tally | None = None,
    has_latency: bool = True,
) -> Score:
    """Score one skill on some examples.

    `has_latency` is False for the embedded model, which answers without a model's delay.
    """
    goal, samples = job.plan.goal, job.plan.optimize.samples
    totals = {
        metric.name: [column.rollouts.total(column.skill, e, metric.name, samples=samples) for e in examples]
        for metric in job.plan.metrics
        if metric.declared or metric.goal
    }
    means = {name: measured_mean(values, samples=samples) for name, values in totals.items()}
    scored = [
        (example.group, Fraction(total, samples * MICRO))
        for example, total in zip(examples, totals[goal.name], strict=True)
        if total is not None
    ]
    states = Counter(state_of(job, column, example) for example in examples)
    return Score(
        arm=arm,
        goal=means.pop(goal.name),
        interval=ends_of_mean(scored, goal),
        unmeasured={kind: states[kind] for kind in sorted(states) if kind not in (DONE, NOT_RUN)},
        not_run=states[NOT_RUN],
        metrics=means,
        tally=tally or Tally(),
        costs=_costs(job, column, examples, has_latency=has_latency),
    )


def state_of(job: EvalJob, column: ComparisonArm, example: Example) -> str:
    """Return whether an example is measured, which kind of failure left it open, or that it was not reached."""
    if _totals(job, column, example) is not None:
        return DONE
    samples = range(job.plan.optimize.samples)
    outcomes = [column.rollouts.known(column.skill, example, sample) for sample in samples]
    kinds = [kind for outcome in outcomes if outcome is not None and (kind := failure_kind(outcome)) is not None]
    return kinds[0] if kinds else NOT_RUN


def is_right(job: EvalJob, outcome: Outcome) -> bool:
    """Return whether a rollout has the best possible goal."""
    cell = outcome.cells.get(job.plan.goal.name)
    return isinstance(cell, Scored) and cell.value >= job.plan.goal.high * MICRO


def _costs(job: EvalJob, column: ComparisonArm, examples: Sequence[Example], *, has_latency: bool) -> Costs:
    found = [
        outcome
        for example in examples
        for sample in range(job.plan.optimize.samples)
        if (outcome := column.rollouts.known(column.skill, example, sample)) is not None
        and isinstance(outcome.cells.get(job.plan.goal.name), Scored)
    ]
    seconds = sorted(each.trajectory.seconds for each in found if has_latency and each.trajectory.timed)
    costs = [each.trajectory.cost for each in found]
    known = [cost for cost in costs if cost is not None]
    return Costs(
        rollouts=len(found),
        right=sum(is_right(job, outcome) for outcome in found),
        timed=len(seconds),
        median=median(seconds) if seconds else None,
        p95=seconds[math.ceil(0.95 * len(seconds)) - 1] if seconds else None,
        tokens=sum(each.trajectory.tokens for each in found),
        cost=sum(known) if len(known) == len(costs) else None,
    )


def parts_of(job: EvalJob, columns: Columns, *, has_latency: bool) -> tuple[Part, ...]:
    """Score every skill on each part of the split by the field of `--by`; nothing without it."""
    if job.by is None:
        return ()
    reference = job.arms.reference
    found = []
    for value, examples in parts_by(job.plan, job.examples, job.by).items():
        gains: dict[str, tuple[Fraction | None, Duel]] = {}
        for arm in job.arms.each:
            if reference is None or arm.name == reference.name:
                continue
            moved = _moved(job, columns[reference.name], columns[arm.name], examples)
            unit = len(moved) * job.plan.optimize.samples * MICRO
            duel = duel_of(job, columns[reference.name], columns[arm.name], examples)
            gains[arm.name] = (Fraction(sum(moved), unit) if moved else None, duel)
        scores = tuple(
            score_of(job, arm, columns[arm.name], examples, has_latency=has_latency) for arm in job.arms.each
        )
        found.append(Part(value, len(examples), scores, gains))
    return tuple(found)
