"""After the last decision: the best skill against the initial one on the test split, and no skill beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from skillc.data.example import Example
from skillc.document.skill import Document, digest
from skillc.metrics.cells import MICRO
from skillc.models.failures import BudgetReached
from skillc.optimize.engine import Engine
from skillc.optimize.loop import Interrupted, Trained
from skillc.optimize.rollouts import gather
from skillc.optimize.verdict import PairedScore, Verdict, judge, without_test

RETRIES = 2


@dataclass(frozen=True, slots=True)
class Arm:
    """One skill on one split: the goal's mean over the `n` examples that were measured; None where none was."""

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
    if digest(state.best) == digest(state.initial):
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


async def _judged(engine: Engine, initial: Document, best: Document, test: Sequence[Example], look: int) -> Verdict:
    """Both skills side by side for each example, so that a drifting server hits both alike."""
    engine.observer.stage("final test", 2 * len(test))
    todo, tried = list(test), False
    try:
        for _ in range(1 + RETRIES):
            await gather([engine.rollouts.measure(s, [e], stage="test") for e in todo for s in (initial, best)])
            todo, tried = [example for example in todo if not _both_measured(engine, initial, best, example)], True
            if not todo:
                break
    except BudgetReached as cap:
        if not tried:
            return without_test(f"the budget's cap on {cap.cap} was reached before the test was done")
        engine.observer.note(f"the budget does not reach to try {len(todo)} unmeasured test examples again")
    except Interrupted:
        return without_test("the run was interrupted")
    goal = engine.plan.goal
    pairs = [
        PairedScore(
            group=example.group,
            initial=engine.rollouts.score(initial, example, goal.name),
            best=engine.rollouts.score(best, example, goal.name),
        )
        for example in test
    ]
    return judge(pairs, low=goal.low, high=goal.high, look=look, seed=engine.plan.data.seed)


async def _no_skill(engine: Engine, test: Sequence[Example], *, tested: bool, stopped: str) -> None:
    """The target without any skill, for comparison; left out where the budget does not reach."""
    examples = [*engine.dataset.validation, *(test if tested else ())]
    if stopped == "interrupted":
        return
    engine.observer.stage("no skill", len(examples))
    try:
        await engine.rollouts.measure(None, examples, stage="no skill")
    except BudgetReached:
        engine.observer.note("the budget does not reach for the comparison with no skill")
    except Interrupted:
        return


def _both_measured(engine: Engine, initial: Document, best: Document, example: Example) -> bool:
    goal = engine.plan.goal.name
    return all(engine.rollouts.score(skill, example, goal) is not None for skill in (initial, best))


def arm(engine: Engine, skill: Document | None, examples: Sequence[Example]) -> Arm:
    """What is known of a skill on a split."""
    scores = [engine.rollouts.score(skill, example, engine.plan.goal.name) for example in examples]
    measured = [score for score in scores if score is not None]
    return Arm(Fraction(sum(measured), len(measured) * MICRO) if measured else None, len(measured))
