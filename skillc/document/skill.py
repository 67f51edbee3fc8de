"""The skill as sections and rules, and as the text that the target reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import Literal

from skillc.artifact_paths import is_script
from skillc.dataclass import dataclass
from skillc.document.markdown import Mark, below_section, block, blocks_of, tidy, trim_text
from skillc.tokens import count_tokens

Mode = Literal["frozen", "trainable", "slow"]

_ID_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Rule:
    """One block of a trainable section: a list item, or a paragraph or table between list items.

    Attributes:
        id: stable hex name, kept when the text is replaced. The target never sees it.
        text: without the list marker; further lines belong to the same item.
        topic: the sub-heading above it.
        rationale: why it was added, on what evidence. The target never sees it.
        mark: the kind of block. Steps are numbered when they are written, so that an edit renumbers them.
    """

    id: str
    text: str
    topic: str | None = None
    rationale: str = ""
    mark: Mark = "-"


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the skill.

    A trainable section has rules, made from its text if none are given; the others have a text. Rules are in reading
    order: those without a topic, then topic by topic. A script has one rule, whose text is the whole file, unchanged.

    Attributes:
        limit: the most tokens that the section's body may have.
        title: the heading; None makes it from the name, "" leaves it out.
        characters: the most characters that the body may have.
        file: its file in the skill's folder, which SKILL.md links; None if its text is in SKILL.md.
        about: when to read its file.
        renames: the tools that its lines may rename, as far as they are known; None if it may rename none.
    """

    name: str
    mode: Mode
    text: str = ""
    rules: tuple[Rule, ...] = ()
    limit: int | None = None
    title: str | None = None
    characters: int | None = None
    file: str | None = None
    about: str = ""
    renames: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.is_script:
            if self.mode != "trainable" or len(self.rules) > 1 or (self.rules and self.text):
                raise ValueError(f"the script {self.name} is not one trainable text")
            rules = self.rules or script_rules(self.text, self.name)
            object.__setattr__(self, "text", "")
            object.__setattr__(self, "rules", rules)
            return
        if self.mode != "trainable":
            if self.rules:
                raise ValueError(f"the {self.mode} section {self.name} cannot hold rules")
            object.__setattr__(self, "text", trim_text(self.text))
            return
        if self.rules and self.text:
            raise ValueError(f"the trainable section {self.name} has both rules and a text")
        rules = self.rules or split_rules(self.text, self.name)
        object.__setattr__(self, "text", "")
        object.__setattr__(self, "rules", _by_topic(rules))

    @property
    def is_script(self) -> bool:
        """Whether it is a script in the skill's folder."""
        return is_script(self.file)

    @property
    def body(self) -> str:
        """The text below the heading, without a newline at its end; of a script, the whole file."""
        if self.is_script:
            return self.rules[0].text if self.rules else ""
        if self.mode != "trainable":
            return self.text
        return _grouped(self, lambda rule, number: block(rule.text, _marker(rule, number)))

    @property
    def tokens(self) -> int:
        """Tokens of the body, which `limit` bounds."""
        return count_tokens(self.body)


@dataclass(frozen=True, slots=True)
class Document:
    """A skill.

    Attributes:
        name: by Agent Skills rules: `route-tickets`.
        about: purpose and use; the `description` of the artifact.
        title: the first heading; None makes it from the name, "" leaves it out.
        task: the task in words, below the title; no edit can change it.
        lead: how to apply the rules, below the task; left out if the skill has no rule.
        frontmatter: further lines of the artifact's frontmatter, which the target does not see.
        files: path and content of the files of its folder that no section is written to: scripts, assets.

    Raises:
        ValueError: two sections have one name, or two rules one id.
    """

    name: str
    about: str
    sections: tuple[Section, ...]
    title: str | None = None
    task: str = ""
    lead: str = ""
    frontmatter: str = ""
    files: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    _sections: dict[str, Section] = field(init=False, repr=False, compare=False, hash=False)
    _places: dict[str, tuple[Section, Rule]] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        sections = {section.name: section for section in self.sections}
        places = {rule.id: (section, rule) for section in self.sections for rule in section.rules}
        if len(sections) != len(self.sections):
            raise ValueError("two sections of one name")
        if len(places) != sum(len(section.rules) for section in self.sections):
            raise ValueError("two rules of one id")
        object.__setattr__(self, "_sections", sections)
        object.__setattr__(self, "_places", places)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules in order."""
        return tuple(rule for section in self.sections for rule in section.rules)

    @property
    def ids(self) -> Collection[str]:
        """The ids of all rules."""
        return self._places.keys()

    def rule(self, id: str) -> Rule | None:  # noqa: A002
        """Return the rule of an id, None if no trainable section has it."""
        place = self._places.get(id)
        return place[1] if place else None

    def section_of(self, id: str) -> Section | None:  # noqa: A002
        """Return the section that contains a rule."""
        place = self._places.get(id)
        return place[0] if place else None

    def section(self, name: str) -> Section | None:
        """Return the section of a name."""
        return self._sections.get(name)

    def with_section(self, section: Section) -> Document:
        """Return the document with the section of that name replaced."""
        return replace(self, sections=tuple(section if s.name == section.name else s for s in self.sections))


def _by_topic(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    topics: dict[str | None, list[Rule]] = {None: []}
    for rule in rules:
        topics.setdefault(rule.topic, []).append(rule)
    return tuple(rule for group in topics.values() for rule in group)


def new_id(section: str, text: str, taken: Collection[str]) -> str:
    """Return an id for a new rule: six hex digits of the sha256 of section and text, more if those are taken."""
    digits = hashlib.sha256(f"{section}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()
    while True:
        for length in range(_ID_DIGITS, len(digits) + 1):
            if digits[:length] not in taken:
                return digits[:length]
        digits = hashlib.sha256(digits.encode()).hexdigest()


def split_rules(text: str, section: str, taken: Collection[str] = ()) -> tuple[Rule, ...]:
    """Return the rules of a markdown text, as `markdown.blocks_of` splits it.

    Ids are made from the name of the section; `taken` are those of other sections.
    """
    ids = set(taken)
    rules: list[Rule] = []
    for found in blocks_of(text):
        rule = Rule(new_id(section, found.text, ids), found.text, found.topic, mark=found.mark)
        ids.add(rule.id)
        rules.append(rule)
    return _by_topic(tuple(rules))


def script_rules(text: str, section: str, taken: Collection[str] = ()) -> tuple[Rule, ...]:
    """Return the one rule of a script; none for an empty text."""
    return (Rule(new_id(section, text, taken), text, mark=""),) if text else ()


def document_of(
    name: str, about: str, parts: Iterable[tuple[str, Mode, str, int | None]], *, task: str = "", lead: str = ""
) -> Document:
    """Return a document from its declaration. Headings in a text become `###`, below those of the sections.

    `parts` has the name, mode, initial text and limit in tokens of each section, in order.
    """
    taken: set[str] = set()
    sections: list[Section] = []
    for section, mode, text, limit in parts:
        rules = split_rules(text, section, taken) if mode == "trainable" else ()
        taken.update(rule.id for rule in rules)
        sections.append(Section(section, mode, "" if mode == "trainable" else below_section(text), rules, limit))
    return Document(name, about, tuple(sections), task=task, lead=lead)


def tokens(document: Document) -> int:
    """Count the tokens that the target sees."""
    return count_tokens(for_target(document))


def digest(document: Document) -> str:
    """Return the sha256 of `about`, the text that the target sees and other files, not of ids and limits."""
    parts: list[object] = [document.about, for_target(document)]
    if has_files(document):
        parts.append(
            [
                [each.file, link_line(each), *([_sha256(each.body.encode())] if each.is_script else [])]
                for each in file_sections(document)
            ]
        )
        parts.append([[name, _sha256(content)] for name, content in document.files])
    return _sha256(json.dumps(parts, ensure_ascii=True).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def has_files(document: Document) -> bool:
    """Return whether the folder of a skill has files besides SKILL.md."""
    return bool(document.files or file_sections(document))


def file_sections(document: Document) -> tuple[Section, ...]:
    """Return the sections that are in files of their own; an empty one has no file."""
    return tuple(each for each in document.sections if each.file is not None and each.body.strip())


def script_sections(document: Document) -> tuple[Section, ...]:
    """Return the sections that are scripts, empty ones too."""
    return tuple(each for each in document.sections if each.is_script)


def scripts_of(document: Document) -> dict[str, bytes]:
    """Return the scripts that are not empty by their paths in the skill's folder."""
    return {each.file: each.body.encode() for each in script_sections(document) if each.file and each.rules}


def has_text_rules(document: Document) -> bool:
    """Return whether a section other than a script has rules."""
    return any(section.rules for section in document.sections if not section.is_script)


def link_line(section: Section) -> str:
    """Return the line of SKILL.md that links the file of a section, with when to read or run it."""
    link, verb = f"[{section.file}]({section.file})", "run" if section.is_script else "read"
    return f"{section.about}: {verb} {link}." if section.about else f"{verb.capitalize()} {link}."


def for_target(document: Document, *, linked: bool = False) -> str:
    """Return the markdown that the target reads, without ids, rationales and empty sections.

    With `linked`, sections that are in files are links, for a target that can open them; without, they are texts.
    Scripts are always links.
    """
    title = title_of(document.name) if document.title is None else document.title
    blocks = [f"# {title}"] if title else []
    blocks += _introduction(document)
    for section in document.sections:
        text = section.body
        if not text.strip():
            continue
        if section.is_script or (linked and section.file is not None):
            text = link_line(section)
        heading = section_title(section)
        blocks += [f"## {heading}", text] if heading else [text]
    return tidy("\n\n".join(blocks))


def for_optimizer(document: Document, notes: Mapping[str, str] | None = None) -> str:
    """Return the skill with rule ids, rationales, and each section's mode, limit and used tokens.

    `notes` has further lines below rules, by their ids.
    """
    blocks = [f"# {document.name}", f"about: {document.about}" if document.about else ""]
    introduction = "\n\n".join(_introduction(document))
    if introduction:
        blocks += [f"below the title (frozen, {count_tokens(introduction)} tokens):", introduction]
    for section in document.sections:
        used = f"{section.tokens}" if section.limit is None else f"{section.tokens} of {section.limit}"
        place = f", in {section.file}" if section.file is not None else ""
        heading = f"## {section.name} ({section.mode}, {used} tokens{place})"
        if section.is_script:
            text = _script_with_id(section, notes or {})
        else:
            text = _with_ids(section, notes or {}) if section.mode == "trainable" else section.text
        blocks += [heading, text or "(empty)"]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _introduction(document: Document) -> list[str]:
    """Return the texts before the sections: the task and, if there are rules, how to apply them."""
    return [text for text in (document.task, document.lead if has_text_rules(document) else "") if text]


def title_of(name: str) -> str:
    """Return a heading from a name: `route-tickets` becomes `Route tickets`."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def section_title(section: Section) -> str:
    """Return the heading of a section, "" for none."""
    return title_of(section.name) if section.title is None else section.title


def _with_ids(section: Section, notes: Mapping[str, str]) -> str:
    def line(rule: Rule, number: int) -> str:
        step = f"{number}. " if number else ""
        text = f"[{rule.id}] {step}" + rule.text.replace("\n", "\n    ")
        why = f"why: {' '.join(rule.rationale.split())}" if rule.rationale else ""
        return "\n    ".join(part for part in (text, why, notes.get(rule.id, "")) if part)

    return _grouped(section, line)


_FENCE_RUN = re.compile(r"`{3,}")


def _script_with_id(section: Section, notes: Mapping[str, str]) -> str:
    """Return a script in a code block below its id, unchanged."""
    if not section.rules:
        return ""
    (rule,) = section.rules
    fence = "`" * max(3, 1 + max((len(run) for run in _FENCE_RUN.findall(rule.text)), default=0))
    end = "" if rule.text.endswith("\n") else "\n"
    why = f"why: {' '.join(rule.rationale.split())}" if rule.rationale else ""
    block = f"{fence}\n{rule.text}{end}{fence}"
    return "\n".join(part for part in (f"[{rule.id}] the whole file:", block, why, notes.get(rule.id, "")) if part)


def _marker(rule: Rule, number: int) -> str:
    return f"{number}. " if number else "- " if rule.mark else ""


def _grouped(section: Section, line: Callable[[Rule, int], str]) -> str:
    """Return the rules under their topics, with a blank line between paragraphs and between lists of different kinds.

    `line` formats a rule and its number in its list, 0 for a rule that is no step.
    """
    blocks: list[str] = []
    before: Rule | None = None
    number = 0
    for rule in section.rules:
        same = before is not None and (before.topic, before.mark) == (rule.topic, rule.mark)
        number = (number if same else 0) + 1 if rule.mark == "1." else 0
        if rule.topic != (before.topic if before else None):
            blocks += ["", f"### {rule.topic}", ""] if blocks else [f"### {rule.topic}", ""]
        elif blocks and not (same and rule.mark):
            blocks.append("")
        blocks.append(line(rule, number))
        before = rule
    return "\n".join(blocks)
