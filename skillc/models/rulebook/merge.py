"""The reply to an aggregation: the signs of all patches counted together, the rules written anew."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from skillc.models.rulebook.briefs import Brief
from skillc.models.rulebook.edits import Edit, edits_of, first_edits, names
from skillc.models.rulebook.induce import Book, Item, Key, book_of
from skillc.models.rulebook.propose import RIGHT, right_text
from skillc.models.rulebook.sentences import Rule, normal, read_sentence
from skillc.models.rulebook.wording import Seen, read_evidence, rule_text


@dataclass(slots=True)
class _Heard:
    """What the patches say.

    Attributes:
        items: evidence of all patches.
        misled: cases that a rule decides wrongly.
        right: of right cases, by field, label and sign.
        tags: the right cases themselves.
        others: edits that are about no signs.
    """

    items: list[Item] = field(default_factory=list)
    misled: dict[Key, list[str]] = field(default_factory=lambda: defaultdict(list))
    right: dict[str, dict[str, Counter[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Counter)))
    tags: dict[str, None] = field(default_factory=dict)
    others: list[Edit] = field(default_factory=list)


def aggregate(brief: Brief) -> dict[str, object]:
    """One patch out of several.

    A merge that sees right cases is the last one, so it writes only signs that two cases or more show.
    """
    book = book_of(brief)
    heard = _Heard()
    for patch in brief.edits:
        for edit in patch:
            _read(brief, book, edit, heard)
    last = "successes" in brief.kinds
    edits = edits_of(brief, book, heard.items, heard.misled, alone=not last)
    edits += _joined(heard.others)
    edits.sort(key=lambda edit: -len(names(edit.get("cures"))))
    if not edits and set(brief.kinds) == {"successes"}:
        edits = _right_again(brief, heard)
    return {"edits": first_edits(brief, edits, brief.budget)}


def _read(brief: Brief, book: Book, edit: Mapping[str, object], heard: _Heard) -> None:
    why = str(edit.get("rationale", ""))
    read = read_sentence(str(edit.get("text", "")), brief.inputs)
    cures = tuple(names(edit.get("cures")))
    key = _key(brief, read)
    if key is None or read is None or edit.get("op") not in ("add", "replace"):
        heard.others.append(dict(edit))
    elif why.startswith(RIGHT):
        heard.tags.update(dict.fromkeys(cures))
        for label, counts in _right(why).items():
            heard.right[key[0]][label].update(counts)
            heard.items.append(Item((key[0], label), counts))
    else:
        stated = {sign: Seen(1, 1) for sign in read.groups[0].triggers} | read_evidence(why)
        known = book.evidence.get(key, {})
        new = {sign: seen.own - known.get(sign, Seen()).own for sign, seen in stated.items()}
        counts = {sign: count for sign, count in new.items() if count > 0}
        if counts:
            heard.items.append(Item(key, counts, cures))
        if set(known) - set(read.groups[0].triggers):
            heard.misled[key] += cures


def _key(brief: Brief, read: Rule | None) -> Key | None:
    """What a rule that is a plain list of signs is about."""
    if read is None or len(read.groups) != 1 or read.groups[0].negated or read.groups[0].kind != "mentions":
        return None
    return read.groups[0].field or brief.inputs[0], read.answer


def _right(why: str) -> dict[str, dict[str, int]]:
    try:
        told = json.loads(why.removeprefix(RIGHT))
    except json.JSONDecodeError:
        return {}
    return {label: {normal(sign): count for sign, count in counts.items()} for label, counts in told.items()}


def _right_again(brief: Brief, heard: _Heard) -> list[Edit]:
    """The evidence of right cases, passed on to the next merge."""
    edits: list[Edit] = []
    for name, counts in heard.right.items():
        label = max(counts, key=lambda label: (max(counts[label].values(), default=0), label))
        signs = [sign for sign, _ in counts[label].most_common(4)]
        text = rule_text(name, signs, label)
        add = {"op": "add", "section": brief.sections[0], "text": text, "after": "end"}
        edits.append({**add, "rationale": right_text(counts), "cures": list(heard.tags), "support": len(heard.tags)})
    return edits


def _joined(edits: Iterable[Edit]) -> list[Edit]:
    """Equal edits as one, with their cures united and their support added; of two on one rule the better supported."""
    by_text: dict[tuple[object, ...], Edit] = {}
    for edit in edits:
        key = tuple(str(edit.get(name)) for name in ("op", "rule", "text", "after"))
        known = by_text.setdefault(key, {**edit, "cures": [], "support": 0})
        known["cures"] = list(dict.fromkeys([*names(known["cures"]), *names(edit.get("cures"))]))
        known["support"] = _support(known) + max(1, _support(edit, 1))
    best: dict[object, Edit] = {}
    for edit in sorted(by_text.values(), key=lambda e: -len(names(e["cures"]))):
        best.setdefault(edit.get("rule") or edit.get("text"), edit)
    return list(best.values())


def _support(edit: Edit, missing: int = 0) -> int:
    value = edit.get("support", missing)
    return value if isinstance(value, int) else missing
