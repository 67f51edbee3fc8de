"""Replies to a reflection and an aggregation: edits for failures, evidence from successes, lookups, merged patches."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from skillc.dataclass import dataclass
from skillc.json_values import parse_json
from skillc.models.rulebook.briefs import Brief, Case, elements, find_answer, plain
from skillc.models.rulebook.edits import (
    Edit,
    add_edit,
    cures_of,
    first_edits,
    format_edits,
    is_rejected,
    lapse_replies,
    lapses_of,
    marks_of,
    repairs,
    sign_edits,
    with_majority,
)
from skillc.models.rulebook.extract import AnswerPart, answer_parts, copy_edits, label_view
from skillc.models.rulebook.induce import (
    PURE,
    Key,
    Observation,
    SignCount,
    SignTable,
    deciding_line,
    default_text,
    evidence_text,
    observe,
    ordered_signs,
    read_evidence,
    read_sign_rule,
    rule_text,
    sign_table,
)
from skillc.models.rulebook.sentences import normal
from skillc.models.rulebook.target import Messages, texts

_RIGHT = "right where "
_SIGNS_PASSED_ON = 4
_FOUND = re.compile(r"<found>\n(.*?)\n</found>", re.DOTALL)
_GOLD = re.compile(r"<gold>(.*?)</gold>", re.DOTALL)


def reflect(brief: Brief) -> dict[str, object]:
    """Propose edits for one minibatch, with a summary in one sentence."""
    if not brief.sections or not brief.inputs:
        return {"summary": "no section may be edited", "edits": []}
    extra: dict[str, object] = {"marks": marks_of(brief)} if brief.request.get("marks") else {}
    if brief.request.get("kind") != "failures":
        edits = [edit for view in _label_views(brief) for edit in _evidence_edits(view)]
        return {"summary": "what the right answers had in common", "edits": edits[: brief.budget], **extra}
    lapses = lapses_of(brief) if brief.request.get("lapses") else []
    lapsed = {case.tag for _, _, cases in lapses for case in cases}
    known = [case for case in brief.cases if case.gold is not None and case.tag not in lapsed]
    edits = _failure_edits(brief, known)
    summary = "no right answer is known"
    for label, count in Counter(case.gold for case in known).most_common(1):
        summary = f"{label} was missed most, {count} of {len(known)}"
    if lapses:
        extra["lapses"] = lapse_replies(lapses)
    return {"summary": summary, "edits": first_edits(brief, edits, brief.budget), **extra}


def _failure_edits(brief: Brief, cases: list[Case]) -> list[Edit]:
    """Propose edits for every output, or key of a JSON output, those that cite most cases first."""
    if (len(brief.outputs) < 2 and brief.labels) or not brief.outputs:
        return _label_edits(brief, cases) if brief.labels else format_edits(brief, cases)
    edits: list[Edit] = []
    for part in answer_parts(brief):
        view = label_view(brief, part, cases) if part.kind in ("labels", "bool", "json") else None
        if view is not None:
            wrong = [case for case in view.cases if case.answer != case.gold]
            edits += [*_label_edits(view, wrong), *_default_edit(view, part, wrong)]
        elif part.kind not in ("labels", "bool"):
            edits += copy_edits(brief, cases, part.name, part.kind)
    if [kind for _, kind in brief.outputs] == ["text"]:
        edits += format_edits(brief, cases)
    return sorted(edits, key=lambda edit: -len(cures_of(edit)))


def _default_edit(view: Brief, part: AnswerPart, cases: Sequence[Case]) -> list[Edit]:
    """Propose the most frequent value of a key as its default."""
    if part.kind != "json" or any(rule.is_default for _, rule in view.lines) or not cases:
        return []
    label, _ = Counter(case.gold or "" for case in cases).most_common(1)[0]
    cures = [case.tag for case in cases if case.gold == label]
    edit = add_edit(view, default_text(label), f"right in {len(cures)} of {len(cases)} cases", cures)
    return [] if is_rejected(view, edit) else [edit]


def _label_edits(brief: Brief, cases: list[Case]) -> list[Edit]:
    """Propose rules for labels, and repairs of the order in which rules decide, those that cite most cases first."""
    table = sign_table(brief)
    edits = sign_edits(brief, table, observe(table, cases, failed=True), _misled(brief, table, cases), alone=True)
    edits += repairs(brief, table, cases)
    edits += [edit for edit in with_majority(brief, cases) if not is_rejected(brief, edit)]
    return sorted(edits, key=lambda edit: -len(cures_of(edit)))


def _misled(brief: Brief, table: SignTable, cases: Sequence[Case]) -> dict[Key, list[str]]:
    """Group cases by the rule that decides them wrongly."""
    by_id = {rule.id: key for key, rule in table.rules.items()}
    found: dict[Key, list[str]] = defaultdict(list)
    for case in cases:
        line = deciding_line(brief, case)
        if line and line[0] in by_id and line[1].answer != case.gold:
            found[by_id[line[0]]].append(case.tag)
    return found


def _label_views(brief: Brief) -> list[Brief]:
    if len(brief.outputs) < 2 and brief.labels:
        return [brief]
    parts = (part for part in answer_parts(brief) if part.kind in ("labels", "bool", "json"))
    return [view for part in parts if (view := label_view(brief, part, brief.cases)) is not None]


def _evidence_edits(brief: Brief) -> list[Edit]:
    """Pass on the signs that right answers share as evidence for the merge, one edit for each field."""
    table = sign_table(brief)
    right = [case for case in brief.cases if case.gold in brief.labels]
    counts: dict[str, dict[str, Counter[str]]] = {name: defaultdict(Counter) for name in brief.inputs}
    for each in observe(table, right, failed=False):
        if each.key[0] in counts:
            counts[each.key[0]][each.key[1]].update(each.counts)
    tags = [case.tag for case in right]
    return [_evidence_edit(brief, name, of_field, tags) for name, of_field in counts.items() if any(of_field.values())]


def _evidence_edit(brief: Brief, name: str, counts: Mapping[str, Counter[str]], cures: list[str]) -> Edit:
    """Write counts of right cases by label and sign as the rationale of an edit, which `_read` reads."""
    label = max(counts, key=lambda label: (max(counts[label].values(), default=0), label))
    signs = [sign for sign, _ in counts[label].most_common(_SIGNS_PASSED_ON)]
    stripped = {label: {sign.strip(): n for sign, n in found.items()} for label, found in counts.items()}
    return add_edit(brief, rule_text(name, signs, label), _RIGHT + json.dumps(stripped, ensure_ascii=False), cures)


@dataclass(slots=True)
class _Merge:
    """Evidence and edits of all patches; `right` counts right cases by field, label and sign."""

    observations: list[Observation] = field(default_factory=list)
    misled: dict[Key, list[str]] = field(default_factory=lambda: defaultdict(list))
    right: dict[str, dict[str, Counter[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Counter)))
    tags: dict[str, None] = field(default_factory=dict)
    others: list[Edit] = field(default_factory=list)


def aggregate(brief: Brief) -> dict[str, object]:
    """Merge several patches into one.

    A merge that sees right cases is the last one, so it writes only signs that two cases or more show.
    """
    table = sign_table(brief)
    merge = _Merge()
    for patch in brief.edits:
        for edit in patch:
            _read(brief, table, edit, merge)
    edits = sign_edits(brief, table, merge.observations, merge.misled, alone="successes" not in brief.kinds)
    edits += _join_equal(merge.others)
    edits.sort(key=lambda edit: -len(cures_of(edit)))
    if not edits and set(brief.kinds) == {"successes"}:
        tags = list(merge.tags)
        passed_on = (_evidence_edit(brief, name, counts, tags) for name, counts in merge.right.items())
        edits = [{**edit, "support": len(tags)} for edit in passed_on]
    return {"edits": first_edits(brief, edits, brief.budget)}


def _read(brief: Brief, table: SignTable, edit: Mapping[str, object], merge: _Merge) -> None:
    why, cures = str(edit.get("rationale", "")), tuple(cures_of(edit))
    found = read_sign_rule(brief, str(edit.get("text", "")))
    if found is None or edit.get("op") not in ("add", "replace"):
        merge.others.append(dict(edit))
        return
    key, signs = found
    if why.startswith(_RIGHT):
        merge.tags.update(dict.fromkeys(cures))
        for label, found_counts in parse_json(why.removeprefix(_RIGHT), {}).items():
            counts = {normal(sign): count for sign, count in found_counts.items()}
            merge.right[key[0]][label].update(counts)
            merge.observations.append(Observation((key[0], label), counts))
        return
    stated = dict.fromkeys(signs, SignCount(1, 1)) | read_evidence(why)
    known = table.evidence.get(key, {})
    new = {sign: seen.own - known.get(sign, SignCount()).own for sign, seen in stated.items()}
    counts = {sign: count for sign, count in new.items() if count > 0}
    if counts:
        merge.observations.append(Observation(key, counts, cures))
    if set(known) - set(signs):
        merge.misled[key] += cures


def _join_equal(edits: Iterable[Edit]) -> list[Edit]:
    """Join equal edits, uniting their cures and adding their support; keep the better supported of two on one rule."""
    by_text: dict[tuple[object, ...], Edit] = {}
    for edit in edits:
        key = tuple(str(edit.get(name)) for name in ("op", "rule", "text", "after"))
        known = by_text.setdefault(key, {**edit, "cures": [], "support": 0})
        known["cures"] = list(dict.fromkeys([*cures_of(known), *cures_of(edit)]))
        known["support"] = _support(known) + max(1, _support(edit, 1))
    best: dict[object, Edit] = {}
    for edit in sorted(by_text.values(), key=lambda edit: -len(cures_of(edit))):
        best.setdefault(edit.get("rule") or edit.get("text"), edit)
    return list(best.values())


def _support(edit: Edit, missing: int = 0) -> int:
    value = edit.get("support", missing)
    return value if isinstance(value, int) else missing


def with_lookups(brief: Brief, messages: Messages, reply: dict[str, object]) -> dict[str, object]:
    """Return a lookup of the first sign not looked up yet; without one, the reply with the edits that remain."""
    lookups = _answered_lookups(messages, brief)
    looked_up = {normal(text) for text, _ in lookups}
    proposed = reply.get("edits")
    checked = [_check(brief, edit, lookups) for edit in proposed] if isinstance(proposed, list) else []
    edits = [edit for edit in checked if edit is not None]
    open_signs = [sign for edit in edits for sign in (_added_rule(brief, edit) or ("", ()))[1] if sign not in looked_up]
    if open_signs and len(lookups) < int(brief.request.get("lookups", "0")):
        return {"lookup": {"op": "search", "text": open_signs[0].strip()}}
    return {**reply, "edits": edits}


def _answered_lookups(messages: Messages, brief: Brief) -> list[tuple[str, list[str]]]:
    """Return the texts searched so far, each with the right answers of the cases with a full score that contain it."""
    found = [m[1] for text in texts(messages, "user")[1:] if (m := _FOUND.search(text))]
    replies = [reply for text in texts(messages, "assistant") if isinstance(reply := parse_json(text), Mapping)]
    asked = [str(lookup.get("text", "")) for reply in replies if isinstance(lookup := reply.get("lookup"), Mapping)]
    answered = []
    for query, body in zip(asked, found, strict=False):
        golds = [_GOLD.search(text) for row, text in elements(body, "hit") if row.get("score") == "1"]
        answered.append((query, [find_answer(plain(gold[1]), brief.labels, ()) or "" for gold in golds if gold]))
    return answered


def _added_rule(brief: Brief, edit: Mapping[str, object]) -> tuple[Key, tuple[str, ...]] | None:
    return read_sign_rule(brief, str(edit.get("text", ""))) if edit.get("op") == "add" else None


def _check(brief: Brief, edit: Edit, lookups: Sequence[tuple[str, list[str]]]) -> Edit | None:
    """Drop the signs that right cases of other answers contain too often; return None if no sign is left."""
    found = _added_rule(brief, edit)
    if found is None:
        return edit
    (name, answer), signs = found
    seen = read_evidence(str(edit.get("rationale", "")))
    against = {normal(text): sum(other != answer for other in right) for text, right in lookups}
    counts = {sign: seen.get(sign, SignCount(1, 1)) + SignCount(0, against.get(sign, 0)) for sign in signs}
    kept = [sign for sign in signs if counts[sign].own >= PURE * counts[sign].total]
    if len(kept) == len(signs):
        return edit
    if not kept:
        return None
    text = rule_text(name, ordered_signs(kept, counts), answer)
    return {**edit, "text": text, "rationale": evidence_text({**seen, **counts})}
