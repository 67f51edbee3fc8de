"""Lapses (`lapses = on`): a failure to follow a rule that is right becomes a reminder, not an edit of the rule."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.optimize.replies import LapseReply, ProposedEdit
from skillc.plan.initial import REMINDERS


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
