"""The batches of one step, in turn: rolled out with the incumbent and reflected on; their proposals are pooled."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.data.example import Example
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.reflect import Reflection, reflect


async def learn(
    engine: Engine,
    state: State,
    examples: Sequence[Example],
    place: Place,
    edits: int,
    *,
    again: Sequence[Example] = (),
) -> list[Reflection]:
    """All reflections of a step over `accumulate` batches, those on failures first.

    Args:
        engine: the surroundings.
        state: its incumbent is what all batches are run with.
        examples: of the whole step; the last batch may be smaller.
        place: where in the run.
        edits: the most proposals of one reflection.
        again: earlier failures, a batch of their own.
    """
    size = engine.plan.optimize.batch
    reflections: list[Reflection] = []
    parts = [examples[start : start + size] for start in range(0, len(examples), size)]
    for batch in [*parts, again] if again else parts:
        engine.observer.stage("rollout", len(batch))
        outcomes = await engine.rollouts.measure(state.incumbent, batch, stage="rollout")
        measured = list(zip(batch, outcomes, strict=True))
        reflections += await reflect(engine, state, measured, place, edits, first=len(reflections))
    return sorted(reflections, key=lambda reflection: reflection.kind != "failures")
