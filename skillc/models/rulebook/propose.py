"""The reply to a reflection: edits for failures, and from successes the evidence that they add."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from skillc.models.rulebook.briefs import Brief, Case
from skillc.models.rulebook.edits import Edit, edits_of, first_edits, is_rejected, names
from skillc.models.rulebook.extract import take_edits
from skillc.models.rulebook.formats import format_edits
from skillc.models.rulebook.induce import Book, Key, book_of, deciding, items_of
from skillc.models.rulebook.marks import lapse_replies, lapses_of, marks_of
from skillc.models.rulebook.repair import repairs, with_majority
from skillc.models.rulebook.views import Slot, label_view, slots_of
from skillc.models.rulebook.wording import default_text, rule_text

RIGHT = "right where "
_SHOWN = 4


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
    edits = _for_slots(brief, known)
    missed = Counter(case.gold for case in known).most_common(1)
    summary = (
        f"{missed[0][0]} was missed most, {missed[0][1]} of {len(known)}" if missed else "no right answer is known"
    )
    if lapses:
        marked["lapses"] = lapse_replies(lapses)
    return {"summary": summary, "edits": first_edits(brief, edits, brief.budget), **marked}


def _for_slots(brief: Brief, cases: list[Case]) -> list[Edit]:
    """Edits for every output, or key of a JSON output, those that cite most cases first."""
    if (len(brief.outputs) < 2 and brief.labels) or not brief.outputs:
        return _for_labels(brief, cases) if brief.labels else format_edits(brief, cases)
    edits: list[Edit] = []
    for slot in slots_of(brief):
        view = label_view(brief, slot, cases) if slot.kind in ("labels", "bool", "json") else None
        if view is not None:
            wrong = [case for case in view.cases if case.answer != case.gold]
            edits += [*_for_labels(view, wrong), *_default(view, slot, wrong)]
        elif slot.kind not in ("labels", "bool"):
            edits += take_edits(brief, cases, slot.name, slot.kind)
    if [kind for _, kind in brief.outputs] == ["text"]:
        edits += format_edits(brief, cases)
    return sorted(edits, key=lambda edit: -len(names(edit["cures"])))


def _default(view: Brief, slot: Slot, cases: Sequence[Case]) -> list[Edit]:
    """What to answer for a key where no rule applies: its most frequent value."""
    if slot.kind != "json" or any(rule.default for _, rule in view.lines) or not cases:
        return []
    label, _ = Counter(case.gold or "" for case in cases).most_common(1)[0]
    cures = [case.tag for case in cases if case.gold == label]
    add = {"op": "add", "section": view.sections[0], "text": default_text(label), "after": "end"}
    edit: Edit = {**add, "rationale": f"right in {len(cures)} of {len(cases)} cases", "cures": cures}
    return [] if is_rejected(view, edit) else [edit]


def _for_labels(brief: Brief, cases: list[Case]) -> list[Edit]:
    """Rules for answers, and repairs of the order in which rules decide, those that cite most cases first."""
    book = book_of(brief)
    edits = edits_of(brief, book, items_of(book, cases, failed=True), _misled(brief, book, cases), alone=True)
    edits += repairs(brief, book, cases)
    edits += [edit for edit in with_majority(brief, cases) if not is_rejected(brief, edit)]
    return sorted(edits, key=lambda edit: -len(names(edit["cures"])))


def _misled(brief: Brief, book: Book, cases: Sequence[Case]) -> dict[Key, list[str]]:
    """Cases by the rule that decides them wrongly."""
    by_id = {rule.id: key for key, rule in book.rules.items()}
    found: dict[Key, list[str]] = defaultdict(list)
    for case in cases:
        line = deciding(brief, case)
        if line and line[0] in by_id and line[1].answer != case.gold:
            found[by_id[line[0]]].append(case.tag)
    return found


def _protecting(brief: Brief) -> list[Edit]:
    """What right answers had in common: evidence for the merge, one edit for each field."""
    if len(brief.outputs) < 2 and brief.labels:
        return _shared(brief)[: brief.budget]
    views = (
        label_view(brief, slot, brief.cases) for slot in slots_of(brief) if slot.kind in ("labels", "bool", "json")
    )
    return [edit for view in views if view is not None for edit in _shared(view)][: brief.budget]


def _shared(brief: Brief) -> list[Edit]:
    book = book_of(brief)
    right = [case for case in brief.cases if case.gold in brief.labels]
    edits: list[Edit] = []
    for field in brief.inputs:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for item in items_of(book, right, failed=False):
            if item.key[0] == field:
                counts[item.key[1]].update(item.counts)
        common = max(counts, key=lambda label: (max(counts[label].values(), default=0), label), default=None)
        if common is not None and counts[common]:
            signs = [sign for sign, _ in counts[common].most_common(_SHOWN)]
            add = {"op": "add", "section": brief.sections[0], "text": rule_text(field, signs, common), "after": "end"}
            cures = [case.tag for case in right]
            edits.append({**add, "rationale": right_text(counts), "cures": cures})
    return edits


def right_text(counts: Mapping[str, Mapping[str, int]]) -> str:
    """How many right cases of each answer hold each sign, as a merge reads it."""
    told = {label: {sign.strip(): n for sign, n in found.items()} for label, found in counts.items()}
    return RIGHT + json.dumps(told, ensure_ascii=False)
