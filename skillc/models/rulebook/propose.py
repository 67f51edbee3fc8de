"""Replies to a reflection and an aggregation: edits for failures, evidence from successes, lookups, merged patches."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from skillc.models.rulebook.briefs import Brief, Case, attributes_of, plain, value_of
from skillc.models.rulebook.edits import (
    Edit,
    edits_of,
    first_edits,
    format_edits,
    is_rejected,
    lapse_replies,
    lapses_of,
    marks_of,
    names,
    repairs,
    with_majority,
)
from skillc.models.rulebook.extract import Slot, label_view, slots_of, take_edits
from skillc.models.rulebook.induce import (
    PURE,
    Book,
    Item,
    Key,
    Seen,
    book_of,
    deciding,
    default_text,
    evidence_text,
    items_of,
    ordered_signs,
    read_evidence,
    rule_text,
)
from skillc.models.rulebook.reading import texts
from skillc.models.rulebook.sentences import Rule, normal, read_sentence

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
    """A default for a key where no rule applies: its most frequent value."""
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
    """The signs that right answers share: evidence for the merge, one edit for each field."""
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
    for name in brief.inputs:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for item in items_of(book, right, failed=False):
            if item.key[0] == name:
                counts[item.key[1]].update(item.counts)
        common = max(counts, key=lambda label: (max(counts[label].values(), default=0), label), default=None)
        if common is not None and counts[common]:
            signs = [sign for sign, _ in counts[common].most_common(_SHOWN)]
            add = {"op": "add", "section": brief.sections[0], "text": rule_text(name, signs, common), "after": "end"}
            cures = [case.tag for case in right]
            edits.append({**add, "rationale": right_text(counts), "cures": cures})
    return edits


def right_text(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Counts of right cases by answer and sign, as a merge reads them."""
    told = {label: {sign.strip(): n for sign, n in found.items()} for label, found in counts.items()}
    return RIGHT + json.dumps(told, ensure_ascii=False)


@dataclass(slots=True)
class _Heard:
    """Evidence and edits collected from the patches.

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
    group = read.signs if read else None
    if group is None or read is None or edit.get("op") not in ("add", "replace"):
        heard.others.append(dict(edit))
        return
    key = (group.field or brief.inputs[0], read.answer)
    if why.startswith(RIGHT):
        heard.tags.update(dict.fromkeys(cures))
        for label, counts in _right(why).items():
            heard.right[key[0]][label].update(counts)
            heard.items.append(Item((key[0], label), counts))
    else:
        stated = {sign: Seen(1, 1) for sign in group.triggers} | read_evidence(why)
        known = book.evidence.get(key, {})
        new = {sign: seen.own - known.get(sign, Seen()).own for sign, seen in stated.items()}
        counts = {sign: count for sign, count in new.items() if count > 0}
        if counts:
            heard.items.append(Item(key, counts, cures))
        if set(known) - set(group.triggers):
            heard.misled[key] += cures


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


_FOUND = re.compile(r"<found>\n(.*?)\n</found>", re.DOTALL)
_HIT = re.compile(r"<hit ([^>]*)>(.*?)</hit>", re.DOTALL)
_GOLD = re.compile(r"<gold>(.*?)</gold>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answered:
    """A search that was answered: its text, and the right answers of the cases with a full score that hold it."""

    text: str
    right: tuple[str, ...]


def answered_lookups(messages: Sequence[Mapping[str, object]], brief: Brief) -> list[Answered]:
    """The searches of a conversation so far, with their results."""
    found = [m[1] for text in texts(messages, "user")[1:] if (m := _FOUND.search(text))]
    asked = [query for text in texts(messages, "assistant") if (query := _query(text)) is not None]
    return [Answered(query, _right_answers(body, brief)) for query, body in zip(asked, found, strict=False)]


def _query(text: str) -> str | None:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return None
    lookup = value.get("lookup") if isinstance(value, Mapping) else None
    return str(lookup.get("text", "")) if isinstance(lookup, Mapping) else None


def _right_answers(body: str, brief: Brief) -> tuple[str, ...]:
    answers = []
    for attributes, text in _HIT.findall(body):
        gold = _GOLD.search(text)
        if attributes_of(attributes).get("score") == "1" and gold:
            answers.append(value_of(plain(gold[1]), brief.labels, ()) or "")
    return tuple(answers)


def with_lookups(brief: Brief, messages: Sequence[Mapping[str, object]], reply: dict[str, object]) -> dict[str, object]:
    """The reply to a reflection: a search for the first sign not looked up yet, or the remaining edits."""
    most = int(brief.request.get("lookups", "0"))
    done = answered_lookups(messages, brief)
    looked_up = {normal(each.text) for each in done}
    given = reply.get("edits")
    checked = [_checked(brief, edit, done) for edit in given] if isinstance(given, list) else []
    edits = [edit for edit in checked if edit is not None]
    open_ = [sign for edit in edits for sign in _signs(brief, edit) if sign not in looked_up]
    if open_ and len(done) < most:
        return {"lookup": {"op": "search", "text": open_[0].strip()}}
    return {**reply, "edits": edits}


def _signs(brief: Brief, edit: Mapping[str, object]) -> tuple[str, ...]:
    """The signs of a new rule that is a plain list of them."""
    rule = _added(brief, edit)
    return rule.signs.triggers if rule is not None and rule.signs else ()


def _added(brief: Brief, edit: Mapping[str, object]) -> Rule | None:
    """A new rule that is a plain list of signs."""
    rule = read_sentence(str(edit.get("text", "")), brief.inputs)
    return rule if edit.get("op") == "add" and rule is not None and rule.signs else None


def _checked(brief: Brief, edit: Edit, done: Sequence[Answered]) -> Edit | None:
    """The edit without the signs that right cases of other answers hold too often; None where no sign is left."""
    rule = _added(brief, edit)
    group = rule.signs if rule else None
    if group is None or rule is None:
        return edit
    seen = read_evidence(str(edit.get("rationale", "")))
    against = {normal(each.text): sum(answer != rule.answer for answer in each.right) for each in done}
    counts = {sign: seen.get(sign, Seen(1, 1)) + Seen(0, against.get(sign, 0)) for sign in group.triggers}
    kept = [sign for sign in group.triggers if counts[sign].own >= PURE * counts[sign].total]
    if len(kept) == len(group.triggers):
        return edit
    if not kept:
        return None
    text = rule_text(group.field or brief.inputs[0], ordered_signs(kept, counts), rule.answer)
    return {**edit, "text": text, "rationale": evidence_text({**seen, **counts})}
