"""What was measured, as figures: each skill's mean with its interval, and its paired gain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from skillc.evaluate.skills import SkillArm
from skillc.models.ledger import Tally
from skillc.optimize.final import ComparisonArm, paired_scores
from skillc.optimize.rollouts import failure_kind
from skillc.outcomes import MICRO, Example, Mean, measured_mean
from skillc.plan.schema import ModelPlan, Plan
from skillc.stats.power import mean_interval
from skillc.stats.verdict import PairedScore, Verdict, judge, without_test

# Fates of an example beside the kinds of failure.
_DONE, _NOT_RUN = "measured", "not run"


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one skill under one model on the split.

    Attributes:
        goal: the goal's mean over the `n` examples whose every sample was measured.
        interval: of that mean, over groups, at 95 %; None with fewer than two groups.
        unmeasured: examples that the model was asked for in vain, by the kind of the failure.
        not_run: examples that were not reached.
        metrics: means of the other metrics that the program declares.
        tally: calls, tokens and money that it was charged.
    """

    arm: SkillArm
    goal: Mean
    interval: tuple[Fraction, Fraction] | None
    unmeasured: Mapping[str, int] = field(default_factory=dict)
    not_run: int = 0
    metrics: Mapping[str, Mean] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of one skill over the reference under one model, paired by example.

    Attributes:
        look: how often the test split was looked at, with this pair; 0 on another split, or without a test.
        verdict: its word may be claimed on the test split only.
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
        """Return whether there is anything to judge."""
        return not self.same and any(None not in (pair.initial, pair.best) for pair in self.scores)


@dataclass(frozen=True, slots=True)
class ModelScores:
    """The scores of all skills under one model.

    Attributes:
        label: the model's name in a table.
        made_here: whether the compiled skill was made with this very model.
        gains: of each skill but the reference.
        over_none: the compiled skill against no skill, for comparison: never judged, and no look. None where `gains`
            has that pair, or one of the two is not scored.
    """

    model: ModelPlan
    label: str
    made_here: bool
    scores: tuple[Score, ...]
    gains: tuple[Gain, ...]
    over_none: Gain | None = None


def score_of(plan: Plan, arm: SkillArm, compared: ComparisonArm, examples: Sequence[Example], tally: Tally) -> Score:
    """Score one skill."""
    goal, samples = plan.goal, plan.optimize.samples
    totals = {
        metric.name: [compared.rollouts.total(compared.skill, e, metric.name, samples=samples) for e in examples]
        for metric in plan.metrics
        if metric.declared or metric.goal
    }
    means = {name: measured_mean(values, samples=samples) for name, values in totals.items()}
    scored = [
        (example.group, Fraction(total, samples * MICRO))
        for example, total in zip(examples, totals[goal.name], strict=True)
        if total is not None
    ]
    fates = Counter(_fate(compared, example, goal.name, samples) for example in examples)
    return Score(
        arm=arm,
        goal=means.pop(goal.name),
        interval=mean_interval(scored, low=goal.low, high=goal.high),
        unmeasured={kind: fates[kind] for kind in sorted(fates) if kind not in (_DONE, _NOT_RUN)},
        not_run=fates[_NOT_RUN],
        metrics=means,
        tally=tally,
    )


def _fate(compared: ComparisonArm, example: Example, metric: str, samples: int) -> str:
    if compared.rollouts.total(compared.skill, example, metric, samples=samples) is not None:
        return _DONE
    outcomes = [compared.rollouts.known(compared.skill, example, sample) for sample in range(samples)]
    kinds = [kind for outcome in outcomes if outcome is not None and (kind := failure_kind(outcome)) is not None]
    return kinds[0] if kinds else _NOT_RUN


def pair_of(
    plan: Plan,
    reference: SkillArm,
    of_reference: ComparisonArm,
    arm: SkillArm,
    compared: ComparisonArm,
    examples: Sequence[Example],
) -> ScorePairs:
    """Pair the scores of a skill with those of the reference."""
    scores = paired_scores(of_reference, compared, examples, plan.goal.name, samples=plan.optimize.samples)
    return ScorePairs(arm, tuple(scores), arm.digest == reference.digest)


def gain_of(plan: Plan, pair: ScorePairs, look: int) -> Gain:
    """Judge a pair; `look` is 0 where it is no look at the test split."""
    goal = plan.goal
    if pair.same:
        return Gain(pair.arm, 0, without_test("the two skills are the same", same=True))
    verdict = judge(
        pair.scores,
        low=goal.low,
        high=goal.high,
        look=max(1, look),
        seed=plan.data.seed,
        samples=plan.optimize.samples,
    )
    return Gain(pair.arm, look, verdict)
