"""Repairs of rules that decided wrongly: a sign dropped, a rule deleted, an exception made, a rule moved down."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from skillc.models.rulebook.briefs import Brief, Case, SkillRule
from skillc.models.rulebook.edits import Edit, is_rejected
from skillc.models.rulebook.induce import Book, deciding, normals
from skillc.models.rulebook.sentences import Rule, applies, fired, read_sentence
from skillc.models.rulebook.slots import CLEAR
from skillc.models.rulebook.wording import evidence_text, ordered_signs, rule_text

Lines = Sequence[tuple[str, Rule]]


def repairs(brief: Brief, book: Book, cases: Sequence[Case]) -> list[Edit]:
    """For each rule that decided cases wrongly, the mildest repair that turns one of them right, if there is any."""
    wrong: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        line = deciding(brief.lines, normals(case))
        if line and line[0] in book.signs and line[1].answer != case.gold:
            wrong[line[0]].append(case)
    edits: list[Edit] = []
    for rule in brief.rules:
        if rule.id in wrong:
            edits += _repair(brief, book, rule, wrong[rule.id])
    return edits


def _repair(brief: Brief, book: Book, rule: SkillRule, cases: Sequence[Case]) -> list[Edit]:
    for edit, lines in (
        _dropping(brief, book, rule, cases),
        _excepting(brief, rule, cases),
        _moving(brief, rule, cases),
    ):
        if edit is None or is_rejected(brief, str(edit.get("text", f"{edit['op']} {rule.id}"))):
            continue
        cured = [case.tag for case in cases if _right(lines, case)]
        if cured:
            return [{**edit, "cures": cured}]
    return []


def _right(lines: Lines, case: Case) -> bool:
    line = deciding(lines, normals(case))
    return line is not None and line[1].answer == case.gold


def _dropping(brief: Brief, book: Book, rule: SkillRule, cases: Sequence[Case]) -> tuple[Edit | None, Lines]:
    """The rule without the signs that misled more often than they were seen to help; deleted if none is left."""
    assert rule.read is not None
    misled: dict[str, int] = defaultdict(int)
    for case in cases:
        for trigger in fired(rule.read, normals(case)):
            misled[trigger] += 1
    seen = book.seen[rule.id]
    kept = [sign.trigger for sign in book.signs[rule.id] if misled[sign.trigger] < max(1, seen[sign.trigger])]
    if len(kept) == len(book.signs[rule.id]):
        return None, ()
    dropped = ", ".join(f'"{t.strip()}" {n}' for t, n in sorted(misled.items()) if t not in kept)
    if not kept:
        edit: Edit = {"op": "delete", "rule": rule.id, "rationale": f"misled: {dropped}"}
        return edit, [line for line in brief.lines if line[0] != rule.id]
    total = {trigger: max(1, seen[trigger]) for trigger in kept}
    text = rule_text(book.signs[rule.id][0].field, ordered_signs(kept, total), rule.read.answer)
    return _replacing(brief, rule, text, f"{evidence_text(total)}; misled: {dropped}")


def _excepting(brief: Brief, rule: SkillRule, cases: Sequence[Case]) -> tuple[Edit | None, Lines]:
    """The rule with an exception for signs by which a later rule gets such cases right."""
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
        return None, ()
    signs = sorted(found, key=lambda t: (-found[t], t))[:3]
    group = rule.read.groups[0]
    field = group.field or brief.inputs[0]
    text = rule_text(field, group.triggers, rule.read.answer, unless=signs)
    return _replacing(brief, rule, text, f"{rule.why}; not where: {', '.join(t.strip() for t in signs)}".lstrip("; "))


def _moving(brief: Brief, rule: SkillRule, cases: Sequence[Case]) -> tuple[Edit | None, Lines]:
    """The rule moved behind a clear one that it shadows."""
    after = [later for later in brief.rules[_at(brief, rule) + 1 :] if later.topic == rule.topic == CLEAR]
    for later in after:
        if later.read and any(later.read.answer == c.gold and applies(later.read, normals(c)) for c in cases):
            mine = [line for line in brief.lines if line[0] == rule.id]
            rest = [line for line in brief.lines if line[0] != rule.id]
            at = max(i for i, line in enumerate(rest) if line[0] == later.id) + 1
            edit: Edit = {"op": "move", "rule": rule.id, "after": later.id, "rationale": f"it hides {later.id}"}
            return edit, [*rest[:at], *mine, *rest[at:]]
    return None, ()


def _at(brief: Brief, rule: SkillRule) -> int:
    return next(i for i, other in enumerate(brief.rules) if other.id == rule.id)


def _replacing(brief: Brief, rule: SkillRule, text: str, why: str) -> tuple[Edit | None, Lines]:
    read = read_sentence(text, brief.inputs)
    if read is None:
        return None, ()
    edit: Edit = {"op": "replace", "rule": rule.id, "text": text, "rationale": why}
    return edit, [(name, read if name == rule.id else old) for name, old in brief.lines]
