"""The reply to a reflection: edits for failures, and from successes what must not be broken."""

from __future__ import annotations

from collections import Counter, defaultdict

from skillc.models.rulebook.briefs import Brief, Case
from skillc.models.rulebook.edits import ENOUGH, MOST_SIGNS, Edit, Finding, first_edits, strongest_first, write
from skillc.models.rulebook.formats import format_edits
from skillc.models.rulebook.induce import Book, Sign, best_signs, book_of, deciding, normals, tally
from skillc.models.rulebook.marks import lapse_replies, lapses_of, marks_of
from skillc.models.rulebook.repair import repairs
from skillc.models.rulebook.slots import HINTS, Slot, slot_for
from skillc.models.rulebook.wording import evidence_text, rule_text

LUCK = "luck"


def reflect(brief: Brief) -> dict[str, object]:
    """Edits for one minibatch, with a summary in a sentence."""
    if not brief.sections or not brief.inputs:
        return {"summary": "no section may be edited", "edits": []}
    marked: dict[str, object] = {"marks": marks_of(brief)} if brief.request.get("marks") else {}
    if brief.request.get("kind") != "failures":
        return {"summary": "what the right answers had in common", "edits": _protecting(brief), **marked}
    lapses = lapses_of(brief) if brief.request.get("lapses") else []
    lapsed = {case.tag for _, _, cases in lapses for case in cases}
    known = [case for case in brief.cases if case.gold is not None and case.tag not in lapsed]
    edits = _for_labels(brief, known) if brief.labels else format_edits(brief, known)
    missed = Counter(case.gold for case in known).most_common(1)
    summary = (
        f"{missed[0][0]} was missed most, {missed[0][1]} of {len(known)}" if missed else "no right answer is known"
    )
    if lapses:
        marked["lapses"] = lapse_replies(lapses)
    return {"summary": summary, "edits": first_edits(brief, edits, brief.budget), **marked}


def _for_labels(brief: Brief, cases: list[Case]) -> list[Edit]:
    """Repairs of rules that decided wrongly, and rules for labels, those that cure most first."""
    book = book_of(brief)
    counts = tally(cases)
    groups: dict[tuple[str, Slot], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.gold or "", slot_for(brief, book, case)].append(case)
    edits: list[Edit] = []
    for (label, slot), group in groups.items():
        edits += write(brief, book, _finding(label, slot, group, counts, book))
    edits += repairs(brief, book, cases)
    return sorted(edits, key=_size, reverse=True)


def _size(edit: Edit) -> int:
    cures = edit["cures"]
    return len(cures) if isinstance(cures, list) else 0


def _finding(label: str, slot: Slot, cases: list[Case], counts: dict[str, Counter[Sign]], book: Book) -> Finding:
    signs = {sign for case in cases for sign in best_signs(case, counts, book, slot.index)}
    return Finding(label, {sign: counts[label][sign] for sign in signs}, slot, tuple(case.tag for case in cases))


def _protecting(brief: Brief) -> list[Edit]:
    """What right answers had in common, by the rule that gave them: evidence for the merge."""
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in brief.cases:
        if case.gold in brief.labels:
            line = deciding(brief.lines, normals(case))
            by = line[0] if line and line[0] and not line[1].default else LUCK
            groups[case.gold or "", by].append(case)
    edits: list[Edit] = []
    for (label, by), cases in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        counts = tally(cases)[label]
        common = {sign: n for sign, n in counts.items() if n >= min(ENOUGH, len(cases))}
        top = strongest_first(common)[:MOST_SIGNS]
        fields = {sign.field for sign in top}
        for field in sorted(fields):
            total = {sign.trigger: common[sign] for sign in top if sign.field == field}
            edits.append(
                {
                    "op": "add",
                    "section": brief.sections[0],
                    "text": rule_text(field, sorted(total, key=lambda t: (-total[t], t)), label),
                    "topic": HINTS,
                    "after": "end",
                    "rationale": f"right by {by} where {evidence_text(total)}",
                    "cures": [case.tag for case in cases],
                }
            )
    return edits[: brief.budget]
