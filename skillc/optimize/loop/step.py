"""One step of the loop: roll out a batch, make candidates, decide them by the gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from skillc.document.skill import digest
from skillc.optimize.engine import Engine, Place, State, entry, failing, mean
from skillc.optimize.gate.decide import settle_pool
from skillc.optimize.memory import with_batch
from skillc.optimize.propose.contrast import Measured, remembering, replayed, retired
from skillc.optimize.rollouts import Outcome, is_failure
from skillc.optimize.strategies.makers import Made, Maker, maker_of
from skillc.outcomes import Example
from skillc.plan.models import rulebook_limits


async def step(engine: Engine, state: State, batch: Sequence[Example], place: Place) -> State:
    """Return the state after one step; the observer is told each decision.

    Raises:
        BudgetReached: a cap does not admit a call; the open step is dropped.
    """
    again = replayed(engine, state, batch)
    rolled = await roll_out(engine, state, batch, again=again)
    batch = (*batch, *again)
    state = with_batch(engine, state, batch)
    maker = maker_of(engine, state, [pair for part in rolled for pair in part])
    left_out = retired(state)
    rolled = [[pair for pair in part if pair[0].id not in left_out] for part in rolled]
    made = await maker.make(engine, remembering(engine, state, batch), batch, rolled, place)
    if not made.patches:
        after = _empty(engine, made, batch, place)
    else:
        first_wave = partial(_expect_a_reject, engine, made.state, len(made.patches))
        after = await settle_pool(engine, made.state, made.patches, batch, place, first_wave=first_wave)
    return with_maker(state, after, maker)


def with_maker(before: State, after: State, maker: Maker) -> State:
    """The state with what a step was for its maker: won where it changed the incumbent, else lost."""
    won = digest(before.incumbent) != digest(after.incumbent)
    return after.counting(
        lost={**after.counters.lost, maker.name: 0 if won else before.counters.lost.get(maker.name, 0) + 1}
    )


async def roll_out(
    engine: Engine, state: State, examples: Sequence[Example], *, again: Sequence[Example] = ()
) -> list[list[Measured]]:
    """The `accumulate` batches of a step under the incumbent, one after the other.

    With `samples > 1` a failure is tried again until it comes out right, or the samples are used up.

    Args:
        engine: the surroundings.
        state: its incumbent is what all batches are run with.
        examples: of the whole step; the last batch may be smaller.
        again: earlier failures, a batch of their own.
    """
    size = engine.plan.optimize.batch
    parts = [examples[start : start + size] for start in range(0, len(examples), size)]
    rolled: list[list[Measured]] = []
    for batch in [*parts, again] if again else parts:
        engine.observer.stage("rollout", len(batch))
        outcomes = await engine.rollouts.measure(state.incumbent, batch, stage="rollout")
        await _retried(engine, state, batch, outcomes)
        rolled.append(list(zip(batch, outcomes, strict=True)))
    return rolled


async def _retried(engine: Engine, state: State, batch: Sequence[Example], outcomes: Sequence[Outcome]) -> None:
    failed = [example for example, outcome in zip(batch, outcomes, strict=True) if is_failure(engine.plan, outcome)]
    for sample in range(1, engine.plan.optimize.samples):
        if not failed:
            return
        engine.observer.stage("rollout", len(failed))
        again = await engine.rollouts.measure(state.incumbent, failed, stage="rollout", sample=sample)
        pairs = zip(failed, again, strict=True)
        failed = [example for example, outcome in pairs if is_failure(engine.plan, outcome) is not False]


def _expect_a_reject(engine: Engine, state: State, candidates: int) -> None:
    """Where the last step had no accept, the next batch is sent for the incumbent, unless a reject ends the run."""
    if state.patience.waited and state.patience.after("reject", state.patience.reference).reason is None:
        cells = len(engine.dataset.validation) * engine.plan.optimize.samples
        engine.ahead.send(state.incumbent, beside=candidates * cells)


def _empty(engine: Engine, made: Made, batch: Sequence[Example], place: Place) -> State:
    """A step that proposed nothing fit to be tried counts for patience and is told like any other.

    Where that is for want of answers, of the target or of the optimizer, the step is undecided.
    """
    state, missing, goal = made.state, made.missing, engine.plan.goal
    scores = [engine.rollouts.score(state.incumbent, example, goal.name) for example in batch]
    if all(score is None for score in scores):
        engine.observer.note(f"{place}: {_why_unmeasured(engine, state, batch)}")
        missing = "no example of the batch could be measured"
    result: Literal["undecided", "empty"] = "undecided" if missing else "empty"
    why = missing or ("no edit to try" if failing(engine, state.incumbent, batch) else "no failure in the batch")
    if result == "empty" and state.decisions == 0:
        for limit in rulebook_limits(engine.plan):
            engine.observer.note(f"nothing was proposed: {limit}")
    engine.observer.decided({**entry(state, place, result=result, reason=why), **made.shown})
    mean_goal = mean(engine, state.incumbent, goal.name)
    patience = state.patience.after(result, mean_goal if mean_goal is not None else state.patience.reference)
    return replace(state, decisions=state.decisions + 1, patience=patience)


def _why_unmeasured(engine: Engine, state: State, batch: Sequence[Example]) -> str:
    """Whose fault it is that a batch could not be measured, with the first error."""
    outcomes = [engine.rollouts.known(state.incumbent, example) for example in batch]
    first = next((outcome for outcome in outcomes if outcome is not None and not outcome.measured), None)
    kind, _, detail = first.feedback.partition(": ") if first is not None else ("", "", "")
    target = engine.plan.models["target"]
    who = "a judge" if kind == "judge" else f"model `target` (`{target.model}`)"
    return f"no example of the batch could be measured: {who} failed{f', the first time: {detail}' if detail else ''}"
