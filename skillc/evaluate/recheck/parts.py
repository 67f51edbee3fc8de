"""Split a compiled skill into its learned parts: for each rule that the initial skill lacks, the skill without it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from skillc.dataclass import dataclass
from skillc.document.markdown import tidy
from skillc.document.skill import Document, Section, section_title, split_rules
from skillc.json_values import as_text
from skillc.outcomes import Example

_WORD = re.compile(r"\w{3,}")
# A rule with one of these words has a condition. One in another language counts as one that every example concerns.
_CONDITION = re.compile(r"\b(?:if|when|whenever|where|for|unless|once|after|before|in case)\b", re.IGNORECASE)
# A word in a larger share of the examples does not identify the examples that a rule concerns.
_COMMON = 0.5
# So many words at the start of two rules are left out where rules are told apart.
_SHARED = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A removable part of a skill: a rule, or the text of a section that is rewritten as a whole.

    Attributes:
        name: the rule's id, or the name of the section.
        section: the name of its section.
        text: of the part.
        concerns: the examples that it may concern, by their words.
        without: the skill without it.
    """

    name: str
    section: str
    text: str
    concerns: int
    without: Document


def with_rules(skill: Document, declared: Document) -> tuple[Document, tuple[str, ...]]:
    """Return a skill that was read from its files with the rules of its trainable sections, and notes.

    Sections are matched by their headings. The target reads the same text, except where a section was not written by
    skillc; a note names it.
    """
    modes = {section_title(each): each.mode for each in declared.sections}
    taken, sections, notes = set[str](), list[Section](), list[str]()
    for section in skill.sections:
        mode = modes.get(section_title(section), "frozen")
        found = section
        if mode == "trainable":
            found = replace(section, mode=mode, text="", rules=split_rules(section.text, section.name, taken))
            taken.update(rule.id for rule in found.rules)
            if tidy(found.body) != tidy(section.text):
                notes.append(f"`{section.name}` is measured with its rules in the form that skillc writes")
        elif mode == "slow":
            found = replace(section, mode=mode)
        sections.append(found)
    return replace(skill, sections=tuple(sections)), tuple(notes)


def learned_parts(
    skill: Document, initial: Document, examples: Sequence[Example], *, every: bool = False
) -> list[Part]:
    """Return the parts of a skill that the initial one lacks, those that more of the examples may concern first.

    `every` adds the parts that may change and did not.
    """
    known = set() if every else {text for section in initial.sections for _, text, _ in _parts(initial, section)}
    found = [
        (section, name, text, without)
        for section in skill.sections
        for name, text, without in _parts(skill, section)
        if text not in known
    ]
    concerned = _concerned([text for _, _, text, _ in found], examples)
    parts = [
        Part(name, section.name, text, number, without)
        for (section, name, text, without), number in zip(found, concerned, strict=True)
    ]
    return sorted(parts, key=lambda part: -part.concerns)


def _parts(skill: Document, section: Section) -> list[tuple[str, str, Document]]:
    """Return name, text and the skill without it for each part of a section that may change."""
    if section.mode == "slow" and section.text:
        return [(section.name, section.text, skill.with_section(replace(section, text="")))]
    return [
        (
            rule.id,
            rule.text,
            skill.with_section(replace(section, rules=tuple(each for each in section.rules if each.id != rule.id))),
        )
        for rule in section.rules
    ]


def _concerned(texts: Sequence[str], examples: Sequence[Example]) -> list[int]:
    """Return how many examples each text may concern: all without a condition, else those that share a word."""
    words = [set(_WORD.findall(" ".join(map(as_text, each.inputs.values())).casefold())) for each in examples]
    counts: dict[str, int] = {}
    for each in words:
        for word in each:
            counts[word] = counts.get(word, 0) + 1
    rare = {word for word, count in counts.items() if count <= _COMMON * len(words)}
    found = []
    for text in texts:
        own = rare.intersection(_WORD.findall(text.casefold()))
        conditional = _CONDITION.search(text) is not None
        found.append(sum(1 for each in words if own & each) if conditional else len(examples))
    return found


def distinct_texts(parts: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each part on one line by its name; words that it begins with as another one does are cut."""
    words = {name: text.split() for name, text in parts.items()}
    texts = {}
    for name, own in words.items():
        shared = max((_shared(own, other) for each, other in words.items() if each != name), default=0)
        texts[name] = " ".join(own) if shared < _SHARED else f"… {' '.join(own[shared:])}"
    return texts


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two texts begin with alike, less than all of the first."""
    pairs = zip(one[:-1], other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one) - 1, len(other)))
