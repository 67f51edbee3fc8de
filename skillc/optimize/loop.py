"""The loop: epochs of steps, until the budget, patience or the task has an end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from pydantic import JsonValue

from skillc.document.edits import apply_edits
from skillc.document.skill import Document
from skillc.models.failures import BudgetReached
from skillc.optimize.baseline import baseline
from skillc.optimize.decide import CutOff, Patch, settle, standing
from skillc.optimize.engine import Engine, Place, State, mean
from skillc.optimize.gate import check_requires, hopeless
from skillc.optimize.meta_skill import meta_skill
from skillc.optimize.observer import Observer
from skillc.optimize.patience import Patience
from skillc.optimize.proposals import wording
from skillc.optimize.seeds import batches
from skillc.optimize.slow_update import longitudinal, slow_update
from skillc.optimize.step import step
from skillc.plan.steps import epochs_of, step_size, steps_of, steps_per_epoch


class Interrupted(Exception):  # noqa: N818
    """The user wants the run to end; the open decision is dropped."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What the loop hands to the final test.

    Attributes:
        state: the state after the last decision.
        engine: the engine, without quarantined examples.
        stopped: why the loop ended: `epochs`, `steps`, `patience`, `perfect`, `undecided`, `time`, `interrupted`, or
            the cap that was reached: `calls`, `tokens`, `cost`.
        quarantined: ids of validation examples that were left out.
    """

    state: State
    engine: Engine
    stopped: str
    quarantined: tuple[str, ...]


class _Listener:
    """Passes everything on and keeps the decisions of the running epoch for the meta skill."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.decisions: list[Mapping[str, JsonValue]] = []

    def stage(self, name: str, total: int) -> None:
        self._observer.stage(name, total)

    def advance(self, count: int = 1) -> None:
        self._observer.advance(count)

    def note(self, message: str) -> None:
        self._observer.note(message)

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        self.decisions.append(record)
        self._observer.decided(record)

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        self._observer.completed(record)

    def stop_wanted(self) -> str | None:
        return self._observer.stop_wanted()


async def train(engine: Engine, initial: Document) -> Trained:
    """Baseline, then steps until something ends them. Caps, clocks and signals only cut the run off.

    Raises:
        BudgetReached: the caps do not even admit the baseline.
        PermanentFailure, MetricError, SkillcError: the run cannot go on.
    """
    listener = _Listener(engine.observer)
    engine, quarantined = await baseline(replace(engine, observer=listener), initial)
    goal = mean(engine, initial, engine.plan.goal.name) or Fraction(0)
    budget = engine.plan.budget
    state = State(initial, initial, initial, Patience(budget.patience, budget.min_gain, goal))
    check_requires(engine, state)
    engine.reserve.set_aside()
    stopped = "epochs"
    total = steps_of(engine.plan, len(engine.dataset.train))
    for epoch in range(1, epochs_of(engine.plan) + 1):
        first, listener.decisions = state.incumbent, []
        state, reason = await _epoch(engine, state, epoch, total)
        if reason is None:
            state, reason = await _epoch_end(engine, state, first, listener.decisions, epoch, total)
        if reason is not None:
            stopped = reason
            break
    return Trained(state, engine, stopped, quarantined)


async def _epoch(engine: Engine, state: State, epoch: int, total: int) -> tuple[State, str | None]:
    plan = engine.plan
    parts = batches(engine.dataset.train, step_size(plan), plan_seed=plan.data.seed, epoch=epoch)
    for i, batch in enumerate(parts):
        number = (epoch - 1) * len(parts) + i + 1
        if number > total:
            return state, "steps"
        reason = engine.observer.stop_wanted() or state.patience.reason
        if reason is None and hopeless(engine, state):
            reason = "perfect"
        if reason is not None:
            return state, reason
        try:
            state = await step(engine, state, batch, Place(epoch, number, total))
        except CutOff as cut:
            return cut.state, cut.reason
        except BudgetReached as cap:
            return state, cap.cap
        except Interrupted:
            return state, "interrupted"
    return state, state.patience.reason


async def _epoch_end(
    engine: Engine,
    state: State,
    first: Document,
    decisions: list[Mapping[str, JsonValue]],
    epoch: int,
    total: int,
) -> tuple[State, str | None]:
    """Undecided patches once more, then the slow update after an epoch that accepted something, then the meta skill."""
    optimize = engine.plan.optimize
    parts = steps_per_epoch(engine.plan, len(engine.dataset.train))
    place = Place(epoch, epoch * parts, total)
    try:
        state = await _retry(engine, state, replace(place, kind="retry"))
        accepted = any(record["result"] == "accept" for record in decisions)
        if accepted and optimize.slow_update and any(s.mode == "slow" for s in state.incumbent.sections):
            pairs = await longitudinal(engine, state, first, epoch)
            state = await slow_update(engine, state, first, pairs, replace(place, kind="slow update"))
        if optimize.meta_skill and decisions and epoch < epochs_of(engine.plan):
            state = await meta_skill(engine, state, decisions, place)
    except CutOff as cut:
        return cut.state, cut.reason
    except BudgetReached as cap:
        return state, cap.cap
    except Interrupted:
        return state, "interrupted"
    return state, None


async def _retry(engine: Engine, state: State, place: Place) -> State:
    """Patches that could not be decided get one more try against the skill of the day."""
    waiting, state = state.undecided, replace(state, undecided=())
    for patch in waiting:
        applied = apply_edits(state.incumbent, patch.edits)
        if all(report.applied for report in applied.reports):
            shown: dict[str, JsonValue] = {"edits": [wording(edit) for edit in patch.edits]}
            with standing(engine, state):
                state = await settle(engine, state, Patch(patch.edits, applied.document, shown), (), place)
    return state
