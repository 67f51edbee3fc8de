"""The decision behind each line of a skill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from skillc.artifact_paths import SKILL_FILE
from skillc.dataclass import dataclass
from skillc.document.folder import files_of
from skillc.document.skill import Document, Section, link_line, section_title, title_of
from skillc.review.decisions import Decision, ProposedEdit
from skillc.review.run_view import RunView


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a rule, a section or a heading comes from.

    Attributes:
        decision: the one that wrote its present text.
        edit: the edit of that decision; None if a whole section was written.
        rule: the id of the rule; empty for a section.
        before: the earlier texts of a rule that was replaced, each with the place of its decision, the newest first.
        earlier: the edits that wrote those texts, the newest first.
    """

    decision: Decision
    edit: ProposedEdit | None
    rule: str = ""
    before: tuple[tuple[str, str], ...] = ()
    earlier: tuple[ProposedEdit, ...] = ()

    @property
    def edits(self) -> tuple[ProposedEdit, ...]:
        """The edits that wrote the present text and the earlier ones, the newest first."""
        return (*([self.edit] if self.edit is not None else []), *self.earlier)


@dataclass(frozen=True, slots=True)
class SkillLine:
    """A line of a skill's file, numbered from 1.

    Attributes:
        origin: None for what the program wrote, and for blank lines.
        part: what the line is, such as ``rule of `rules` ``; empty for a blank line.
    """

    file: str
    number: int
    text: str
    origin: Origin | None
    part: str = ""


def lines_in(text: str) -> list[str]:
    """Return the lines of a file as an editor numbers them: only line feeds and carriage returns end a line."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def lineage(view: RunView, skill: str) -> tuple[Decision, ...]:
    """Return the decisions of the run that led from its initial skill to another one, in order."""
    return _path(view.decisions, skill, view.initial)


def ancestry(view: RunView, skill: str) -> tuple[Decision, ...]:
    """Return the decisions that led to a skill, also those of earlier runs that a run started from, in order."""
    own = lineage(view, skill)
    # A tidying or an ablation starts from a compiled skill, and is tested against the initial one.
    start = own[0].incumbent if own else view.initial
    return (*_path(view.earlier, start, ""), *own)


def _path(decisions: Sequence[Decision], skill: str, start: str) -> tuple[Decision, ...]:
    accepted = {each.candidate: each for each in decisions if each.accepted}
    made = {each.candidate: each for each in reversed(decisions) if each.candidate} if start else accepted
    found: list[Decision] = []
    seen = set[str]()
    decision = made.get(skill)
    while decision is not None and decision.candidate != start and decision.candidate not in seen:
        seen.add(decision.candidate)
        found.append(decision)
        decision = accepted.get(decision.incumbent)
    return tuple(reversed(found))


def skill_lines(view: RunView, skill: str) -> tuple[SkillLine, ...]:
    """Return the lines of a skill's files, each with its origin; none if the text of the skill is not known."""
    document = view.skills.get(skill)
    if document is None:
        return ()
    origins = _origins(view, ancestry(view, skill))
    found: list[SkillLine] = []
    for name, content in files_of(document).items():
        own = [section for section in document.sections if section.file == name]
        if name != SKILL_FILE and not own:
            continue
        lines = lines_in(content.decode())
        blocks = _of_file(own[0], origins) if own else _of_skill(document, origins)
        marked = _marked(lines, blocks, SKILL_FILE if not own else name)
        found += marked if own else _with_description(view, document, marked)
    return tuple(found)


def _with_description(view: RunView, document: Document, lines: list[SkillLine]) -> list[SkillLine]:
    """Name the lines of the frontmatter, and set the origin of the description if the run trained it."""
    end = next((i for i, line in enumerate(lines) if i and line.text == "---"), -1)
    lines[: end + 1] = [replace(line, part="frontmatter") for line in lines[: end + 1]]
    initial = view.skills.get(view.initial)
    trained = [each for each in view.decisions if each.trains and each.accepted]
    at = next((i for i, line in enumerate(lines[: end + 1]) if line.text.startswith("description: ")), None)
    if at is not None:
        is_new = bool(trained) and initial is not None and initial.about != document.about
        lines[at] = replace(lines[at], origin=Origin(trained[-1], None) if is_new else None, part="description")
    return lines


@dataclass(frozen=True, slots=True)
class _Origins:
    """The origins of rules by id, of the texts of sections by name, and of topics by section and topic."""

    rules: dict[str, Origin] = field(default_factory=dict)
    sections: dict[str, Origin] = field(default_factory=dict)
    topics: dict[tuple[str, str], Origin] = field(default_factory=dict)
    headings: dict[str, Origin] = field(default_factory=dict)


def _origins(view: RunView, decisions: Sequence[Decision]) -> _Origins:
    found = _Origins()
    for decision in decisions:
        parent, child = view.skills.get(decision.incumbent), view.skills.get(decision.candidate)
        if parent is not None and child is not None:
            found = _after(view, found, decision, parent, child)
    return found


def _after(view: RunView, known: _Origins, decision: Decision, parent: Document, child: Document) -> _Origins:
    """Return the origins after a decision, by the ids of its candidate."""
    edits = {each.rule: each for each in decision.edits}
    texts = {(section.name, rule.text): rule for section in parent.sections for rule in section.rules}
    found = _Origins(sections=dict(known.sections), topics=dict(known.topics), headings=dict(known.headings))
    for section in child.sections:
        was = parent.section(section.name)
        for rule in section.rules:
            old = parent.rule(rule.id) or texts.get((section.name, rule.text))
            earlier = known.rules.get(old.id) if old is not None else None
            if old is not None and old.text == rule.text:
                if earlier is not None:
                    found.rules[rule.id] = earlier
                continue
            place = earlier.decision.place if earlier is not None else view.place(view.initial)
            before = ((old.text, place), *(earlier.before if earlier else ())) if old is not None else ()
            wrote = earlier.edits if earlier is not None else ()
            found.rules[rule.id] = Origin(decision, edits.get(rule.id), rule.id, before, wrote)
        first = next((found.rules.get(rule.id) for rule in section.rules), None)
        if section.body.strip() and (was is None or not was.body.strip()):
            found.headings[section.name] = first or Origin(decision, None)
        if not section.rules and (was is None or was.text != section.text):
            found.sections[section.name] = Origin(decision, None)
        old_topics = {rule.topic for rule in was.rules} if was is not None else set()
        for rule in section.rules:
            if rule.topic and rule.topic not in old_topics:
                found.topics.setdefault((section.name, rule.topic), found.rules.get(rule.id) or Origin(decision, None))
    return found


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that belong together; `exact` if no mark of a list is before the first one."""

    lines: Sequence[str]
    part: str
    origin: Origin | None = None
    exact: bool = True


def _of_skill(document: Document, origins: _Origins) -> Iterator[_Block]:
    """Yield the parts of SKILL.md in their order."""
    title = title_of(document.name) if document.title is None else document.title
    if title:
        yield _Block([f"# {title}"], "title")
    for text in (document.task, document.lead):
        yield _Block(lines_in(text), "text below the title")
    for section in document.sections:
        heading = section_title(section)
        if not section.body.strip():
            continue
        if heading:
            yield _Block([f"## {heading}"], f"heading of `{section.name}`", origins.headings.get(section.name))
        if section.file is not None:
            yield _Block([link_line(section)], f"link to `{section.file}`")
        else:
            yield from _body(section, origins)


def _of_file(section: Section, origins: _Origins) -> Iterator[_Block]:
    """Yield the parts of the file of a section."""
    if not section.is_script:
        part = f"heading of `{section.name}`"
        yield _Block([f"# {section_title(section)}"], part, origins.headings.get(section.name))
    yield from _body(section, origins)


def _body(section: Section, origins: _Origins) -> Iterator[_Block]:
    if section.mode != "trainable":
        part = f"{section.mode} section `{section.name}`"
        yield _Block(lines_in(section.text), part, origins.sections.get(section.name))
        return
    topic = None
    for rule in section.rules:
        if rule.topic and rule.topic != topic:
            part = f"topic `{rule.topic}` of `{section.name}`"
            yield _Block([f"### {rule.topic}"], part, origins.topics.get((section.name, rule.topic)))
        topic = rule.topic
        part = f"script `{section.file}`" if section.is_script else f"rule of `{section.name}`"
        yield _Block(lines_in(rule.text), part, origins.rules.get(rule.id), exact=section.is_script)


def _marked(lines: Sequence[str], blocks: Iterator[_Block], file: str) -> list[SkillLine]:
    """Return lines with the blocks that they are of, which are found one after the other."""
    found = [SkillLine(file, i, text, None) for i, text in enumerate(lines, 1)]
    at = 0
    for whole in blocks:
        for block in _findable(lines, whole, at):
            start = _find(lines, block, at)
            if start is None:
                continue
            at = start + len(block.lines)
            for i in range(start, at):
                if lines[i].strip():
                    found[i] = replace(found[i], origin=block.origin, part=block.part)
    return found


def _findable(lines: Sequence[str], block: _Block, start: int) -> Iterator[_Block]:
    """Yield a block, or its lines one by one if they are laid out differently in the file."""
    if len(block.lines) == 1 or _find(lines, block, start) is not None:
        yield block
    else:
        yield from (replace(block, lines=[line]) for line in block.lines)


def _find(lines: Sequence[str], block: _Block, start: int) -> int | None:
    """Return the first place of some lines, which a list may indent or mark; None if they are not there."""
    wanted = [text.strip() for text in block.lines]
    if not any(wanted):
        return None
    for i in range(start, len(lines) - len(wanted) + 1):
        first = lines[i].strip()
        is_first = first == wanted[0] or (not block.exact and first.endswith(f" {wanted[0]}"))
        rest = zip(lines[i + 1 : i + len(wanted)], wanted[1:], strict=True)
        if is_first and all(line.strip() == text for line, text in rest):
            return i
    return None
