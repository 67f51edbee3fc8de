"""The training loop: epochs of steps until the budget, patience or a perfect skill ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from skillc.budget.steps import epochs_of, open_ended, step_size, steps_of
from skillc.dataclass import dataclass
from skillc.document.edits import apply_edits
from skillc.document.skill import Document
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.optimize.engine import Engine, Position, SearchState
from skillc.optimize.gate.decide import ENDS, Patch, committed, cut_off, settle
from skillc.optimize.gate.gate import goal_of, mean_json
from skillc.optimize.host import ForwardingObserver, Observer, stop_reason
from skillc.optimize.loop.baseline import begin
from skillc.optimize.loop.step import step
from skillc.optimize.propose.proposals import wording
from skillc.optimize.rollouts import Prefetcher
from skillc.optimize.schedule import batches
from skillc.optimize.strategies.mechanism import Epoch, notify_mechanisms
from skillc.outcomes import Example

_FINISHED = ("epochs", "steps", "patience", "perfect", "exhausted")
COMPLETED = (*_FINISHED, "undecided")
"""End reasons of a search that completed: it was not cut off by a cap, deadline, interrupt or unreachable model."""
# End the run after this many consecutive epochs without a candidate: the same examples yield nothing new.
_IDLE_EPOCHS = 2


# asyncio formats the result of its main task into an error that it drops: that would be the text of a whole run.
@dataclass(frozen=True, slots=True, repr=False)
class TrainResult:
    """The result of the loop, input of the final test.

    Attributes:
        state: the state after the last decision.
        engine: the engine, without quarantined examples.
        stopped: why the loop ended: `epochs`, `steps`, `patience`, `perfect`, `exhausted` after two epochs without a
            candidate, `undecided`, `time`, `interrupted`, `down` if a model stayed unreachable, or the cap that was
            reached: `calls`, `tokens`, `cost`.
        quarantined: ids of validation examples that were excluded.
    """

    state: SearchState
    engine: Engine
    stopped: str
    quarantined: tuple[str, ...]


class _Listener(ForwardingObserver):
    """Keep the decisions of the current epoch."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.decisions: list[Mapping[str, JsonValue]] = []

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        self.decisions.append(record)
        super().decided(record)


async def train(engine: Engine, initial: Document, *, begun: SearchState | None = None) -> TrainResult:
    """Measure the baseline, then train until something ends the run. Caps, clocks and signals only cut it off.

    Args:
        engine: the run.
        initial: the skill to begin with.
        begun: an earlier phase of the run; decision numbers continue from it, and its initial skill is the run's.

    Raises:
        BudgetReached: the caps do not admit the baseline.
        EndpointUnreachable: the target stayed unreachable before the baseline was measured.
        PermanentFailure, MetricError, SkillcError: the run cannot go on.
    """
    listener = _Listener(engine.observer)
    engine, state, quarantined = await begin(replace(engine, observer=listener), initial, begun=begun)
    if engine.plan.optimize.speculate and engine.plan.optimize.accept == "gates":
        engine = replace(engine, ahead=Prefetcher(engine.rollouts, engine.admits))
    try:
        state, stopped = await _epochs(engine, state, listener)
        if stopped in COMPLETED:
            stopped = await _prefetched(engine, stopped)
    finally:
        await engine.ahead.drop()
    return TrainResult(state, engine, stopped, quarantined)


async def _prefetched(engine: Engine, stopped: str) -> str:
    """Await unused prefetched rollouts, so that charges do not depend on timing; return why the run ended."""
    try:
        await engine.ahead.arrive(None)
    except (BudgetReached, EndpointUnreachable):
        return stopped
    except asyncio.CancelledError:
        return stop_reason(engine.observer)
    return stopped


async def _epochs(engine: Engine, state: SearchState, listener: _Listener) -> tuple[SearchState, str]:
    total = steps_of(engine.plan, len(engine.dataset.train))
    idle = 0
    for epoch in range(1, epochs_of(engine.plan) + 1):
        first, listener.decisions = state.incumbent, []
        state, reason = await _epoch(engine, state, epoch, total)
        if reason is None:
            position = Position(epoch, epoch * len(batches_of(engine, epoch)), _shown(engine, total))
            state, reason = await _epoch_end(engine, state, Epoch(position, first, listener.decisions))
        idle = idle + 1 if all(record["result"] == "empty" for record in listener.decisions) else 0
        if reason is None and idle == _IDLE_EPOCHS and epoch < epochs_of(engine.plan):
            reason = "exhausted"
        if reason is not None:
            break
    return await _run_end(engine, state, reason or "epochs", epoch, total)


async def _run_end(engine: Engine, state: SearchState, reason: str, epoch: int, total: int) -> tuple[SearchState, str]:
    """Let the mechanisms finish the best skill, and return why the run ended: a cap if one cut them off."""
    if reason not in _FINISHED:
        return state, reason
    best = after = replace(state, incumbent=state.best)
    position = Position(epoch, epoch * len(batches_of(engine, epoch)), _shown(engine, total))
    try:
        for mechanism in engine.mechanisms:
            after = await mechanism.run_end(engine, after, position)
    except ENDS as end:
        cut = cut_off(engine, state, end)
        return cut.state, cut.reason
    return (state if after is best else after), reason


def _shown(engine: Engine, total: int) -> int | None:
    """Return the number of steps for display, None if the program does not limit it."""
    return None if open_ended(engine.plan) else total


def batches_of(engine: Engine, epoch: int) -> list[tuple[Example, ...]]:
    """Return the batches of one epoch, one for each of its steps."""
    plan = engine.plan
    return batches(engine.dataset.train, step_size(plan), plan_seed=plan.data.seed, epoch=epoch)


async def _epoch(engine: Engine, state: SearchState, epoch: int, total: int) -> tuple[SearchState, str | None]:
    parts = batches_of(engine, epoch)
    for i, batch in enumerate(parts):
        number = (epoch - 1) * len(parts) + i + 1
        reason = "steps" if number > total else _end(engine, state)
        if reason is None:
            # The end of an epoch can change the skill, so the first batch of the next epoch is not prefetched.
            engine.ahead.expect(parts[i + 1] if i + 1 < len(parts) and number < total else ())
            state, reason = await _one_step(engine, state, batch, Position(epoch, number, _shown(engine, total)))
        if reason is not None:
            return state, reason
    return state, state.patience.reason


def _end(engine: Engine, state: SearchState) -> str | None:
    """Return why the run must end before the next step, or None."""
    reason = engine.observer.stop_wanted() or state.patience.reason
    return reason or ("perfect" if engine.acceptance.perfect(engine, state) else None)


async def _one_step(
    engine: Engine, state: SearchState, batch: Sequence[Example], position: Position
) -> tuple[SearchState, str | None]:
    """Return the state after a step; if the step was cut off, the state before it and the reason."""
    try:
        engine.observer.step(position, mean_json(goal_of(engine, state.incumbent)))
        await engine.ahead.arrive(state.incumbent)
        after = await step(engine, state, batch, position)
    except ENDS as end:
        cut = cut_off(engine, state, end)
        return cut.state, cut.reason
    return notify_mechanisms(engine, after, position), None


async def _epoch_end(engine: Engine, state: SearchState, epoch: Epoch) -> tuple[SearchState, str | None]:
    """Retry undecided patches, then let the mechanisms decide; return the last state, and the cap that ended it."""
    try:
        state = await _retry(engine, state, replace(epoch.position, kind="retry"))
        for mechanism in engine.mechanisms:
            async for after in mechanism.epoch_end(engine, state, epoch):
                state = after
    except ENDS as end:
        cut = cut_off(engine, state, end)
        return cut.state, cut.reason
    return state, None


async def _retry(engine: Engine, state: SearchState, position: Position) -> SearchState:
    """Try undecided patches once more against the current incumbent."""
    waiting, state = state.undecided, replace(state, undecided=())
    for patch in waiting:
        applied = apply_edits(state.incumbent, patch.edits)
        if all(report.applied for report in applied.results):
            record: dict[str, JsonValue] = {"edits": [wording(edit) for edit in patch.edits]}
            again = Patch(patch.edits, applied.document, record, proposals=patch.proposals)
            with committed(engine, state):
                state = await settle(engine, state, [again], (), position)
            state = notify_mechanisms(engine, state, position)
    return state
