"""At an epoch's end: what kinds of edits helped. The optimizer's own memory, shown to it, never shipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.prompting import meta_skill_messages
from skillc.optimize.replies import MetaSkillReply


async def meta_skill(engine: Engine, state: State, decisions: Sequence[Mapping[str, JsonValue]], place: Place) -> State:
    """The state with a new memory, or the old one where the optimizer gave none."""
    engine.observer.stage("meta skill", 1)
    messages = meta_skill_messages(memory=state.meta, decisions=decisions)
    reply = await engine.optimizer.ask(MetaSkillReply, messages, stage="meta skill", sample=(place.epoch, place.step))
    return state if reply is None else replace(state, meta=reply.memory.strip())
