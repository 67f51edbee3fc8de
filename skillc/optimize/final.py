"""Final test: compare the best skill with the initial skill and with no skill on the test split."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import TypeVar

from skillc.dataclass import dataclass
from skillc.document.skill import Document, digest
from skillc.gates.terms import metrics_read
from skillc.language.loop import SPENDING_CAPS
from skillc.models.concurrency import gather
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.optimize.description import OpeningScore, opening_score, wanted
from skillc.optimize.engine import Engine, score_arm
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.gate.gate import measure_arm
from skillc.optimize.host import stop_reason
from skillc.optimize.loop.train import TrainResult
from skillc.optimize.null_arm import NullArm, measure_null_arm, null_arm_of
from skillc.optimize.rollouts import Rollouts
from skillc.outcomes import MICRO, ArmScore, Example
from skillc.plan.schema import Plan
from skillc.stats.verdict import PairedScore, Verdict, judge, without_test

RETRIES = 2
# A null arm that runs last is skipped if the loop ended for one of these reasons: no budget or time is left.
_CUT_OFF = ("interrupted", DOWN, "time", *SPENDING_CAPS)
T = TypeVar("T")


# As `TrainResult`.
@dataclass(frozen=True, slots=True, repr=False)
class FinalResult:
    """The arms `none`, `initial` and `best` on validation and test, and the verdict.

    Attributes:
        over_none: mean gain of the best skill over no skill on the test split, over the examples measured under both.
            It is not tested for significance. None without a test.
        parts: for each metric in the goal's term, the same arms on validation and test; empty for a plain goal.
        always_read: the best skill on validation and test if the target always read it; None if it does.
        opened: openings of the best skill on validation and test; None unless a gate names when it should be opened.
        null_arm: the null arm on validation; None if it was not measured.
    """

    validation: dict[str, ArmScore]
    test: dict[str, ArmScore]
    verdict: Verdict
    over_none: Fraction | None = None
    parts: dict[str, tuple[dict[str, ArmScore], dict[str, ArmScore]]] = field(default_factory=dict)
    always_read: tuple[ArmScore, ArmScore] | None = None
    opened: tuple[OpeningScore, OpeningScore] | None = None
    null_arm: NullArm | None = None


async def final_test(trained: TrainResult, *, look: int, other_arms: bool = True) -> FinalResult:
    """Score the test split once and judge the gain.

    Args:
        trained: the loop's result.
        look: the number of tests on this split so far, including this one.
        other_arms: whether to also measure no skill and the always-read skill. The verdict does not need them.
    """
    engine, state = trained.engine, trained.state
    test = engine.dataset.test
    engine.reserve.open_reserve()
    verdict = without_test("the run was interrupted")
    if trained.stopped == DOWN:
        verdict = without_test("a model stayed out of reach")
    elif digest(state.best) == digest(state.initial) and state.patience.undecided:
        verdict = without_test("the last step could not be decided: rollouts stayed unmeasured")
    elif digest(state.best) == digest(state.initial):
        reason = "nothing could be proposed" if _proposed_nothing(trained) else "the best skill is the initial one"
        verdict = without_test(reason, same=True, look=look)
    elif not test:
        verdict = without_test("the program has no test split")
    elif trained.stopped != "interrupted":
        verdict = await _judged(engine, state.initial, state.best, test, look)
    seen = test if verdict.n else ()
    if other_arms and trained.stopped not in ("interrupted", DOWN):
        await _measure_other_arms(engine, state.best, [*engine.dataset.validation, *seen])
    null_arm = state.null_arm
    again = len(engine.dataset.validation) * engine.plan.optimize.samples
    if engine.null_arm == "last" and trained.stopped not in _CUT_OFF and engine.admits(again):
        null_arm = await measure_null_arm(engine, state.initial)
    if engine.null_arm is not None and null_arm is None:
        null_arm = null_arm_of(engine, state.initial)
    arms: dict[str, Document | None] = {"none": None, "initial": state.initial, "best": state.best}

    def on_both(score: Callable[[Sequence[Example]], T]) -> tuple[T, T]:
        return score(engine.dataset.validation), score(seen)

    def table(metric: str) -> tuple[dict[str, ArmScore], dict[str, ArmScore]]:
        return on_both(lambda split: {name: score_arm(engine, skill, split, metric) for name, skill in arms.items()})

    goal, condition = engine.plan.goal.name, wanted(engine.plan)
    read = None if engine.always_read is None else replace(engine, rollouts=engine.always_read)
    validation, tested = table(goal)
    return FinalResult(
        validation,
        tested,
        verdict,
        over_none=_over_none(engine, state.best, seen),
        parts={name: table(name) for name in goal_parts(engine.plan)},
        always_read=None if read is None else on_both(lambda split: score_arm(read, state.best, split, goal)),
        opened=None if condition is None else on_both(lambda s: opening_score(engine, state.best, s, condition)),
        null_arm=null_arm,
    )


async def _measure_other_arms(engine: Engine, best: Document, examples: Sequence[Example]) -> None:
    """Measure no skill, and the best skill always read if the target opens it on demand.

    The difference between always-read and no skill is the value of the text. The difference between on-demand and
    always-read is the effect of the description.
    """
    await measure_arm(engine, None, examples, stage="no skill", what="the comparison with no skill")
    if engine.always_read is not None:
        what = "the comparison with a skill that is always read"
        await measure_arm(engine, best, examples, stage="always read", what=what, rollouts=engine.always_read)


def goal_parts(plan: Plan) -> list[str]:
    """Return the metrics in the goal's term, in the order of the plan, if there are several."""
    read = metrics_read(plan.goal.term)
    found = [metric.name for metric in plan.metrics if metric.name in read and metric.name != plan.goal.name]
    return found if len(found) > 1 else []


def _over_none(engine: Engine, best: Document, test: Sequence[Example]) -> Fraction | None:
    """Return the mean gain over no skill on the examples measured under both."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal.name
    totals = [[engine.rollouts.total(skill, e, goal, samples=samples) for skill in (None, best)] for e in test]
    moved = [after - before for before, after in totals if before is not None and after is not None]
    return Fraction(sum(moved), len(moved) * samples * MICRO) if moved else None


def _proposed_nothing(trained: TrainResult) -> bool:
    """Return whether no edit was tried although the initial skill has failures."""
    state, own = trained.state, trained.engine.plan.optimize.method == "skillc"
    tried = state.counters.screened or state.memory.rejected or state.accepted
    return own and state.decisions > 0 and not tried and trained.stopped != "perfect"


async def _judged(engine: Engine, initial: Document, best: Document, test: Sequence[Example], look: int) -> Verdict:
    """Measure both skills side by side, retry unmeasured examples up to three times, and judge the gain."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal
    arms = [ComparisonArm(engine.rollouts, skill, "test") for skill in (initial, best)]
    todo, tried = list(test), False
    try:
        for attempt in range(1 + RETRIES):
            engine.observer.stage("final test again" if attempt else "final test", 2 * len(todo) * samples)
            await measure_side_by_side(arms, todo, samples=samples)
            tried = True
            todo = unmeasured_examples(arms, todo, goal.name, samples=samples)
            if not todo:
                break
    except BudgetReached as cap:
        if not tried:
            return without_test(f"the budget's cap on {cap.cap} was reached before the test was done")
        engine.observer.note(f"{len(todo)} test examples stay unmeasured: the budget does not admit another attempt")
    except EndpointUnreachable as away:
        if not tried:
            return without_test("a model stayed out of reach before the test was done")
        engine.observer.note(f"{len(todo)} test examples stay unmeasured: {away.message}")
    except asyncio.CancelledError:
        stop_reason(engine.observer)
        return without_test("the run was interrupted")
    pairs = paired_scores(arms[0], arms[1], test, goal.name, samples=samples)
    seed = engine.plan.data.seed
    return judge(pairs, low=goal.low, high=goal.high, look=look, seed=seed, samples=samples, rates=goal.rates)


@dataclass(frozen=True, slots=True)
class ComparisonArm:
    """One skill, or no skill, with one model. `stage` is its name in the ledger."""

    rollouts: Rollouts
    skill: Document | None
    stage: str


async def measure_side_by_side(arms: Sequence[ComparisonArm], examples: Sequence[Example], *, samples: int) -> None:
    """Measure all arms example by example; only unmeasured cells are run.

    Raises:
        PermanentFailure, BudgetReached: from the models.
        MetricError: a metric raised or left its range.
    """
    await gather(
        [
            arm.rollouts.measure(arm.skill, [example], stage=arm.stage, sample=sample)
            for sample in range(samples)
            for example in examples
            for arm in arms
        ]
    )


def unmeasured_examples(
    arms: Sequence[ComparisonArm], examples: Sequence[Example], metric: str, *, samples: int
) -> list[Example]:
    """Return the examples on which an arm lacks the score of a sample."""
    return [
        example
        for example in examples
        if any(arm.rollouts.total(arm.skill, example, metric, samples=samples) is None for arm in arms)
    ]


def paired_scores(
    initial: ComparisonArm, best: ComparisonArm, examples: Sequence[Example], metric: str, *, samples: int
) -> list[PairedScore]:
    """Return the scores of two arms, one pair for each example and sample."""
    return [
        PairedScore(
            example.group,
            initial.rollouts.score(initial.skill, example, metric, sample),
            best.rollouts.score(best.skill, example, metric, sample),
        )
        for example in examples
        for sample in range(samples)
    ]
