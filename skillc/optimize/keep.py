"""The `keep` gate of `parents = pareto`: a rejected candidate that is right where no member of the pool is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from skillc.data.example import Example
from skillc.document.skill import Document
from skillc.gates.stages import gates_for, reads_batch
from skillc.optimize.engine import Engine, State
from skillc.optimize.gate import complete
from skillc.optimize.parents import anchor_of, is_right, totals, unsolved
from skillc.plan.schema import GatePlan

TRIES = 3


async def against_anchor(engine: Engine, state: State, batch: Sequence[Example], gates: Sequence[GatePlan]) -> State:
    """The state whose incumbent is what the gates compare with, measured on the batch that they read.

    Only `change` is still taken from the parent: it bounds what one step may do, and a line of kept skills would else
    leave every trust region for good. On the batch of its own step an incumbent is known, and nothing is run.
    """
    anchor = anchor_of(state)
    state = replace(state, incumbent=anchor, parent=None if anchor is state.incumbent else state.incumbent)
    gated = engine.plan.optimize.accept == "gates"
    if batch and gated and any(reads_batch(gate.term) for gate in gates):
        known = engine.rollouts.known
        todo = [e for e in batch if (outcome := known(state.incumbent, e)) is None or not outcome.measured]
        if todo:
            engine.observer.stage("gate on batch", len(todo))
            await engine.rollouts.measure(state.incumbent, todo, stage="gate")
    return state


async def worth_keeping(
    engine: Engine, state: State, candidate: Document, decision: Mapping[str, JsonValue]
) -> list[str]:
    """Ids of the validation examples that a rejected candidate is right on, and no member of the pool; empty: dropped.

    It must hold the gates on its text and on the batch. Like any gate, this one sends waves until the answer is known;
    a candidate that stays unmeasured somewhere is dropped, for it could not be a parent.

    Raises:
        BudgetReached: a cap does not admit a call.
    """
    open_ = unsolved(engine, state)
    if not open_ or not _holds_before_validation(engine, decision) or not await _solves_one(engine, candidate, open_):
        return []
    if not await _measured_whole(engine, candidate):
        return []
    return [example.id for example in open_ if is_right(engine, candidate, example)]


def _holds_before_validation(engine: Engine, decision: Mapping[str, JsonValue]) -> bool:
    truths = decision["gates"]
    early = [gate.name for gate in gates_for(engine.plan, slow=False) if gate.stage != "validation"]
    return isinstance(truths, dict) and all(truths.get(name) == "true" for name in early)


async def _solves_one(engine: Engine, candidate: Document, examples: Sequence[Example]) -> bool:
    engine.observer.stage("keep", len(examples) * engine.plan.optimize.samples)
    for start in range(0, len(examples), engine.wave):
        wave = examples[start : start + engine.wave]
        for sample in range(engine.plan.optimize.samples):
            await engine.rollouts.measure(candidate, wave, stage="gate", sample=sample)
        if any(is_right(engine, candidate, example) for example in wave):
            return True
    return False


async def _measured_whole(engine: Engine, candidate: Document) -> bool:
    for _ in range(TRIES):
        await complete(engine, candidate, stage="validation")
        if None not in totals(engine, candidate):
            return True
    return False
