"""Run the search method of a plan: the loop, or another method with the same baseline, gates and verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.skill import Document, digest
from skillc.gates.stages import reads_batch
from skillc.models.client import Client
from skillc.optimize.description import is_trained, train_with_description
from skillc.optimize.engine import Engine, Position, SearchState, decision_record
from skillc.optimize.gate.decide import DOWN, ENDS, Patch, cut_off, settle
from skillc.optimize.gate.gate import is_hopeless
from skillc.optimize.loop.baseline import begin
from skillc.optimize.loop.train import TrainResult, train
from skillc.optimize.methods.bridge import first_batch, section_texts


@dataclass(frozen=True, slots=True)
class MethodResult:
    """The result of a method.

    Attributes:
        document: its skill; the initial one if it found nothing better.
        stopped: `method` if it finished, `failed`, or why it was stopped as in `TrainResult`.
        problem: why its result is no skill of this program.
        rollouts: new rollouts.
        questions: questions to the optimizer model.
        tried: distinct skills that it measured.
    """

    document: Document
    stopped: str = "method"
    problem: str | None = None
    rollouts: int = 0
    questions: int = 0
    tried: int = 0


Improve = Callable[[Engine, Document, Client], Awaitable[MethodResult]]


def _method_named(name: str) -> Improve:
    """Import a method only to run it: DSPy's optimizers take seconds to load."""
    if name == "one_shot":
        from skillc.optimize.methods.one_shot import one_shot

        return one_shot
    from skillc.optimize.methods.dspy_optimizers import method_named

    return method_named(name)


async def train_by_method(engine: Engine, initial: Document, client: Client) -> TrainResult:
    """Train by the method of the plan, after the description if it is trained.

    The program's gates decide the result of a method other than the loop once. If a cap, the deadline or Ctrl-C ends
    such a method, its result is the best skill that it has measured completely.

    Raises:
        BudgetReached: the caps do not admit the baseline.
        EndpointUnreachable: the target stayed unreachable before the baseline was measured.
        PermanentFailure, MetricError, SkillcError: the run cannot continue; or the method's package is missing.
    """
    if is_trained(engine.plan):
        return await train_with_description(engine, initial)
    if engine.plan.optimize.method == "skillc":
        return await train(engine, initial)
    improve = _method_named(engine.plan.optimize.method)
    engine, state, quarantined = await begin(engine, initial)
    if is_hopeless(engine, state):
        return TrainResult(state, engine, "perfect", quarantined)
    stopped = "method"
    try:
        found = await improve(engine, initial, client)
        stopped = found.stopped
        # An unreachable model interrupts the method: the same command repeats it to the end.
        state = state if stopped == DOWN else await _decided(engine, state, found)
    except ENDS as end:
        cut = cut_off(engine, state, end)
        state, stopped = cut.state, cut.reason
    return TrainResult(state, engine, stopped, quarantined)


async def _decided(engine: Engine, state: SearchState, found: MethodResult) -> SearchState:
    """Return the state after the gates; a result equal to the initial skill is recorded as an empty step."""
    position = Position(1, 1, 1, kind=engine.plan.optimize.method)
    record: dict[str, JsonValue] = {
        "rollouts": found.rollouts,
        "questions": found.questions,
        "tried": found.tried,
    }
    if found.problem is not None or digest(found.document) == digest(state.initial):
        why = found.problem or "nothing better than the initial skill was found"
        engine.observer.decided({**decision_record(state, position, result="empty", reason=why), **record})
        return replace(state, decisions=state.decisions + 1)
    # Gates on the batch read the first one of the run.
    batch = first_batch(engine)
    on_batch = any(reads_batch(gate.term) for gate in engine.step_gates)
    if on_batch and found.stopped in ("interrupted", "time"):
        return state
    if on_batch:
        engine.observer.stage("gate on batch", len(batch))
        await engine.rollouts.measure(state.incumbent, batch, stage="gate")
    texts: dict[str, JsonValue] = {
        name: text for name, text in section_texts(found.document).items() if text != section_texts(state.initial)[name]
    }
    patch = Patch((), found.document, {**record, "sections": texts})
    return await settle(engine, state, [patch], batch if on_batch else (), position)
