"""The reply to an aggregation: signs of all patches counted together, doubtful ones dropped, edits written anew."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from skillc.models.rulebook.briefs import Brief
from skillc.models.rulebook.edits import DOUBT, Edit, Finding, first_edits, without_repeats, write
from skillc.models.rulebook.induce import Book, Sign, book_of
from skillc.models.rulebook.sentences import read_sentence
from skillc.models.rulebook.slots import CLEAR, Slot, last_slot, slot_of
from skillc.models.rulebook.wording import read_evidence

_RIGHT = re.compile(r"right by (\S+) where ")
_EVERYWHERE = 10**6


@dataclass(slots=True)
class _Evidence:
    """What the patches say.

    Attributes:
        counts: cases of a label that show a sign.
        slots: the last slot that was asked for, by label and sign.
        cures: cited cases by label and slot, in order.
        support: proposals by label.
        right: what right answers showed: place of the rule that gave them, label, count.
        others: edits that are not about signs.
    """

    counts: dict[str, Counter[Sign]] = field(default_factory=lambda: defaultdict(Counter))
    slots: dict[tuple[str, Sign], Slot] = field(default_factory=dict)
    cures: dict[tuple[str, Slot], dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    support: Counter[str] = field(default_factory=Counter)
    right: dict[Sign, list[tuple[int, str, int]]] = field(default_factory=lambda: defaultdict(list))
    others: list[Edit] = field(default_factory=list)


def aggregate(brief: Brief) -> dict[str, object]:
    """One patch out of several."""
    book = book_of(brief)
    evidence = _Evidence()
    for patch in brief.edits:
        for edit in patch:
            _read(brief, book, edit, evidence)
    edits: list[Edit] = []
    for label in evidence.counts:
        for slot, counts in sorted(_placed(brief, book, label, evidence).items(), reverse=True):
            cited = evidence.cures.get((label, slot)) or evidence.cures.get((label, last_slot(brief))) or {}
            if cited:
                finding = Finding(label, without_repeats(counts), slot, tuple(cited), max(1, evidence.support[label]))
                edits += write(brief, book, finding)
    edits += _joined(evidence.others)
    edits.sort(key=lambda edit: -len(_names(edit.get("cures"))))
    return {"edits": first_edits(brief, edits, brief.budget)}


def _read(brief: Brief, book: Book, edit: Mapping[str, object], evidence: _Evidence) -> None:
    read = read_sentence(str(edit.get("text", "")), brief.inputs)
    why = str(edit.get("rationale", ""))
    old = book.signs.get(str(edit.get("rule", "")), ())
    new: list[Sign] = []
    if read is not None and len(read.groups) == 1 and not read.groups[0].negated:
        signs = [Sign(read.groups[0].field or brief.inputs[0], trigger) for trigger in read.groups[0].triggers]
        new = [sign for sign in signs if sign not in old]
    if read is None or not new or edit.get("op") not in ("add", "replace"):
        evidence.others.append(dict(edit))
        return
    seen = read_evidence(why)
    right = _RIGHT.match(why)
    if right:
        at = book.index.get(right[1], _EVERYWHERE)
        for sign in new:
            evidence.right[sign].append((at, read.answer, max(1, seen[sign.trigger])))
        return
    slot = last_slot(brief)
    if edit.get("op") == "add" and edit.get("topic") == CLEAR:
        slot = slot_of(brief, book, str(edit.get("after", "")))
    for sign in new:
        evidence.counts[read.answer][sign] += max(1, seen[sign.trigger])
        evidence.slots[read.answer, sign] = max(slot, evidence.slots.get((read.answer, sign), slot))
    cited = dict.fromkeys(_names(edit.get("cures")))
    for place in {slot, *(evidence.slots[read.answer, sign] for sign in new)}:
        evidence.cures[read.answer, place].update(cited)
    support = edit.get("support", 1)
    evidence.support[read.answer] += support if isinstance(support, int) else 1


def _placed(brief: Brief, book: Book, label: str, evidence: _Evidence) -> dict[Slot, dict[Sign, int]]:
    """The signs of a label by slot: the one they need, or the last one, or none where too much speaks against them."""
    last = last_slot(brief)
    placed: dict[Slot, dict[Sign, int]] = defaultdict(dict)
    for sign, count in evidence.counts[label].items():
        own = count + sum(n for _, of, n in evidence.right.get(sign, ()) if of == label)
        others = sum(counts[sign] for of, counts in evidence.counts.items() if of != label)
        for slot in dict.fromkeys((evidence.slots[label, sign], last)):
            lost = sum(n for at, of, n in evidence.right.get(sign, ()) if of != label and at >= slot.index)
            if others + lost + book.against(sign, label, slot.index) <= own * DOUBT:
                placed[slot][sign] = count
                break
    return placed


def _joined(edits: Iterable[Edit]) -> list[Edit]:
    """Equal edits as one, with their cures united and their support added; of two on one rule the better supported."""
    by_text: dict[tuple[object, ...], Edit] = {}
    for edit in edits:
        key = tuple(str(edit.get(name)) for name in ("op", "rule", "text", "after"))
        known = by_text.setdefault(key, {**edit, "cures": [], "support": 0})
        known["cures"] = list(dict.fromkeys([*_names(known["cures"]), *_names(edit.get("cures"))]))
        known["support"] = _support(known) + max(1, _support(edit, 1))
    best: dict[object, Edit] = {}
    for edit in sorted(by_text.values(), key=lambda e: -len(_names(e["cures"]))):
        best.setdefault(edit.get("rule") or edit.get("text"), edit)
    return list(best.values())


def _support(edit: Edit, missing: int = 0) -> int:
    value = edit.get("support", missing)
    return value if isinstance(value, int) else missing


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []
