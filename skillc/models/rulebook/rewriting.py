"""Rewriting: the chosen edits are worked into a section, rules that give one answer become one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from skillc.models.rulebook.briefs import Brief, Case, SkillRule
from skillc.models.rulebook.edits import MOST_SIGNS
from skillc.models.rulebook.induce import Seen, book_of, evidence_text, ordered_signs, read_evidence, rule_text
from skillc.models.rulebook.propose import reflect
from skillc.models.rulebook.sentences import read_sentence
from skillc.tokens import count_tokens

_NEW = "new"
_UNSUPPORTED = re.compile(r"cured 0 and broke \d+ on validation$")


@dataclass(frozen=True, slots=True)
class _Line:
    """A rule on its way into the rewritten section; `id` is empty for a new one."""

    id: str
    topic: str
    text: str
    why: str


def rewrite(brief: Brief) -> dict[str, object]:
    """Each section that was asked for, with the edits that fit below its limit."""
    edits = brief.edits[0] if brief.edits else ()
    names = brief.request.get("sections", "").split()
    sections = []
    for name in names:
        old = [rule for rule in brief.rules if rule.section == name]
        lines = _joined(brief, _edited(brief, name, old, edits))
        if lines:
            sections.append({"section": name, "rules": [_reply(line, old) for line in lines]})
    return {"sections": sections}


def tidy(brief: Brief) -> dict[str, object]:
    """Each section without the rules that cured nothing, those that list signs of one answer joined."""
    kept = tuple(rule for rule in brief.rules if not _UNSUPPORTED.match(rule.support))
    return rewrite(replace(brief, rules=kept, edits=()))


def _reply(line: _Line, old: Sequence[SkillRule]) -> dict[str, object]:
    before = next((rule for rule in old if rule.id == line.id), None)
    if before is not None and before.text == line.text:
        return {"rule": line.id}
    reply: dict[str, object] = {"text": line.text, "topic": line.topic, "rationale": line.why}
    return {"rule": line.id, **reply} if line.id else reply


def _edited(brief: Brief, name: str, old: Sequence[SkillRule], edits: Sequence[Mapping[str, object]]) -> list[_Line]:
    """The section's lines after all edits that fit, one by one."""
    lines = [_Line(rule.id, rule.topic, rule.text, rule.why) for rule in old]
    limit = brief.limits.get(name)
    for edit in edits:
        after = _grouped(_after(lines, name, edit))
        if limit is None or _tokens(after) <= max(limit, _tokens(lines)):
            lines = after
    return lines


def _after(lines: Sequence[_Line], name: str, edit: Mapping[str, object]) -> list[_Line]:
    op, text, why = edit.get("op"), str(edit.get("text", "")), str(edit.get("rationale", ""))
    rule, after = str(edit.get("rule", "")), str(edit.get("after", ""))
    if op == "add" and edit.get("section") == name and all(line.text != text for line in lines):
        return _inserted(lines, _Line("", str(edit.get("topic", "")), text, why), after)
    own = next((line for line in lines if line.id == rule and rule), None)
    if own is None or op == "add":
        return list(lines)
    if op == "replace":
        return [replace(own, text=text, why=why or own.why) if line is own else line for line in lines]
    rest = [line for line in lines if line is not own]
    return _inserted(rest, own, after) if op == "move" else rest


def _inserted(lines: Sequence[_Line], line: _Line, after: str) -> list[_Line]:
    if after == "start":
        return [line, *lines]
    at = next((i for i, other in enumerate(lines, 1) if other.id == after and after), len(lines))
    return [*lines[:at], line, *lines[at:]]


def _grouped(lines: Sequence[_Line]) -> list[_Line]:
    """Lines of one topic together, those without a topic first, as a section holds them."""
    topics = dict.fromkeys(("", *(line.topic for line in lines)))
    return [line for topic in topics for line in lines if line.topic == topic]


def _tokens(lines: Sequence[_Line]) -> int:
    topics = {line.topic for line in lines if line.topic}
    return sum(count_tokens(f"- {line.text}") for line in lines) + sum(count_tokens(f"### {t}") for t in topics)


def _joined(brief: Brief, lines: Sequence[_Line]) -> list[_Line]:
    """Lists of signs in one field for one answer become one rule, at the place of the first."""
    joined: list[_Line] = []
    for line in lines:
        both = ((i, _both(brief, other, line)) for i, other in enumerate(joined))
        at, one = next(((i, found) for i, found in both if found is not None), (0, None))
        if one is None:
            joined.append(line)
        else:
            joined[at] = one
    return joined


def _both(brief: Brief, first: _Line, second: _Line) -> _Line | None:
    one, other = _signs(brief, first), _signs(brief, second)
    if first.topic != second.topic or one is None or other is None or one[:2] != other[:2]:
        return None
    field, answer, signs = one
    every = list(dict.fromkeys((*signs, *other[2])))
    if len(every) > MOST_SIGNS:
        return None
    counts = dict.fromkeys(every, Seen(1, 1)) | read_evidence(first.why)
    for sign, seen in read_evidence(second.why).items():
        counts[sign] = max(counts.get(sign, Seen()), seen, key=lambda s: s.total)
    text = rule_text(field, ordered_signs(every, counts), answer)
    return _Line(first.id or second.id, first.topic, text, evidence_text(counts))


def _signs(brief: Brief, line: _Line) -> tuple[str, str, tuple[str, ...]] | None:
    """The field, the answer and the signs of a rule that is a plain list of signs."""
    alone = SkillRule(_NEW, "", line.topic, line.text, line.why, read_sentence(line.text, brief.inputs))
    book = book_of(replace(brief, rules=(alone,)))
    signs = book.signs.get(_NEW)
    if not signs:
        return None
    ((field, answer),) = book.rules
    return field, answer, signs


_MOST_EDITS = 99


@dataclass(frozen=True, slots=True)
class Line:
    """One rule of a text. `id` is empty for a new one, `why` for one that stays."""

    id: str
    topic: str
    text: str
    why: str = ""


def one_shot(brief: Brief) -> dict[str, object]:
    """New texts of the sections that an edit touches."""
    edits, changed = edits_for(brief), {}
    for name in brief.sections:
        lines = tuple(Line(rule.id, rule.topic, rule.text) for rule in brief.rules if rule.section == name)
        after = edited(lines, edits, name)
        if after != lines:
            changed[name] = written(after)
    return {"sections": changed}


def draft(brief: Brief) -> dict[str, object]:
    """Each section with the edits for its failures and for the further cases, which nobody has answered."""
    edits = edits_for(brief, tuple(case for case in brief.further if case.gold is not None))
    sections = []
    for name in brief.request.get("sections", "").split():
        old = {rule.id: rule.text for rule in brief.rules if rule.section == name}
        lines = tuple(Line(rule.id, rule.topic, rule.text) for rule in brief.rules if rule.section == name)
        rules = [_rule(line, old) for line in edited(lines, edits, name)]
        if rules:
            sections.append({"section": name, "rules": rules})
    return {"sections": sections}


def _rule(line: Line, old: Mapping[str, str]) -> dict[str, object]:
    if line.id and old[line.id] == line.text:
        return {"rule": line.id}
    new: dict[str, object] = {"text": line.text, "topic": line.topic, "rationale": line.why}
    return {"rule": line.id, **new} if line.id else new


def edits_for(brief: Brief, further: Sequence[Case] = ()) -> list[Mapping[str, object]]:
    """What a reflection on the wrong answers alone would propose, with further cases taken for wrong ones."""
    failing = (*(case for case in brief.cases if wrong(case)), *further)
    proposed = reflect(replace(brief, cases=failing, request={"kind": "failures", "edits": str(_MOST_EDITS)}))
    edits = proposed["edits"]
    return list(edits) if isinstance(edits, list) else []


def wrong(case: Case) -> bool:
    """Whether the right answer is known, and was not given."""
    return case.gold is not None and case.answer != case.gold


def edited(lines: Sequence[Line], edits: Sequence[Mapping[str, object]], section: str) -> tuple[Line, ...]:
    """The rules of a section after edits; what names no rule of it is left out."""
    after = list(lines)
    for edit in edits:
        text, why = str(edit.get("text", "")), str(edit.get("rationale", ""))
        at = next((i for i, line in enumerate(after) if line.id and line.id == edit.get("rule")), None)
        if edit["op"] == "add" and edit.get("section") == section:
            after.insert(_place(after, edit.get("after")), Line("", str(edit.get("topic") or ""), text, why))
        elif edit["op"] == "replace" and at is not None:
            after[at] = replace(after[at], text=text, why=why)
        elif edit["op"] == "delete" and at is not None:
            del after[at]
        elif edit["op"] == "move" and at is not None:
            line = after.pop(at)
            after.insert(_place(after, edit.get("after")), line)
    return tuple(after)


def _place(lines: Sequence[Line], after: object) -> int:
    if after == "start":
        return 0
    found = next((i for i, line in enumerate(lines) if line.id and line.id == after), None)
    return len(lines) if found is None else found + 1


def written(lines: Sequence[Line]) -> str:
    """The rules as markdown, those without a topic first, then topic by topic."""
    blocks = []
    for topic in dict.fromkeys(["", *(line.topic for line in lines)]):
        rules = [f"- {line.text}" for line in lines if line.topic == topic]
        if rules:
            blocks.append("\n".join([f"### {topic}", "", *rules] if topic else rules))
    return "\n\n".join(blocks)
