"""The replies to questions for whole texts: the rules as they stand, with the edits that a reflection would propose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from skillc.models.rulebook.briefs import Brief, Case
from skillc.models.rulebook.propose import reflect

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
