"""Repairs of how rules decide together: an exception, a rule moved down, or the answer with the most signs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from skillc.models.rulebook.briefs import Brief, Case, SkillRule
from skillc.models.rulebook.edits import Edit, is_rejected
from skillc.models.rulebook.induce import Book, deciding, normals
from skillc.models.rulebook.sentences import applies, fired, read_sentence
from skillc.models.rulebook.wording import MAJORITY, rule_text

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
