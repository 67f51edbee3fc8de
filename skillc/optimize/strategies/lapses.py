"""Lapses (`lapses = on`): a failure to follow a correct rule becomes a reminder, not an edit of the rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from skillc.optimize.engine import State
from skillc.optimize.propose.prompting import Kind, ReflectRequest
from skillc.optimize.propose.reflect import Reflection
from skillc.optimize.propose.replies import LapseReply, ProposedEdit, ReflectReply
from skillc.optimize.strategies.mechanism import Mechanism
from skillc.plan.initial import REMINDERS
from skillc.plan.schema import Plan


class Lapses(Mechanism):
    """Ask which failures are lapses, and write reminders for them."""

    name = "lapses"

    @classmethod
    def of(cls, plan: Plan) -> Lapses | None:
        """Return the mechanism if `lapses` is on."""
        return cls() if plan.optimize.lapses else None

    def request(self, request: ReflectRequest) -> ReflectRequest:
        """Ask for lapses among failures."""
        return replace(request, lapses=request.kind == "failures")

    def edits(self, kind: Kind, reply: ReflectReply, edits: Sequence[ProposedEdit]) -> Sequence[ProposedEdit]:
        """Add the reminders; what cites more cases comes first, and the optimizer's own order breaks ties."""
        if kind != "failures" or not reply.lapses:
            return edits
        both = [*without_lapses(edits, reply.lapses), *reminders(reply.lapses)]
        return sorted(both, key=lambda edit: -len(edit.cures))

    def writes_alone(self, section: str) -> bool:
        """Keep the section of reminders out of rewrites and drafts."""
        return section == REMINDERS

    def told(self, state: State, reflections: Sequence[Reflection]) -> Mapping[str, JsonValue]:
        """Record how many cases were lapses."""
        return {"lapses": sum(map(lapsed, reflections))}


def lapsed(reflection: Reflection) -> int:
    """Return how many cases of a reflection were lapses."""
    if reflection.reply is None or reflection.kind != "failures":
        return 0
    return len({tag for lapse in reflection.reply.lapses for tag in lapse.cases if tag in reflection.ids})


def without_lapses(edits: Sequence[ProposedEdit], lapses: Sequence[LapseReply]) -> list[ProposedEdit]:
    """The edits with what mends the skill alone: a case that is a lapse is cured by no edit of the rules.

    An edit that was meant for lapses only goes; one that cites nothing stays.
    """
    lapsed = {tag for lapse in lapses for tag in lapse.cases}
    kept = []
    for edit in edits:
        cures = tuple(tag for tag in edit.cures if tag not in lapsed)
        if cures or not edit.cures:
            kept.append(edit.model_copy(update={"cures": cures}))
    return kept


def reminders(lapses: Sequence[LapseReply]) -> list[ProposedEdit]:
    """An edit for each reminder; it goes through the same screen and the same gates as any other."""
    edits = []
    for lapse in lapses:
        of = f"rule {lapse.rule}" if lapse.rule else "a rule"
        why = f"lapse: {of} was right and was not followed on {len(lapse.cases) or 'some'} cases"
        edits.append(ProposedEdit(op="add", section=REMINDERS, text=lapse.reminder, rationale=why, cures=lapse.cases))
    return edits
