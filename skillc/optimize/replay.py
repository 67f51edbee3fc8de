"""Earlier failures come back: a step's batch takes in the latest ones, which cost less than finding new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skillc.data.examples import Example
from skillc.optimize.engine import Engine, State
from skillc.optimize.failures import failing

# Failures that are remembered, as a multiple of those that one step takes in.
_REMEMBERED = 10
TIMES_UNEXPLAINED = 2


def replayed(engine: Engine, state: State, batch: Sequence[Example]) -> tuple[Example, ...]:
    """Up to `replay` remembered failures that are not in the batch, the latest first."""
    left_out = {example.id for example in batch} | retired(state)
    return tuple(e for e in state.failures if e.id not in left_out)[: engine.plan.optimize.replay]


def retired(state: State) -> set[str]:
    """Ids of the examples for which authors found no rule so often that nobody is asked again."""
    return {name for name, times in state.unexplained.items() if times >= TIMES_UNEXPLAINED}


def remembering(engine: Engine, state: State, batch: Sequence[Example]) -> State:
    """The state that remembers which examples of a batch its incumbent fails, and forgets those that came right."""
    here = {example.id for example in batch}
    earlier = [example for example in state.failures if example.id not in here]
    latest = (*failing(engine, state.incumbent, batch), *earlier)
    return replace(state, failures=latest[: _REMEMBERED * engine.plan.optimize.replay])
