"""After the last decision: the best skill against the initial one on the test split, and no skill beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from skillc.data.example import Example
from skillc.document.skill import Document, digest
from skillc.metrics.cells import measured_mean
from skillc.models.failures import BudgetReached, EndpointAway
from skillc.optimize.decide import DOWN
from skillc.optimize.engine import Engine, State
from skillc.optimize.loop import Trained
from skillc.optimize.observer import cut_by
from skillc.optimize.side_by_side import Compared, measure_side_by_side, paired, unmeasured
from skillc.optimize.verdict import Verdict, judge, without_test

RETRIES = 2


@dataclass(frozen=True, slots=True)
class Arm:
    """One skill on one split: the goal's mean over the `n` examples whose every sample was measured; None for none."""

    mean: Fraction | None
    n: int


@dataclass(frozen=True, slots=True)
class Tested:
    """The arms `none`, `initial` and `best` on validation and test, and the verdict."""

    validation: dict[str, Arm]
    test: dict[str, Arm]
    verdict: Verdict


async def final_test(trained: Trained, *, look: int) -> Tested:
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
        verdict = without_test("the best skill is the initial one", same=True, look=look)
    elif not test:
        verdict = without_test("the program has no test split")
    elif trained.stopped != "interrupted":
        verdict = await _judged(engine, state.initial, state.best, test, look)
    await _no_skill(engine, test, tested=verdict.n > 0, stopped=trained.stopped)
    arms: dict[str, Document | None] = {"none": None, "initial": state.initial, "best": state.best}
    return Tested(
        validation={name: arm(engine, skill, engine.dataset.validation) for name, skill in arms.items()},
        test={name: arm(engine, skill, test if verdict.n else ()) for name, skill in arms.items()},
        verdict=verdict,
    )


_UNDECIDED = "the last step could not be decided: rollouts stayed unmeasured"


def _is_open(state: State) -> bool:
    """Whether the run ended on steps that could not be decided, so that nothing is known of what they tried."""
    return state.patience.undecided > 0


async def _judged(engine: Engine, initial: Document, best: Document, test: Sequence[Example], look: int) -> Verdict:
    """Both skills side by side for each example, tried again where one of them was not measured."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal
    arms = [Compared(engine.rollouts, skill, "test") for skill in (initial, best)]
    todo, tried = list(test), False
    try:
        for attempt in range(1 + RETRIES):
            engine.observer.stage("final test again" if attempt else "final test", 2 * len(todo) * samples)
            await measure_side_by_side(arms, todo, samples=samples)
            tried = True
            todo = unmeasured(arms, todo, goal.name, samples=samples)
            if not todo:
                break
    except BudgetReached as cap:
        if not tried:
            return without_test(f"the budget's cap on {cap.cap} was reached before the test was done")
        engine.observer.note(f"the budget does not reach to try {len(todo)} unmeasured test examples again")
    except EndpointAway as away:
        if not tried:
            return without_test("a model stayed out of reach before the test was done")
        engine.observer.note(f"{len(todo)} unmeasured test examples were not tried again: {away.message}")
    except asyncio.CancelledError:
        cut_by(engine.observer)
        return without_test("the run was interrupted")
    pairs = paired(arms[0], arms[1], test, goal.name, samples=samples)
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
    except EndpointAway as away:
        engine.observer.note(f"the comparison with no skill was left out: {away.message}")
    except asyncio.CancelledError:
        cut_by(engine.observer)


def arm(engine: Engine, skill: Document | None, examples: Sequence[Example]) -> Arm:
    """What is known of a skill on a split."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal.name
    totals = (engine.rollouts.total(skill, example, goal, samples=samples) for example in examples)
    found = measured_mean(totals, samples=samples)
    return Arm(found.value, found.n)
