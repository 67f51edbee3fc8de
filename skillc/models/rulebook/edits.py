"""Signs for a label, written as edits: into a rule that stands there already, or as a new one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillc.models.rulebook.briefs import Brief, SkillRule
from skillc.models.rulebook.induce import Book, Sign
from skillc.models.rulebook.slots import CLEAR, HINTS, Slot, last_slot
from skillc.models.rulebook.wording import evidence_text, ordered_signs, rule_text

Edit = dict[str, object]
Counts = Mapping[Sign, int]

MOST_SIGNS = 12
ENOUGH = 2  # cases that make a sign clear
DOUBT = 0.34  # the most evidence for other labels, as a share of a sign's own
_WORTH_EXTENDING = 3
_TRIED_OFTEN = 3
_REMEMBERED = re.compile(r"^(\w+): (\d+) of (\d+) edits", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Finding:
    """Signs found for a label: how many cases show each, the slot they need, the cases cited, and the support."""

    label: str
    counts: Counts
    slot: Slot
    cures: tuple[str, ...]
    support: int = 1


def strongest_first(counts: Counts) -> list[Sign]:
    """Signs, the most seen first."""
    return sorted(counts, key=lambda sign: (-counts[sign], sign))


def without_repeats(counts: Counts) -> dict[Sign, int]:
    """The signs without phrases that hold another sign which was seen as often."""
    return {
        sign: count
        for sign, count in counts.items()
        if not any(other != sign and other.trigger in sign.trigger and counts[other] >= count for other in counts)
    }


def write(brief: Brief, book: Book, finding: Finding) -> list[Edit]:
    """The edits for a finding: at most one for clear signs and one for hints, field by field."""
    edits: list[Edit] = []
    urgent = finding.slot < last_slot(brief)
    for field in sorted({sign.field for sign in finding.counts}):
        mine = {sign: count for sign, count in finding.counts.items() if sign.field == field}
        clear = {s: n for s, n in mine.items() if urgent or n + book.known(s, finding.label) >= ENOUGH}
        hints = {s: n for s, n in mine.items() if s not in clear and not book.known(s, finding.label)}
        edits += _tier(brief, book, finding, clear, CLEAR)
        edits += _tier(brief, book, finding, hints, HINTS)
    return edits


def _tier(brief: Brief, book: Book, finding: Finding, counts: Counts, topic: str) -> list[Edit]:
    left = dict(counts)
    edits: list[Edit] = []
    home = _home(brief, book, finding, counts, topic)
    if home is not None:
        taken = _fitting(book, finding.label, left, home)
        grown = _extended(brief, book, finding, home, {sign: left.pop(sign) for sign in taken})
        edits += [grown] if grown else []
    added = _added(brief, finding, left, topic)
    return edits + ([added] if added else [])


def _home(brief: Brief, book: Book, finding: Finding, counts: Counts, topic: str) -> SkillRule | None:
    """A rule for the label that stands where the signs are needed and has room for most of them."""
    last = last_slot(brief)
    for rule in brief.rules:
        signs = book.signs.get(rule.id)
        if rule.topic != topic or not signs or rule.read is None or rule.read.answer != finding.label:
            continue
        too_late = topic == CLEAR and finding.slot < last and book.index[rule.id] >= finding.slot.index
        same_field = all(sign.field == signs[0].field for sign in counts)
        enough = min(len(counts), _WORTH_EXTENDING)
        if same_field and not too_late and 0 < enough <= len(_fitting(book, finding.label, counts, rule)):
            return rule
    return None


def _fitting(book: Book, label: str, counts: Counts, rule: SkillRule) -> list[Sign]:
    """The signs that a rule has room for and that override nothing stronger where it stands."""
    room = MOST_SIGNS - len(book.signs[rule.id])
    at = book.index[rule.id]
    return [
        sign
        for sign in strongest_first(counts)
        if sign not in book.signs[rule.id] and book.against(sign, label, at) <= counts[sign] * DOUBT
    ][: max(0, room)]


def _extended(brief: Brief, book: Book, finding: Finding, rule: SkillRule, new: Counts) -> Edit | None:
    old = book.signs[rule.id]
    total = Counter({sign.trigger: max(1, book.seen[rule.id][sign.trigger]) for sign in old})
    for sign, count in new.items():
        total[sign.trigger] += count
    text = rule_text(old[0].field, ordered_signs(total, total), finding.label)
    if is_rejected(brief, text):
        return None
    return {"op": "replace", "rule": rule.id, "text": text, **_reasons(finding, total)}


def _added(brief: Brief, finding: Finding, counts: Counts, topic: str) -> Edit | None:
    signs = strongest_first(counts)[:MOST_SIGNS]
    while signs:
        total = {sign.trigger: counts[sign] for sign in signs}
        text = rule_text(signs[0].field, ordered_signs(total, total), finding.label)
        if not is_rejected(brief, text):
            after = finding.slot.after if topic == CLEAR else "end"
            where = {"section": brief.sections[0], "topic": topic, "after": after}
            return {"op": "add", "text": text, **where, **_reasons(finding, total)}
        signs.pop()
    return None


def _reasons(finding: Finding, total: Mapping[str, int]) -> Edit:
    return {"rationale": evidence_text(total), "cures": list(finding.cures), "support": finding.support}


def is_rejected(brief: Brief, text: str) -> bool:
    """Whether the rejected-edit buffer holds this text."""
    return any(text in line for line in brief.rejected)


def first_edits(brief: Brief, edits: Sequence[Edit], budget: int) -> list[Edit]:
    """As many as the reply may hold, each text once; the kinds that its memory speaks against come last."""
    unique = {(edit["op"], edit.get("rule"), edit.get("text")): edit for edit in reversed(edits)}
    once = [edit for edit in edits if unique[edit["op"], edit.get("rule"), edit.get("text")] is edit]
    in_vain = ops_in_vain(brief.memory)
    return sorted(once, key=lambda edit: edit["op"] in in_vain)[:budget]


def ops_in_vain(memory: str) -> frozenset[str]:
    """What edits did that was tried often enough and never accepted, by the memory that `meta_skill` writes."""
    counts = ((m[1], int(m[2]), int(m[3])) for m in _REMEMBERED.finditer(memory))
    return frozenset(op for op, accepted, tried in counts if accepted == 0 and tried >= _TRIED_OFTEN)
