"""After the last decision: the best skill against the initial one on the test split, and no skill beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from skillc.document.skill import Document, digest
from skillc.gates.terms import metrics_read
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.optimize.engine import Engine, SearchState
from skillc.optimize.gate.decide import DOWN
from skillc.optimize.host import stop_reason
from skillc.optimize.loop.train import TrainResult
from skillc.optimize.rollouts import Rollouts, gather
from skillc.outcomes import MICRO, Example, Scored, measured_mean
from skillc.plan.schema import Plan
from skillc.stats.verdict import PairedScore, Verdict, judge, without_test

RETRIES = 2


@dataclass(frozen=True, slots=True)
class ArmScore:
    """One skill on one split: the goal's mean over the `n` examples whose every sample was measured; None for none."""

    mean: Fraction | None
    n: int


@dataclass(frozen=True, slots=True)
class FinalResult:
    """The arms `none`, `initial` and `best` on validation and test, and the verdict.

    Attributes:
        over_none: mean gain of the best skill over no skill on the test split, over the examples that were measured
            under both: for comparison, never judged. None where nothing was tested.
        parts: by metric that the goal is made of, the same arms on validation and test; empty for a plain goal.
    """

    validation: dict[str, ArmScore]
    test: dict[str, ArmScore]
    verdict: Verdict
    over_none: Fraction | None = None
    parts: dict[str, tuple[dict[str, ArmScore], dict[str, ArmScore]]] = field(default_factory=dict)


async def final_test(trained: TrainResult, *, look: int) -> FinalResult:
    """Scores the test split, once, and judges the gain.

    Args:
        trained: the loop's end.
        look: how often this test split has been looked at, this time included.
    """
    engine, state = trained.engine, trained.state
    test = engine.dataset.test
    engine.reserve.open_reserve()
    verdict = without_test("the run was interrupted")
    if trained.stopped == DOWN:
        verdict = without_test("a model stayed out of reach")
    elif digest(state.best) == digest(state.initial) and _is_open(state):
        verdict = without_test(_UNDECIDED)
    elif digest(state.best) == digest(state.initial):
        reason = "nothing could be proposed" if _proposed_nothing(trained) else "the best skill is the initial one"
        verdict = without_test(reason, same=True, look=look)
    elif not test:
        verdict = without_test("the program has no test split")
    elif trained.stopped != "interrupted":
        verdict = await _judged(engine, state.initial, state.best, test, look)
    await _no_skill(engine, test, tested=verdict.n > 0, stopped=trained.stopped)
    arms: dict[str, Document | None] = {"none": None, "initial": state.initial, "best": state.best}
    seen = test if verdict.n else ()

    def table(metric: str) -> tuple[dict[str, ArmScore], dict[str, ArmScore]]:
        validation = {name: score_arm(engine, skill, engine.dataset.validation, metric) for name, skill in arms.items()}
        return validation, {name: score_arm(engine, skill, seen, metric) for name, skill in arms.items()}

    validation, tested = table(engine.plan.goal.name)
    return FinalResult(
        validation,
        tested,
        verdict,
        over_none=_over_none(engine, state.best, seen),
        parts={name: table(name) for name in goal_parts(engine.plan)},
    )


_UNDECIDED = "the last step could not be decided: rollouts stayed unmeasured"


def _is_open(state: SearchState) -> bool:
    """Whether the run ended on steps that could not be decided, so that nothing is known of what they tried."""
    return state.patience.undecided > 0


def goal_parts(plan: Plan) -> list[str]:
    """The metrics that the goal is computed from, in the order of the plan; empty where it is no more than one."""
    read = metrics_read(plan.goal.term)
    found = [metric.name for metric in plan.metrics if metric.name in read and metric.name != plan.goal.name]
    return found if len(found) > 1 else []


def _over_none(engine: Engine, best: Document, test: Sequence[Example]) -> Fraction | None:
    """The mean gain over no skill, from cells that are known."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal.name
    totals = [[engine.rollouts.total(skill, e, goal, samples=samples) for skill in (None, best)] for e in test]
    moved = [after - before for before, after in totals if before is not None and after is not None]
    return Fraction(sum(moved), len(moved) * samples * MICRO) if moved else None


def _proposed_nothing(trained: TrainResult) -> bool:
    """Whether there was something to learn and no edit that could be tried."""
    state, own = trained.state, trained.engine.plan.optimize.method == "skillc"
    tried = state.counters.screened or state.memory.rejected or state.accepted
    return own and state.decisions > 0 and not tried and trained.stopped != "perfect"


async def _judged(engine: Engine, initial: Document, best: Document, test: Sequence[Example], look: int) -> Verdict:
    """Both skills side by side for each example, tried again where one of them was not measured."""
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
        engine.observer.note(f"the budget does not reach to try {len(todo)} unmeasured test examples again")
    except EndpointUnreachable as away:
        if not tried:
            return without_test("a model stayed out of reach before the test was done")
        engine.observer.note(f"{len(todo)} unmeasured test examples were not tried again: {away.message}")
    except asyncio.CancelledError:
        stop_reason(engine.observer)
        return without_test("the run was interrupted")
    pairs = paired_scores(arms[0], arms[1], test, goal.name, samples=samples)
    return judge(pairs, low=goal.low, high=goal.high, look=look, seed=engine.plan.data.seed, samples=samples)


async def _no_skill(engine: Engine, test: Sequence[Example], *, tested: bool, stopped: str) -> None:
    """The target without any skill, for comparison; left out where the budget does not reach."""
    examples = [*engine.dataset.validation, *(test if tested else ())]
    if stopped in ("interrupted", DOWN):
        return
    samples = engine.plan.optimize.samples
    engine.observer.stage("no skill", len(examples) * samples)
    try:
        for sample in range(samples):
            await engine.rollouts.measure(None, examples, stage="no skill", sample=sample)
    except BudgetReached:
        engine.observer.note("the budget does not reach for the comparison with no skill")
    except EndpointUnreachable as away:
        engine.observer.note(f"the comparison with no skill was left out: {away.message}")
    except asyncio.CancelledError:
        stop_reason(engine.observer)


def score_arm(engine: Engine, skill: Document | None, examples: Sequence[Example], metric: str) -> ArmScore:
    """What is known of a metric of a skill on a split."""
    samples = engine.plan.optimize.samples
    totals = (engine.rollouts.total(skill, example, metric, samples=samples) for example in examples)
    found = measured_mean(totals, samples=samples)
    return ArmScore(found.value, found.n)


@dataclass(frozen=True, slots=True)
class ComparisonArm:
    """One skill under one model.

    Attributes:
        rollouts: that model's.
        skill: None for no skill.
        stage: what the ledger books its calls under.
    """

    rollouts: Rollouts
    skill: Document | None
    stage: str


async def measure_side_by_side(arms: Sequence[ComparisonArm], examples: Sequence[Example], *, samples: int) -> None:
    """All arms for an example, then the next example; what is measured already is not run again.

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
    """The examples of which some arm lacks the score of some sample."""

    def lacks(arm: ComparisonArm, example: Example) -> bool:
        return arm.rollouts.total(arm.skill, example, metric, samples=samples) is None

    return [example for example in examples if any(lacks(arm, example) for arm in arms)]


def paired_scores(
    initial: ComparisonArm, best: ComparisonArm, examples: Sequence[Example], metric: str, *, samples: int
) -> list[PairedScore]:
    """The scores of two arms, one pair for each example and sample."""
    return [
        PairedScore(example.group, _score(initial, example, metric, sample), _score(best, example, metric, sample))
        for example in examples
        for sample in range(samples)
    ]


def _score(arm: ComparisonArm, example: Example, metric: str, sample: int) -> int | None:
    outcome = arm.rollouts.known(arm.skill, example, sample)
    cell = outcome.cells.get(metric) if outcome is not None else None
    return cell.value if isinstance(cell, Scored) else None
