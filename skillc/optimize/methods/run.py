"""Run another method before the same baseline, gates and verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from skillc.document.skill import Document, digest
from skillc.gates.stages import gates_for, reads_batch
from skillc.models.client import Client
from skillc.optimize.engine import Engine, Position, SearchState, decision_record
from skillc.optimize.gate.decide import DOWN, ENDS, Patch, cut_off, settle_patch
from skillc.optimize.gate.gate import check_requires, is_hopeless
from skillc.optimize.loop.baseline import baseline
from skillc.optimize.loop.train import TrainResult, first_state
from skillc.optimize.methods.bridge import section_texts
from skillc.optimize.schedule import batches


@dataclass(frozen=True, slots=True)
class MethodResult:
    """The end of a method.

    Attributes:
        document: its result; the initial skill where it found nothing better.
        stopped: why it ended: `method` by itself, else a cap or a wish as in `Trained`, or `failed`.
        problem: why its result is no skill of this program; then there is nothing to decide.
        rollouts: that it made, those known before not counted.
        questions: to the optimizer model.
        tried: different skills that it measured.
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
    """What `loop.train` is for skillc's own method. The method's result is one decision, by the gates of the program.

    A reached cap, the clock or Ctrl-C ends the method, and the best skill that it had measured whole is decided on.

    Raises:
        BudgetReached: the caps do not even admit the baseline.
        PermanentFailure, MetricError, SkillcError: the run cannot go on; or the method's package is missing.
    """
    improve = _method_named(engine.plan.optimize.method)
    engine, quarantined = await baseline(engine, initial)
    state = first_state(engine, initial)
    check_requires(engine, state)
    engine.reserve.set_aside()
    if is_hopeless(engine, state):
        return TrainResult(state, engine, "perfect", quarantined)
    stopped = "method"
    try:
        found = await improve(engine, initial, client)
        stopped = found.stopped
        # What a method reached before its model went away is no result: the same command finds it whole.
        state = state if stopped == DOWN else await _decided(engine, state, found)
    except ENDS as end:
        cut = cut_off(engine, state, end)
        state, stopped = cut.state, cut.reason
    return TrainResult(state, engine, stopped, quarantined)


async def _decided(engine: Engine, state: SearchState, found: MethodResult) -> SearchState:
    """The state after the gates; a result that is no other skill is told as an empty step."""
    position = Position(1, 1, 1, kind=engine.plan.optimize.method)
    shown: dict[str, JsonValue] = {
        "rollouts": found.rollouts,
        "questions": found.questions,
        "tried": found.tried,
    }
    same = digest(found.document) == digest(state.initial)
    if found.problem is not None or same:
        return _empty(
            engine, state, position, found.problem or "nothing better than the initial skill was found", shown
        )
    # A gate that reads the batch is decided on the run's first one.
    batch = batches(engine.dataset.train, engine.plan.optimize.batch, plan_seed=engine.plan.data.seed, epoch=1)[0]
    on_batch = any(reads_batch(gate.term) for gate in gates_for(engine.plan.gates, slow=False))
    if on_batch and found.stopped in ("interrupted", "time"):
        return state
    if on_batch:
        engine.observer.stage("gate on batch", len(batch))
        await engine.rollouts.measure(state.incumbent, batch, stage="gate")
    texts: dict[str, JsonValue] = {
        name: text for name, text in section_texts(found.document).items() if text != section_texts(state.initial)[name]
    }
    patch = Patch((), found.document, {**shown, "sections": texts})
    return await settle_patch(engine, state, patch, batch if on_batch else (), position)


def _empty(
    engine: Engine, state: SearchState, position: Position, why: str, shown: Mapping[str, JsonValue]
) -> SearchState:
    engine.observer.decided({**decision_record(state, position, result="empty", reason=why), **shown})
    return replace(state, decisions=state.decisions + 1)
