"""The batches of one step: rolled out with the incumbent, then reflected on; their proposals are pooled."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.data.examples import Example
from skillc.optimize.contrast import Measured
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.failures import is_failure
from skillc.optimize.reflect import Reflection, reflect
from skillc.optimize.rollouts import Outcome


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


async def learn(
    engine: Engine, state: State, rolled: Sequence[Sequence[Measured]], place: Place, edits: int
) -> list[Reflection]:
    """All reflections of a step over its batches, those on failures first; `edits` is the most that one may propose."""
    reflections: list[Reflection] = []
    for measured in rolled:
        reflections += await reflect(engine, state, measured, place, edits, first=len(reflections))
    return sorted(reflections, key=lambda reflection: reflection.kind != "failures")
