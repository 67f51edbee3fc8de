"""Edits for failures: from evidence, as repairs of how rules decide together, and of an answer's form."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from skillc.models.rulebook.briefs import Brief, Case, SkillRule
from skillc.models.rulebook.induce import (
    MAJORITY,
    Book,
    Evidence,
    Item,
    Key,
    chosen_signs,
    deciding,
    evidence_text,
    gathered,
    normals,
    ordered_signs,
    rule_text,
    single_signs,
)
from skillc.models.rulebook.sentences import applies, fired, read_sentence
from skillc.models.rulebook.target import Format, formatted

Edit = dict[str, object]

MOST_SIGNS = 12
ENOUGH_CASES = 2  # that a sentence must get right before it is proposed
# Where the answer with the most signs wins, a rule is read whole and a weak sign does less harm.
MOST_COUNTED_SIGNS = 20
MOST_NEW_SIGNS = 4
MOST_NEW_COUNTED = 8
_TENTATIVE = 4
_TRIED_OFTEN = 3
_REMEMBERED = re.compile(r"^(\w+): (\d+) of (\d+) edits", re.MULTILINE)


def edits_of(
    brief: Brief, book: Book, items: Sequence[Item], misled: Mapping[Key, Sequence[str]], *, alone: bool
) -> list[Edit]:
    """For each answer the edit that brings its rule up to the evidence, those that cite most cases first.

    Args:
        brief: the prompt.
        book: the skill.
        items: what was seen.
        misled: cases that a rule decides wrongly, by what the rule is about.
        alone: whether a sign of a single case may be written where there is no better one, so that a merge
            learns of it.
    """
    evidence = gathered(book, items)
    failing: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        if item.cures:
            failing[item.key].append(item)
    edits = []
    for key in dict.fromkeys((*failing, *misled)):
        edit = _edit(brief, book, key, evidence.get(key, {}), failing[key], misled.get(key, ()), alone=alone)
        edits += [edit] if edit is not None else []
    return sorted(edits, key=lambda edit: -len(names(edit["cures"])))


def _edit(
    brief: Brief,
    book: Book,
    key: Key,
    evidence: Evidence,
    failing: Sequence[Item],
    misled: Sequence[str],
    *,
    alone: bool,
) -> Edit | None:
    rule = book.rules.get(key)
    old = book.signs[rule.id] if rule else ()
    most, new_ones = (MOST_COUNTED_SIGNS, MOST_NEW_COUNTED) if brief.majority else (MOST_SIGNS, MOST_NEW_SIGNS)
    signs = _gradually(chosen_signs(evidence, most), old, new_ones)
    if alone and not set(signs) - set(old):
        shown = [sign for item in failing for sign in item.counts]
        signs += [s for s in single_signs(evidence, shown, _TENTATIVE) if s not in signs]
    new = set(signs) - set(old)
    cures = _cited(failing, new) if new else []
    if set(old) - set(signs):
        cures += [tag for tag in misled if tag not in cures]
    if not cures:
        return None
    if not signs:
        return (
            {"op": "delete", "rule": rule.id, "rationale": f"misled: {len(misled)}", "cures": cures} if rule else None
        )
    while signs:
        text = rule_text(key[0], ordered_signs(signs, evidence), key[1])
        where = {"op": "replace", "rule": rule.id} if rule else {"op": "add", "section": brief.sections[0]}
        edit: Edit = {**where, "text": text}
        if not is_rejected(brief, edit) and not (rule and rule.text == text):
            place = {} if rule else {"after": "end"}
            return {**edit, **place, "rationale": evidence_text(evidence), "cures": cures, "support": len(cures)}
        signs.pop()
    return None


def _gradually(signs: Sequence[str], old: Sequence[str], most: int) -> list[str]:
    """The signs without the weakest new ones: what little evidence shows comes in step by step, past the gates."""
    new = [sign for sign in signs if sign not in old][:most]
    return [sign for sign in signs if sign in old or sign in new]


def _cited(failing: Sequence[Item], new: set[str]) -> list[str]:
    """The cases of the items that hold new signs, those that hold most of them first."""
    holding = sorted(failing, key=lambda item: -len(new & set(item.counts)))
    return list(dict.fromkeys(tag for item in holding if new & set(item.counts) for tag in item.cures))


def is_rejected(brief: Brief, edit: Mapping[str, object]) -> bool:
    """Whether the rejected-edit buffer holds this edit alone; a failed patch is weak evidence on its parts."""
    text = str(edit.get("text") or "")
    head = {
        "add": f"add to {edit.get('section')}: {text}",
        "replace": f"replace {edit.get('rule')}: {text}",
        "delete": f"delete {edit.get('rule')}",
        "move": f"move {edit.get('rule')} after {edit.get('after') or 'all others'}",
    }.get(str(edit.get("op")), text)
    return any(line == head or line.startswith(f"{head} (") for line in brief.rejected)


def first_edits(brief: Brief, edits: Sequence[Edit], budget: int) -> list[Edit]:
    """As many as the reply may hold, each text once; the kinds that its memory speaks against come last."""
    unique = {(edit["op"], edit.get("rule"), edit.get("text")): edit for edit in reversed(edits)}
    once = [edit for edit in edits if unique[edit["op"], edit.get("rule"), edit.get("text")] is edit]
    in_vain = ops_in_vain(brief.memory)
    return sorted(once, key=lambda edit: edit["op"] in in_vain)[:budget]


def ops_in_vain(memory: str) -> frozenset[str]:
    """The operations that were tried often enough and never accepted, by the memory that `meta_skill` writes."""
    counts = ((m[1], int(m[2]), int(m[3])) for m in _REMEMBERED.finditer(memory))
    return frozenset(op for op, accepted, tried in counts if accepted == 0 and tried >= _TRIED_OFTEN)


def names(value: object) -> list[str]:
    """The names in a list of an edit."""
    return [str(name) for name in value] if isinstance(value, list) else []


_FEWEST_RULES = 3
_MOST_EXCEPTIONS = 3


def repairs(brief: Brief, book: Book, cases: Sequence[Case]) -> list[Edit]:
    """For each rule that hides a right one, the mildest repair that cures a case, if there is any.

    Where the answer with the most signs wins, no rule hides another.
    """
    if brief.majority:
        return []
    wrong: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        line = deciding(brief, case)
        if line and line[0] in book.signs and line[1].answer != case.gold:
            wrong[line[0]].append(case)
    edits: list[Edit] = []
    for rule in brief.rules:
        if rule.id in wrong:
            edits += _repair(brief, rule, wrong[rule.id])
    return edits


def with_majority(brief: Brief, cases: Sequence[Case]) -> list[Edit]:
    """The sentence that makes the answer with the most signs win, where that cures a case."""
    if brief.majority or len({rule.answer for _, rule in brief.lines}) < _FEWEST_RULES:
        return []
    cured = _cured(replace(brief, majority=True), cases)
    if not cured:
        return []
    why = f"{len(cured)} cases that several rules apply to"
    add = {"op": "add", "section": brief.sections[0], "text": MAJORITY, "after": "start"}
    return [{**add, "rationale": why, "cures": cured}]


def _repair(brief: Brief, rule: SkillRule, cases: Sequence[Case]) -> list[Edit]:
    for edit, after in (_excepting(brief, rule, cases), _moving(brief, rule, cases)):
        if edit is None or after is None or is_rejected(brief, edit):
            continue
        cured = _cured(after, cases)
        if cured:
            return [{**edit, "cures": cured}]
    return []


def _cured(brief: Brief, cases: Sequence[Case]) -> list[str]:
    """The cases that a skill decides rightly."""
    found = ((case, deciding(brief, case)) for case in cases)
    return [case.tag for case, line in found if line is not None and line[1].answer == case.gold]


def _excepting(brief: Brief, rule: SkillRule, cases: Sequence[Case]) -> tuple[Edit | None, Brief | None]:
    """The rule with an exception for signs by which a later rule decides such cases rightly."""
    assert rule.read is not None
    found: dict[str, int] = defaultdict(int)
    for case in cases:
        inputs = normals(case)
        own = fired(rule.read, inputs)
        for name, later in brief.lines:
            if name != rule.id and later.answer == case.gold and not later.default and applies(later, inputs):
                for trigger in fired(later, inputs):
                    if not any(trigger in mine or mine in trigger for mine in own):
                        found[trigger] += 1
    if not found:
        return None, None
    signs = sorted(found, key=lambda t: (-found[t], t))[:_MOST_EXCEPTIONS]
    group = rule.read.groups[0]
    text = rule_text(group.field or brief.inputs[0], group.triggers, rule.read.answer, unless=signs)
    read = read_sentence(text, brief.inputs)
    if read is None:
        return None, None
    why = f"{rule.why}; not where: {', '.join(t.strip() for t in signs)}".lstrip("; ")
    lines = tuple((name, read if name == rule.id else old) for name, old in brief.lines)
    return {"op": "replace", "rule": rule.id, "text": text, "rationale": why}, replace(brief, lines=lines)


def _moving(brief: Brief, rule: SkillRule, cases: Sequence[Case]) -> tuple[Edit | None, Brief | None]:
    """The rule moved behind one that it hides."""
    after = [later for later in brief.rules[_at(brief, rule) + 1 :] if later.topic == rule.topic]
    for later in after:
        if later.read and any(later.read.answer == c.gold and applies(later.read, normals(c)) for c in cases):
            mine = [line for line in brief.lines if line[0] == rule.id]
            rest = [line for line in brief.lines if line[0] != rule.id]
            at = max(i for i, line in enumerate(rest) if line[0] == later.id) + 1
            edit: Edit = {"op": "move", "rule": rule.id, "after": later.id, "rationale": f"it hides {later.id}"}
            return edit, replace(brief, lines=(*rest[:at], *mine, *rest[at:]))
    return None, None


def _at(brief: Brief, rule: SkillRule) -> int:
    return next(i for i, other in enumerate(brief.rules) if other.id == rule.id)


def lapses_of(brief: Brief) -> list[tuple[str, str, list[Case]]]:
    """Cases that a rule decides rightly and that were answered otherwise, by rule: its id, its answer, the cases."""
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in brief.cases:
        line = deciding(brief, case)
        if line and line[0] and case.gold is not None and line[1].answer == case.gold != case.answer:
            found[line[0], line[1].answer].append(case)
    return [(rule, answer, cases) for (rule, answer), cases in found.items()]


def lapse_replies(found: Sequence[tuple[str, str, list[Case]]]) -> list[dict[str, object]]:
    """The lapses as a reply holds them, each with a reminder that is no rule itself."""
    return [
        {
            "rule": rule,
            "cases": [case.tag for case in cases],
            "reminder": f"Go through the rules once more before you answer: the one for {answer} gets passed over.",
        }
        for rule, answer, cases in found
    ]


def marks_of(brief: Brief) -> list[dict[str, object]]:
    """For each rule that decided a case: where its answer was the right one, and where it led to a wrong one."""
    helped: dict[str, list[str]] = defaultdict(list)
    misled: dict[str, list[str]] = defaultdict(list)
    for case in brief.cases:
        line = deciding(brief, case)
        if line is None or not line[0] or case.gold is None:
            continue
        if line[1].answer == case.gold:
            helped[line[0]].append(case.tag)
        elif line[1].answer == case.answer:
            misled[line[0]].append(case.tag)
    rules = dict.fromkeys((*helped, *misled))
    return [{"rule": rule, "helped": helped.get(rule, []), "misled": misled.get(rule, [])} for rule in rules]


_WORDS = ("one word", "two words", "three words")
# Sentences about the form of an answer, as `target.py` reads them.
FORMS: tuple[tuple[str, Format], ...] = (
    ("Answer in lower case.", ("lower", 0)),
    ("Answer in upper case.", ("upper", 0)),
    ("Answer without a full stop.", ("no_stop", 0)),
    ("Answer without an article.", ("no_article", 0)),
    ("Answer with the number only.", ("number", 0)),
    *((f"Answer with at most {words}.", ("words", count)) for count, words in enumerate(_WORDS, 1)),
)


def format_edits(brief: Brief, cases: list[Case]) -> list[Edit]:
    """One edit for each form that turns an answer into the right one, those that cure most first."""
    present = {rule.text for rule in brief.rules}
    edits: list[tuple[int, Edit]] = []
    for text, form in FORMS:
        cured = [case.tag for case in cases if case.answer != case.gold and formatted(case.answer, [form]) == case.gold]
        add: Edit = {"op": "add", "section": brief.sections[0], "text": text, "topic": "form", "after": "end"}
        if cured and text not in present and not is_rejected(brief, add):
            why = f"{len(cured)} of {len(cases)} wrong answers were right but for this"
            edits.append((len(cured), {**add, "rationale": why, "cures": cured}))
    return [edit for _, edit in sorted(edits, key=lambda item: -item[0])]
