"""At an epoch's end: what kinds of edits helped. The optimizer's own memory, shown to it, never shipped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from pydantic import JsonValue

from skillc.budget.call_sizes import DECISIONS_LIMIT, MEMORY_LIMIT
from skillc.budget.steps import epochs_of
from skillc.json_values import objects_in
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.propose.cases import briefing, fitting, shortened, trimmed
from skillc.optimize.propose.prompting import DecisionView, meta_skill_messages
from skillc.optimize.propose.replies import MetaSkillReply
from skillc.optimize.strategies.mechanism import Epoch, Mechanism
from skillc.plan.schema import Plan
from skillc.tokens import count_tokens

# Characters of an edit: the memory is about kinds of edits, so that the first words do.
_EDIT = 160


class MetaSkill(Mechanism):
    """Let the optimizer keep a memory of what helped, across epochs."""

    name = "meta_skill"

    @classmethod
    def of(cls, plan: Plan) -> MetaSkill | None:
        """Return the mechanism if `meta_skill` is on."""
        return cls() if plan.optimize.meta_skill else None

    async def epoch_end(self, engine: Engine, state: State, epoch: Epoch) -> AsyncIterator[State]:
        """Yield the state with a new memory; after the last epoch nothing would read it."""
        if epoch.decisions and epoch.place.epoch < epochs_of(engine.plan):
            yield await meta_skill(engine, state, epoch.decisions, epoch.place)


async def meta_skill(engine: Engine, state: State, decisions: Sequence[Mapping[str, JsonValue]], place: Place) -> State:
    """The state with a new memory, or the old one where the optimizer gave none.

    An epoch in which nothing was proposed teaches nothing, so nothing is asked.
    """
    views = [view(record) for record in decisions]
    if not any(each.edits for each in views):
        return state
    engine.observer.stage("meta skill", 1)
    newest = fitting(views[::-1], _tokens, DECISIONS_LIMIT)[::-1]
    messages = meta_skill_messages(
        briefing(engine, state), decisions=newest, in_vain=not any(each.accepted for each in views)
    )
    reply = await engine.optimizer.ask(MetaSkillReply, messages, stage="meta skill", sample=(place.epoch, place.step))
    return state if reply is None else state.remembering(meta=trimmed(reply.memory.strip(), MEMORY_LIMIT))


def view(record: Mapping[str, JsonValue]) -> DecisionView:
    """A decision's record as the optimizer is reminded of it: each proposed edit with its fate, a draft as a whole."""
    number = record["decision"]
    return DecisionView(
        step=number if isinstance(number, int) else 0,
        accepted=record["result"] == "accept",
        edits=_edits(record),
        outcome=str(record.get("reason", record["result"])),
    )


def _edits(record: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    drafts = [each for each in objects_in(record.get("drafts")) if each.get("chosen")]
    if drafts:
        told = ("tokens", "cured", "of_failures", "broke", "of_rights")
        return [
            ("a draft of {} tokens, cured {} of {} and broke {} of {}".format(*(d[k] for k in told)), "")
            for d in drafts
        ]
    fates = objects_in(record.get("fates"))
    if fates:
        return [
            (shortened(str(each["edit"]), _EDIT), ": ".join(str(each[key]) for key in ("fate", "why") if key in each))
            for each in fates
        ]
    rows = objects_in(record.get("suggestions") or record.get("edits"))
    return [(shortened(f"{each.get('op')}: {each.get('text') or each.get('rule')}", _EDIT), "") for each in rows]


def _tokens(decision: DecisionView) -> int:
    return count_tokens(" ".join([decision.outcome, *(text for edit in decision.edits for text in edit)]))
