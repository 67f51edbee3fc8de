"""The skills of a run by digest, rebuilt from the initial skill and the recorded edits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from skillc.document.edits import apply_edits, rewrite
from skillc.document.skill import Document, digest, split_rules
from skillc.optimize.description import description_of, with_description
from skillc.review.decisions import Decision


def rebuilt_skills(
    decisions: Iterable[Decision], initial: Document, compiled: Document | None = None
) -> dict[str, Document]:
    """Return each skill that can be rebuilt, by digest.

    A rebuilt skill whose digest is not the recorded one is left out, with all that were made from it. A description
    that was trained is a document of its own, and makes a skill of the initial one. A run that starts from a SKILL.md
    names its rules anew, so the edits of a step are tried with both names.

    Args:
        decisions: of one run or of several, in any order.
        initial: the skill of the program.
        compiled: another skill to start from.
    """
    waiting = [each for each in decisions if each.candidate]
    known = [initial, *([compiled] if compiled is not None else [])]
    known += [description_of(initial)] if any(each.trains for each in waiting) else []
    skills = {digest(document): document for document in known}
    while True:
        left = []
        for decision in waiting:
            parent = skills.get(decision.incumbent)
            if parent is None:
                left.append(decision)
                continue
            made = _candidate(parent, decision)
            if digest(made) != decision.candidate:
                made = _candidate(_read_again(parent), decision)
            if digest(made) == decision.candidate:
                skills[decision.candidate] = made
                if decision.trains:
                    described = with_description(initial, made)
                    skills[digest(described)] = described
        if len(left) == len(waiting):
            return skills
        waiting = left


def _candidate(parent: Document, decision: Decision) -> Document:
    """Return what a decision made of the incumbent."""
    if decision.sections:
        return _with_sections(parent, decision.sections)
    if decision.guidance:
        return rewrite(parent, decision.section, decision.guidance).document
    return apply_edits(parent, [each.edit for each in decision.edits if each.edit is not None]).document


def _read_again(skill: Document) -> Document:
    """Return a skill with the ids that its rules get when its text is read."""
    taken: set[str] = set()
    for section in skill.sections:
        if section.mode == "trainable" and not section.is_script:
            rules = split_rules(section.body, section.name, taken)
            skill = skill.with_section(replace(section, rules=rules))
        taken.update(rule.id for rule in section.rules)
    return skill


def _with_sections(parent: Document, texts: Mapping[str, str]) -> Document:
    """Return a skill with whole sections of another method."""
    from skillc.optimize.methods.bridge import section_texts, with_section_texts

    known = section_texts(parent)
    return with_section_texts(parent, {name: text for name, text in texts.items() if name in known}).document
