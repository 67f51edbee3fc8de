"""At an epoch's end: what kinds of edits helped. The optimizer's own memory, shown to it, never shipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from skillc.optimize.briefing import briefing
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.prompting import DecisionView, meta_skill_messages
from skillc.optimize.replies import MetaSkillReply
from skillc.optimize.sight import trimmed
from skillc.plan.call_sizes import MEMORY_LIMIT


async def meta_skill(engine: Engine, state: State, decisions: Sequence[Mapping[str, JsonValue]], place: Place) -> State:
    """The state with a new memory, or the old one where the optimizer gave none."""
    engine.observer.stage("meta skill", 1)
    shared = briefing(engine, state)
    messages = meta_skill_messages(
        skill=shared["skill"],
        task=shared["task"],
        sections=shared["sections"],
        rejected=shared["rejected"],
        memory=state.meta,
        decisions=[view(record) for record in decisions],
    )
    reply = await engine.optimizer.ask(MetaSkillReply, messages, stage="meta skill", sample=(place.epoch, place.step))
    return state if reply is None else replace(state, meta=trimmed(reply.memory.strip(), MEMORY_LIMIT))


def view(record: Mapping[str, JsonValue]) -> DecisionView:
    """A decision's record as the optimizer is reminded of it."""
    edits = record.get("suggestions") or record.get("edits")
    texts = [_edit_line(edit) for edit in edits] if isinstance(edits, list) else []
    number = record["decision"]
    return DecisionView(
        step=number if isinstance(number, int) else 0,
        accepted=record["result"] == "accept",
        edits=texts,
        outcome=str(record.get("reason", record["result"])),
    )


def _edit_line(edit: JsonValue) -> str:
    if not isinstance(edit, dict):
        return str(edit)
    return f"{edit.get('op')}: {edit.get('text') or edit.get('rule')}"
