"""A three-way merge of skills, rule by rule: what either side changed since a common ancestor."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from pydantic import JsonValue

from skillc.document.lint import same_words
from skillc.document.skill import Document, Rule, Section

# What a merge compares: the section, topic and text of a rule, or the text of a slow section; None where it is not.
_Content = tuple[str | None, ...] | None


@dataclass(frozen=True, slots=True)
class Merged:
    """A skill made of two, and each change that it has from the second, as the history tells it."""

    document: Document
    edits: tuple[dict[str, JsonValue], ...]


@dataclass(frozen=True, slots=True)
class _Judge:
    """Whose change is taken."""

    wins: tuple[int, int]
    seed: bytes

    def takes_second(self, key: str, base: _Content, first: _Content, second: _Content) -> bool:
        if second in (first, base):
            return False
        if first == base or self.wins[0] != self.wins[1]:
            return first == base or self.wins[1] > self.wins[0]
        return hashlib.sha256(self.seed + key.encode()).digest()[0] % 2 == 1


def merge_rules(base: Document, first: Document, second: Document, *, wins: tuple[int, int], seed: bytes) -> Merged:
    """The first skill with what the second changed since the base; all three are skills of one program.

    What only one of them changed is taken from it: a rule's text, topic, section or absence, and the text of a slow
    section. Where both changed the same thing otherwise, the one with more `wins` has its way, of equals the one that
    the seed names. A change that would take a section over its limit, or say again what another rule says, is left out.
    """
    judge = _Judge(wins, seed)
    document = first
    edits: list[dict[str, JsonValue]] = []
    for rule in second.rules:
        old, ours, theirs = (_content(skill, rule.id) for skill in (base, first, second))
        if judge.takes_second(rule.id, old, ours, theirs):
            after = _with_rule(document, second, rule)
            if after is not None:
                document = after
                edits.append(_told("add" if ours is None else "replace", rule, second.section_of(rule.id)))
    for rule in base.rules:
        old, ours, theirs = (_content(skill, rule.id) for skill in (base, first, second))
        if theirs is None and ours is not None and judge.takes_second(rule.id, old, ours, theirs):
            edits.append(_told("delete", rule, document.section_of(rule.id)))
            document = _without_rule(document, rule.id)
    for section in second.sections:
        old, ours, theirs = (_text(skill, section.name) for skill in (base, first, second))
        if section.mode == "slow" and judge.takes_second(f"section {section.name}", old, ours, theirs):
            document = document.with_section(section)
            edits.append({"op": "rewrite", "section": section.name, "text": section.text, "rationale": ""})
    return Merged(document, tuple(edits))


def _content(skill: Document, name: str) -> _Content:
    rule, section = skill.rule(name), skill.section_of(name)
    return None if rule is None or section is None else (section.name, rule.topic, rule.text)


def _text(skill: Document, name: str) -> _Content:
    section = skill.section(name)
    return None if section is None else (section.text,)


def _told(op: str, rule: Rule, section: Section | None) -> dict[str, JsonValue]:
    name = section.name if section is not None else None
    return {"op": op, "rule": rule.id, "section": name, "text": rule.text, "rationale": rule.rationale}


def _with_rule(document: Document, second: Document, rule: Rule) -> Document | None:
    """The document with a rule as the second skill has it, None where it must stay out."""
    home = second.section_of(rule.id)
    words = same_words(rule.text)
    if home is None or any(same_words(other.text) == words for other in document.rules if other.id != rule.id):
        return None
    known, at = document.rule(rule.id), document.section_of(rule.id)
    if known is not None and at is not None and (at.name, known.topic) == (home.name, rule.topic):
        rules = tuple(rule if each.id == rule.id else each for each in at.rules)
    else:
        rules = _inserted(_without_rule(document, rule.id), home, rule)
    before = document.section(home.name)
    if before is None:
        return None
    after = replace(before, rules=rules)
    if after.limit is not None and after.tokens > max(after.limit, before.tokens):
        return None
    return _without_rule(document, rule.id).with_section(after)


def _inserted(document: Document, home: Section, rule: Rule) -> tuple[Rule, ...]:
    """The rules of a section with one more, behind the rule of its topic that it follows in the second skill."""
    section = document.section(home.name)
    rules = section.rules if section is not None else ()
    names = [each.id for each in home.rules]
    before = names[: names.index(rule.id)]
    places = [i for i, each in enumerate(rules) if each.id in before and each.topic == rule.topic]
    at = places[-1] + 1 if places else len(rules)
    return (*rules[:at], rule, *rules[at:])


def _without_rule(document: Document, name: str) -> Document:
    section = document.section_of(name)
    if section is None:
        return document
    return document.with_section(replace(section, rules=tuple(rule for rule in section.rules if rule.id != name)))
