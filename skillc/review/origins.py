"""The decision behind each line of a skill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillc.artifact_paths import SKILL_FILE
from skillc.document.folder import files_of
from skillc.document.skill import Document
from skillc.review.decisions import Decision, ProposedEdit
from skillc.review.run_view import RunView


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a rule or a section comes from.

    Attributes:
        decision: the one that wrote its present text.
        edit: the edit of that decision; None if a whole section was written.
        rule: the id of the rule; empty for a section.
        before: the earlier texts of a rule that was replaced, each with the place of its decision, the newest first.
    """

    decision: Decision
    edit: ProposedEdit | None
    rule: str = ""
    before: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SkillLine:
    """A line of a skill's file, numbered from 1; `origin` is None for what the program wrote."""

    file: str
    number: int
    text: str
    origin: Origin | None


def lineage(view: RunView, skill: str) -> tuple[Decision, ...]:
    """Return the decisions that led from the initial skill to another one, in order."""
    accepted = {each.candidate: each for each in view.decisions if each.accepted}
    made = {each.candidate: each for each in reversed(view.decisions) if each.candidate}
    found: list[Decision] = []
    seen = set[str]()
    decision = made.get(skill)
    while decision is not None and decision.candidate != view.initial and decision.candidate not in seen:
        seen.add(decision.candidate)
        found.append(decision)
        decision = accepted.get(decision.incumbent)
    return tuple(reversed(found))


def skill_lines(view: RunView, skill: str) -> tuple[SkillLine, ...]:
    """Return the lines of a skill's files, each with its origin; none if the text of the skill is not known."""
    document = view.skills.get(skill)
    if document is None:
        return ()
    rules, sections = _origins(view, lineage(view, skill))
    found: list[SkillLine] = []
    written = {section.file for section in document.sections if section.file is not None}
    for name, content in files_of(document).items():
        if name != SKILL_FILE and name not in written:
            continue
        lines = content.decode().splitlines()
        origins = _of_lines(lines, document, rules, sections, None if name == SKILL_FILE else name)
        if name == SKILL_FILE:
            _add_description(view, document, lines, origins)
        found += [SkillLine(name, i, text, origins[i - 1]) for i, text in enumerate(lines, 1)]
    return tuple(found)


def _add_description(view: RunView, document: Document, lines: Sequence[str], origins: list[Origin | None]) -> None:
    """Set the origin of the description, if the run trained it."""
    initial = view.skills.get(view.initial)
    trained = [each for each in view.decisions if each.trains and each.accepted]
    if trained and initial is not None and initial.about != document.about:
        at = next((i for i, line in enumerate(lines) if line.startswith("description: ")), None)
        if at is not None:
            origins[at] = Origin(trained[-1], None)


def _origins(view: RunView, decisions: Sequence[Decision]) -> tuple[dict[str, Origin], dict[str, Origin]]:
    """Return the origin of each rule by id, and of each rewritten section by name."""
    rules: dict[str, Origin] = {}
    sections: dict[str, Origin] = {}
    for decision in decisions:
        parent, child = view.skills.get(decision.incumbent), view.skills.get(decision.candidate)
        if parent is None or child is None:
            continue
        edits = {each.rule: each for each in decision.edits}
        for rule in child.rules:
            old = parent.rule(rule.id)
            if old is not None and old.text == rule.text:
                continue
            earlier = rules.get(rule.id)
            place = earlier.decision.place if earlier is not None else view.place(view.initial)
            before = ((old.text, place), *(earlier.before if earlier else ())) if old is not None else ()
            rules[rule.id] = Origin(decision, edits.get(rule.id), rule.id, before)
        for section in child.sections:
            was = parent.section(section.name)
            if not section.rules and (was is None or was.text != section.text):
                sections[section.name] = Origin(decision, None)
    return rules, sections


def _of_lines(
    lines: Sequence[str],
    document: Document,
    rules: dict[str, Origin],
    sections: dict[str, Origin],
    file: str | None,
) -> list[Origin | None]:
    """Return the origin of each line: rules and sections are found one after the other, in their order."""
    origins: list[Origin | None] = [None] * len(lines)
    at = 0
    for texts, origin in _blocks(document, rules, sections, file):
        start = _find(lines, texts, at)
        if start is None:
            continue
        at = start + len(texts)
        origins[start:at] = [origin] * len(texts)
    return origins


def _blocks(
    document: Document, rules: dict[str, Origin], sections: dict[str, Origin], file: str | None
) -> Iterator[tuple[list[str], Origin | None]]:
    """Yield the lines of each rule and each other section of a file, with their origin."""
    for section in document.sections:
        if section.file != file:
            continue
        if section.rules:
            for rule in section.rules:
                yield rule.text.splitlines(), rules.get(rule.id)
        elif section.text.strip():
            yield section.text.splitlines(), sections.get(section.name)


def _find(lines: Sequence[str], texts: Sequence[str], start: int) -> int | None:
    """Return the first place of some lines, which a list may indent or mark; None if they are not there."""
    wanted = [text.strip() for text in texts]
    for i in range(start, len(lines) - len(wanted) + 1):
        first = lines[i].strip()
        if (first == wanted[0] or first.endswith(f" {wanted[0]}")) and all(
            line.strip() == text for line, text in zip(lines[i + 1 : i + len(wanted)], wanted[1:], strict=True)
        ):
            return i
    return None
