"""What a decision, an edit and its effects are called in every view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillc.document.edits import Add, Delete, Move, Replace
from skillc.document.skill import Document
from skillc.plan.schema import MetricPlan
from skillc.review.confidence import score
from skillc.review.decisions import Bound, Credit, DraftTrial, ProposedEdit, Truth
from skillc.review.differences import Part, by_words
from skillc.text import cut, listed

SHORT = 8
"""Digits of a digest."""
NAMED = 10
"""Ids of examples in a sentence."""
_HOUR = 3600
GATE_WORDS: Mapping[Truth, tuple[str, str]] = {
    "true": ("✓", "holds"),
    "false": ("✗", "fails"),
    "unknown": ("?", "open"),
}
"""Mark and word of each value of a gate."""


def bound_words(bound: Bound, goal: MetricPlan) -> str:
    """Render a mean, or both ends of where it can be."""
    if bound.exact:
        return score(bound.low, goal)
    return f"between {score(bound.low, goal)} and {score(bound.high, goal)}"


def draft_words(draft: DraftTrial) -> str:
    """Describe the trial of a draft."""
    trial = f"cured {draft.cured} of {draft.of_failures} failures, broke {draft.broke} of {draft.of_rights} right cases"
    return f"{draft.tokens:,} tokens: {trial} in its trial{'; chosen' if draft.chosen else ''}"


def edit_words(edit: ProposedEdit, parent: Document | None) -> tuple[str, Sequence[Part]]:
    """Return an edit in a few words, and the difference of its texts."""

    def old(rule: str) -> str:
        known = parent.rule(rule) if parent is not None else None
        return known.text if known is not None else ""

    match edit.edit:
        case Add(section, text):
            return f"add to {section}", (("new", text),)
        case Replace(rule, text, old=part):
            return f"replace {rule}", by_words(part or old(rule), text)
        case Delete(rule):
            return f"delete {rule}", (("old", old(rule)),)
        case Move(rule, after):
            return f"move {rule} after {after or 'all others'}", (("same", old(rule)),)
    return edit.words, ()


def credit_words(where: str, credit: Credit | None) -> str:
    """Describe the examples that an edit is associated with; empty without credit."""
    if credit is None:
        return ""
    names = [
        f"{word} {listed(ids, most=NAMED)}"
        for word, ids in (("cured", credit.cured_ids), ("broke", credit.broke_ids))
        if ids
    ]
    named = f" ({'; '.join(names)})" if names else ""
    return f"{where}: cured {credit.cured}, broke {credit.broke}{named}"


def edit_notes(edit: ProposedEdit, most: int | None = None) -> tuple[str, ...]:
    """Return what is recorded of an edit besides its texts, a sentence each; of the rationale `most` characters."""
    rationale = edit.rationale if most is None else cut(edit.rationale, most)
    notes = (
        f"why: {rationale}" if rationale else "",
        f"written for {listed(edit.cures, most=NAMED)}" if edit.cures else "",
        f"screen, alone on training examples: {edit.screen.counts}" if edit.screen is not None else "",
        credit_words("on validation", edit.credit),
        f"result: {edit.why}" if edit.why else "",
        f"may be the opposite of the old rule: {edit.opposite}" if edit.opposite else "",
    )
    return tuple(note for note in notes if note)


def duration(seconds: float) -> str:
    """Return seconds in words: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if seconds < _HOUR:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
