"""Edits for failures: from evidence, as repairs of how rules decide together, and of an answer's format."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from skillc.models.rulebook.briefs import Brief, Case, SkillRule
from skillc.models.rulebook.induce import (
    MAJORITY,
    Evidence,
    Key,
    Observation,
    SignCount,
    SignTable,
    best_signs,
    deciding_line,
    evidence_text,
    gather,
    ordered_signs,
    rule_text,
)
from skillc.models.rulebook.sentences import applies, fired, read_sentence
from skillc.models.rulebook.target import Format, formatted

Edit = dict[str, object]

MOST_SIGNS = 12
ENOUGH_CASES = 2  # cases that a sentence must get right before it is proposed
_MOST_NEW_SIGNS = 4
# If the answer with the most signs wins, a rule is read whole and a weak sign does less harm.
_MOST_COUNTED_SIGNS, _MOST_NEW_COUNTED = 20, 8
_TENTATIVE = 4
_TRIED_OFTEN = 3
_FEWEST_RULES = 3
_MOST_EXCEPTIONS = 3
_REMEMBERED = re.compile(r"^(\w+): (\d+) of (\d+) edits", re.MULTILINE)
_WORDS = ("one word", "two words", "three words")
# Sentences about the format of an answer, as `target.py` reads them.
_FORMATS: tuple[tuple[str, Format], ...] = (
    ("Answer in lower case.", ("lower", 0)),
    ("Answer in upper case.", ("upper", 0)),
    ("Answer without a full stop.", ("no_stop", 0)),
    ("Answer without an article.", ("no_article", 0)),
    ("Answer with the number only.", ("number", 0)),
    *((f"Answer with at most {words}.", ("words", count)) for count, words in enumerate(_WORDS, 1)),
)


def add_edit(brief: Brief, text: str, rationale: str, cures: list[str], after: str = "end") -> Edit:
    """Return the edit that adds a rule to the first section."""
    add = {"op": "add", "section": brief.sections[0], "text": text, "after": after}
    return {**add, "rationale": rationale, "cures": cures}


def cures_of(edit: Mapping[str, object]) -> list[str]:
    """Return the cases that an edit cites."""
    cures = edit.get("cures")
    return [str(name) for name in cures] if isinstance(cures, list) else []


def sign_edits(
    brief: Brief,
    table: SignTable,
    observations: Sequence[Observation],
    misled: Mapping[Key, Sequence[str]],
    *,
    alone: bool,
) -> list[Edit]:
    """Return for each answer the edit that updates its rule to the evidence, those that cite most cases first.

    `misled` are the cases that each rule decides wrongly. With `alone`, a sign of a single case is proposed if there is
    no better one, so that a merge sees it.
    """
    evidence = gather(table, observations)
    failing: dict[Key, list[Observation]] = defaultdict(list)
    for each in observations:
        if each.cures:
            failing[each.key].append(each)
    edits = []
    for key in dict.fromkeys((*failing, *misled)):
        edit = _sign_edit(brief, table, key, evidence.get(key, {}), failing[key], misled.get(key, ()), alone=alone)
        edits += [edit] if edit is not None else []
    return sorted(edits, key=lambda edit: -len(cures_of(edit)))


def _sign_edit(
    brief: Brief,
    table: SignTable,
    key: Key,
    evidence: Evidence,
    failing: Sequence[Observation],
    misled: Sequence[str],
    *,
    alone: bool,
) -> Edit | None:
    rule = table.rules.get(key)
    old = table.signs[rule.id] if rule else ()
    most, most_new = (_MOST_COUNTED_SIGNS, _MOST_NEW_COUNTED) if brief.majority else (MOST_SIGNS, _MOST_NEW_SIGNS)
    signs = best_signs(evidence, most)
    # Few new signs at a time, so that a gate can tell good ones from bad ones.
    new = [sign for sign in signs if sign not in old][:most_new]
    signs = [sign for sign in signs if sign in old or sign in new]
    if alone and not new:
        seen_once = {sign for each in failing for sign in each.counts if evidence[sign] == SignCount(1, 1)}
        longest = sorted(seen_once, key=lambda sign: (-len(sign), sign))[:_TENTATIVE]
        signs += [sign for sign in longest if sign not in signs]
    added = set(signs) - set(old)
    cures = _cite(failing, added) if added else []
    if set(old) - set(signs):
        cures += [tag for tag in misled if tag not in cures]
    if not cures:
        return None
    if not signs:
        rationale = f"misled: {len(misled)}"
        return {"op": "delete", "rule": rule.id, "rationale": rationale, "cures": cures} if rule else None
    while signs:
        text = rule_text(key[0], ordered_signs(signs, evidence), key[1])
        where = {"op": "replace", "rule": rule.id} if rule else {"op": "add", "section": brief.sections[0]}
        edit: Edit = {**where, "text": text}
        if not is_rejected(brief, edit) and not (rule and rule.text == text):
            place = {} if rule else {"after": "end"}
            return {**edit, **place, "rationale": evidence_text(evidence), "cures": cures, "support": len(cures)}
        signs.pop()
    return None


def _cite(failing: Sequence[Observation], new: set[str]) -> list[str]:
    """Return the cases that contain new signs, those with most of them first."""
    by_signs = sorted(failing, key=lambda each: -len(new & set(each.counts)))
    return list(dict.fromkeys(tag for each in by_signs if new & set(each.counts) for tag in each.cures))


def is_rejected(brief: Brief, edit: Mapping[str, object]) -> bool:
    """Whether the rejected-edit buffer contains this edit alone; a failed patch is weak evidence against its parts."""
    text = str(edit.get("text") or "")
    head = {
        "add": f"add to {edit.get('section')}: {text}",
        "replace": f"replace {edit.get('rule')}: {text}",
        "delete": f"delete {edit.get('rule')}",
        "move": f"move {edit.get('rule')} after {edit.get('after') or 'all others'}",
    }.get(str(edit.get("op")), text)
    return any(line == head or line.startswith(f"{head} (") for line in brief.rejected)


def first_edits(brief: Brief, edits: Sequence[Edit], budget: int) -> list[Edit]:
    """Return the first unique edits up to the budget; operations without success in the memory come last."""
    unique = {(edit["op"], edit.get("rule"), edit.get("text")): edit for edit in reversed(edits)}
    once = [edit for edit in edits if unique[edit["op"], edit.get("rule"), edit.get("text")] is edit]
    counts = ((m[1], int(m[2]), int(m[3])) for m in _REMEMBERED.finditer(brief.memory))
    unsuccessful = {op for op, accepted, tried in counts if accepted == 0 and tried >= _TRIED_OFTEN}
    return sorted(once, key=lambda edit: edit["op"] in unsuccessful)[:budget]


def repairs(brief: Brief, table: SignTable, cases: Sequence[Case]) -> list[Edit]:
    """Return for each rule that hides a right one the mildest repair that cures a case, if any.

    If the answer with the most signs wins, no rule hides another.
    """
    if brief.majority:
        return []
    wrong: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        line = deciding_line(brief, case)
        if line and line[0] in table.signs and line[1].answer != case.gold:
            wrong[line[0]].append(case)
    return [edit for rule in brief.rules if rule.id in wrong for edit in _repair(brief, rule, wrong[rule.id])]


def with_majority(brief: Brief, cases: Sequence[Case]) -> list[Edit]:
    """Propose that the answer with the most signs wins, if that cures a case."""
    if brief.majority or len({rule.answer for _, rule in brief.lines}) < _FEWEST_RULES:
        return []
    cured = _cured(replace(brief, majority=True), cases)
    if not cured:
        return []
    why = f"{len(cured)} cases that several rules apply to"
    return [add_edit(brief, MAJORITY, why, cured, after="start")]


def _repair(brief: Brief, rule: SkillRule, cases: Sequence[Case]) -> list[Edit]:
    for repair in (_add_exception(brief, rule, cases), _move_down(brief, rule, cases)):
        if repair is not None and not is_rejected(brief, repair[0]):
            edit, after = repair
            cured = _cured(after, cases)
            if cured:
                return [{**edit, "cures": cured}]
    return []


def _cured(brief: Brief, cases: Sequence[Case]) -> list[str]:
    """Return the cases that a skill decides correctly."""
    found = ((case, deciding_line(brief, case)) for case in cases)
    return [case.tag for case, line in found if line is not None and line[1].answer == case.gold]


def _add_exception(brief: Brief, rule: SkillRule, cases: Sequence[Case]) -> tuple[Edit, Brief] | None:
    """Except the signs by which another rule decides such cases correctly; return the edit and the skill after it."""
    assert rule.read is not None
    found: dict[str, int] = defaultdict(int)
    for case in cases:
        inputs = case.normal_inputs()
        own = fired(rule.read, inputs)
        for name, later in brief.lines:
            if name != rule.id and later.answer == case.gold and not later.is_default and applies(later, inputs):
                for trigger in fired(later, inputs):
                    if not any(trigger in mine or mine in trigger for mine in own):
                        found[trigger] += 1
    if not found:
        return None
    signs = sorted(found, key=lambda t: (-found[t], t))[:_MOST_EXCEPTIONS]
    clause = rule.read.clauses[0]
    text = rule_text(clause.field or brief.inputs[0], clause.triggers, rule.read.answer, unless=signs)
    read = read_sentence(text, brief.inputs)
    if read is None:
        return None
    why = f"{rule.why}; not where: {', '.join(t.strip() for t in signs)}".lstrip("; ")
    lines = tuple((name, read if name == rule.id else old) for name, old in brief.lines)
    return {"op": "replace", "rule": rule.id, "text": text, "rationale": why}, replace(brief, lines=lines)


def _move_down(brief: Brief, rule: SkillRule, cases: Sequence[Case]) -> tuple[Edit, Brief] | None:
    """Move a rule after one that it hides; return the edit and the skill after it."""
    at = next(i for i, other in enumerate(brief.rules) if other.id == rule.id)
    for later in (later for later in brief.rules[at + 1 :] if later.topic == rule.topic):
        if later.read and any(later.read.answer == c.gold and applies(later.read, c.normal_inputs()) for c in cases):
            mine = [line for line in brief.lines if line[0] == rule.id]
            rest = [line for line in brief.lines if line[0] != rule.id]
            end = max(i for i, line in enumerate(rest) if line[0] == later.id) + 1
            edit: Edit = {"op": "move", "rule": rule.id, "after": later.id, "rationale": f"it hides {later.id}"}
            return edit, replace(brief, lines=(*rest[:end], *mine, *rest[end:]))
    return None


def lapses_of(brief: Brief) -> list[tuple[str, str, list[Case]]]:
    """Group cases that a rule decides correctly and that were answered otherwise: rule id, answer, cases."""
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in brief.cases:
        line = deciding_line(brief, case)
        if line and line[0] and case.gold is not None and line[1].answer == case.gold != case.answer:
            found[line[0], line[1].answer].append(case)
    return [(rule, answer, cases) for (rule, answer), cases in found.items()]


def lapse_replies(found: Sequence[tuple[str, str, list[Case]]]) -> list[dict[str, object]]:
    """Write the lapses for a reply, each with a reminder, which is not a rule."""
    return [
        {
            "rule": rule,
            "cases": [case.tag for case in cases],
            "reminder": f"Go through the rules once more before you answer: the one for {answer} gets passed over.",
        }
        for rule, answer, cases in found
    ]


def marks_of(brief: Brief) -> list[dict[str, object]]:
    """Mark each rule that decided a case: the cases it helped, and those it misled."""
    helped: dict[str, list[str]] = defaultdict(list)
    misled: dict[str, list[str]] = defaultdict(list)
    for case in brief.cases:
        line = deciding_line(brief, case)
        if line is None or not line[0] or case.gold is None:
            continue
        if line[1].answer == case.gold:
            helped[line[0]].append(case.tag)
        elif line[1].answer == case.answer:
            misled[line[0]].append(case.tag)
    rules = dict.fromkeys((*helped, *misled))
    return [{"rule": rule, "helped": helped.get(rule, []), "misled": misled.get(rule, [])} for rule in rules]


def format_edits(brief: Brief, cases: list[Case]) -> list[Edit]:
    """Propose each format that turns an answer into the right one, those that cure most first."""
    present = {rule.text for rule in brief.rules}
    edits: list[tuple[int, Edit]] = []
    for text, form in _FORMATS:
        cured = [case.tag for case in cases if case.answer != case.gold and formatted(case.answer, [form]) == case.gold]
        add: Edit = {"op": "add", "section": brief.sections[0], "text": text, "topic": "form", "after": "end"}
        if cured and text not in present and not is_rejected(brief, add):
            why = f"{len(cured)} of {len(cases)} wrong answers were right but for this"
            edits.append((len(cured), {**add, "rationale": why, "cures": cured}))
    return [edit for _, edit in sorted(edits, key=lambda item: -item[0])]
