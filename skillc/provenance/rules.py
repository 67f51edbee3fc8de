"""Which sessions each rule of a skill is from, by the decisions that wrote it.

A rule is from the sessions whose examples its author could read, and a rule that replaces or merges others from theirs
too. It errs on the side of more: where a decision does not record who read what, all training sessions count. Of these
sessions some are cited: those of the failures that an edit names, or of the cases that a draft names for a rule. Where
none is named, all that the author could read count as cited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from skillc.document.skill import Document, digest
from skillc.json_values import objects_in
from skillc.plan.lock import text_key

Line = Mapping[str, JsonValue]


def sessions_of_rules(
    lines: Iterable[Line],
    start: Document,
    best: Document,
    every: Sequence[str],
    known: Mapping[str, Sequence[str]],
    *,
    cited: bool = False,
) -> dict[str, tuple[str, ...]]:
    """Return the sessions of each rule and section of a skill that is from any, by `text_key`.

    Args:
        lines: the decisions of the run.
        start: the skill that the run began with.
        best: the skill.
        every: the sessions of all training examples.
        known: the sessions of the rules of `start`, by `text_key`; a rule that is not in it is by hand.
        cited: return the cited sessions only.
    """
    rules = {rule.id: set(known.get(text_key(rule.text), ())) for rule in start.rules}
    sections = {each.name: set(known.get(text_key(each.text), ())) for each in start.sections}
    for line in _path(lines, digest(start), digest(best)):
        _follow(line, rules, sections, ("cited", "sessions") if cited else ("sessions",))
    old_rules = {(rule.id, rule.text) for rule in start.rules}
    old_texts = {(each.name, each.text) for each in start.sections}
    found: dict[str, tuple[str, ...]] = {}

    def add(text: str, keys: Iterable[str]) -> None:
        if keys := sorted({*found.get(text_key(text), ()), *keys}):
            found[text_key(text)] = tuple(keys)

    for rule in best.rules:
        fresh = rule.id not in rules and (rule.id, rule.text) not in old_rules
        add(rule.text, every if fresh else rules.get(rule.id, ()))
    for section in best.sections:
        if not section.rules and section.text.strip():
            fresh = section.name not in sections and (section.name, section.text) not in old_texts
            add(section.text, every if fresh else sections.get(section.name, ()))
    return found


def _path(lines: Iterable[Line], start: str, best: str) -> list[Line]:
    """Return the accepted decisions that lead from one skill to another, in order."""
    accepted = {str(line.get("candidate")): line for line in lines if line.get("result") in ("accept", "accepted")}
    found: list[Line] = []
    skill = best
    while skill != start and (line := accepted.pop(skill, None)) is not None:
        found.append(line)
        skill = str(line.get("incumbent"))
    return found[::-1]


def _follow(line: Line, rules: dict[str, set[str]], sections: dict[str, set[str]], names: Sequence[str]) -> None:
    """Add the sessions of a decision, which the first of these names has, to those of its rules."""
    entries = objects_in(line.get("edits"))
    if not entries:
        if isinstance(line.get("section"), str):
            sections.setdefault(str(line["section"]), set()).update(_keys(line, names))
        return
    whole = line.get("kind") == "tidy" or line.get("maker") == "draft" or "suggestions" in line
    parents = set[str]()
    for entry in entries:
        if entry.get("op") in ("delete", "replace"):
            parents |= rules.get(str(entry.get("rule")), set())
    for entry in entries:
        if entry.get("op") in ("add", "replace") and isinstance(entry.get("rule"), str):
            rule = str(entry["rule"])
            if names[0] == "cited" and "cited" in entry and line.get("maker") == "draft":
                # New words have the support that the draft names for them, none of the rules beside or before them.
                rules[rule] = {*_keys(entry, names)}
                continue
            rules.setdefault(rule, set()).update(_keys(entry, names), parents if whole else ())


def _keys(entry: Line, names: Sequence[str]) -> list[str]:
    keys = next((entry[name] for name in names if name in entry), None)
    return [str(key) for key in keys] if isinstance(keys, list) else []
