"""Replies that hold whole sections: rewrites, drafts and single rewrites are the present rules with edits applied."""

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
_MOST_EDITS = 99
_UNSUPPORTED = re.compile(r"cured 0 and broke \d+ on validation$")


@dataclass(frozen=True, slots=True)
class Line:
    """A rule of a section while it is rewritten; `id` is empty for a new one."""

    id: str
    topic: str
    text: str
    why: str = ""


def rewrite(brief: Brief) -> dict[str, object]:
    """Rewrite each requested section with the edits that fit below its limit."""
    edits = brief.edits[0] if brief.edits else ()
    sections = []
    for name, old in _requested(brief):
        lines = [Line(rule.id, rule.topic, rule.text, rule.why) for rule in old]
        limit = brief.limits.get(name)
        for edit in edits:
            after = _grouped(_after(lines, name, edit))
            if limit is None or _tokens(after) <= max(limit, _tokens(lines)):
                lines = after
        sections.append(_section(name, _joined(brief, lines), old))
    return {"sections": [section for section in sections if section["rules"]]}


def tidy(brief: Brief) -> dict[str, object]:
    """Rewrite each section without the rules that cured nothing; join those that list signs of one answer."""
    kept = tuple(rule for rule in brief.rules if not _UNSUPPORTED.match(rule.support))
    return rewrite(replace(brief, rules=kept, edits=()))


def draft(brief: Brief) -> dict[str, object]:
    """Write each section with the edits for its failures and for the further cases, which have no answer yet."""
    edits = edits_for(brief, tuple(case for case in brief.further if case.gold is not None))
    sections = [_section(name, edited(_lines(old), edits, name), old) for name, old in _requested(brief)]
    return {"sections": [section for section in sections if section["rules"]]}


def one_shot(brief: Brief) -> dict[str, object]:
    """Write the texts of the sections that an edit changes."""
    edits, changed = edits_for(brief), {}
    for name in brief.sections:
        lines = _lines([rule for rule in brief.rules if rule.section == name])
        after = edited(lines, edits, name)
        if after != lines:
            changed[name] = written(after)
    return {"sections": changed}


def edits_for(brief: Brief, further: Sequence[Case] = ()) -> list[Mapping[str, object]]:
    """The edits of a reflection on the wrong answers alone, with further cases taken for wrong ones."""
    wrong = [case for case in brief.cases if case.gold is not None and case.answer != case.gold]
    request = {"kind": "failures", "edits": str(_MOST_EDITS)}
    edits = reflect(replace(brief, cases=(*wrong, *further), request=request))["edits"]
    return list(edits) if isinstance(edits, list) else []


def edited(lines: Sequence[Line], edits: Sequence[Mapping[str, object]], section: str) -> list[Line]:
    """The rules of a section after edits; an edit that names no rule of it is left out."""
    after = list(lines)
    for edit in edits:
        after = _after(after, section, edit)
    return after


def written(lines: Sequence[Line]) -> str:
    """The rules as markdown, those without a topic first, then topic by topic."""
    blocks = []
    for topic in dict.fromkeys(["", *(line.topic for line in lines)]):
        rules = [f"- {line.text}" for line in lines if line.topic == topic]
        if rules:
            blocks.append("\n".join([f"### {topic}", "", *rules] if topic else rules))
    return "\n\n".join(blocks)


def _requested(brief: Brief) -> list[tuple[str, list[SkillRule]]]:
    names = brief.request.get("sections", "").split()
    return [(name, [rule for rule in brief.rules if rule.section == name]) for name in names]


def _lines(rules: Sequence[SkillRule]) -> list[Line]:
    return [Line(rule.id, rule.topic, rule.text) for rule in rules]


def _section(name: str, lines: Sequence[Line], old: Sequence[SkillRule]) -> dict[str, object]:
    """A section of a reply: rules that stay by their ids, others in full."""
    texts = {rule.id: rule.text for rule in old}
    rules: list[dict[str, object]] = []
    for line in lines:
        kept: dict[str, object] = {"rule": line.id} if line.id else {}
        new = {"text": line.text, "topic": line.topic, "rationale": line.why}
        rules.append(kept if line.id and texts.get(line.id) == line.text else {**kept, **new})
    return {"section": name, "rules": rules}


def _after(lines: Sequence[Line], section: str, edit: Mapping[str, object]) -> list[Line]:
    op, text, why = edit.get("op"), str(edit.get("text", "")), str(edit.get("rationale", ""))
    rule, after = str(edit.get("rule", "")), str(edit.get("after", ""))
    if op == "add" and edit.get("section") == section and all(line.text != text for line in lines):
        return _inserted(lines, Line("", str(edit.get("topic") or ""), text, why), after)
    own = next((line for line in lines if line.id == rule and rule), None)
    if own is None or op == "add":
        return list(lines)
    if op == "replace":
        return [replace(own, text=text, why=why or own.why) if line is own else line for line in lines]
    rest = [line for line in lines if line is not own]
    return _inserted(rest, own, after) if op == "move" else rest


def _inserted(lines: Sequence[Line], line: Line, after: str) -> list[Line]:
    if after == "start":
        return [line, *lines]
    at = next((i for i, other in enumerate(lines, 1) if other.id == after and after), len(lines))
    return [*lines[:at], line, *lines[at:]]


def _grouped(lines: Sequence[Line]) -> list[Line]:
    """Lines of one topic together, those without a topic first, as a section holds them."""
    topics = dict.fromkeys(("", *(line.topic for line in lines)))
    return [line for topic in topics for line in lines if line.topic == topic]


def _tokens(lines: Sequence[Line]) -> int:
    topics = {line.topic for line in lines if line.topic}
    return sum(count_tokens(f"- {line.text}") for line in lines) + sum(count_tokens(f"### {t}") for t in topics)


def _joined(brief: Brief, lines: Sequence[Line]) -> list[Line]:
    """Lists of signs in one field for one answer become one rule, at the place of the first."""
    joined: list[Line] = []
    for line in lines:
        both = ((i, _both(brief, other, line)) for i, other in enumerate(joined))
        at, one = next(((i, found) for i, found in both if found is not None), (0, None))
        if one is None:
            joined.append(line)
        else:
            joined[at] = one
    return joined


def _both(brief: Brief, first: Line, second: Line) -> Line | None:
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
    return Line(first.id or second.id, first.topic, text, evidence_text(counts))


def _signs(brief: Brief, line: Line) -> tuple[str, str, tuple[str, ...]] | None:
    """The field, the answer and the signs of a rule that is a plain list of signs."""
    alone = SkillRule(_NEW, "", line.topic, line.text, line.why, read_sentence(line.text, brief.inputs))
    book = book_of(replace(brief, rules=(alone,)))
    signs = book.signs.get(_NEW)
    if not signs:
        return None
    ((field, answer),) = book.rules
    return field, answer, signs
