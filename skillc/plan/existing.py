"""Read an existing SKILL.md as the skill of a new program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import ABOUT_CHARACTERS, SKILL_FILE
from skillc.dataclass import dataclass
from skillc.diagnostics.suggest import spelling_hint
from skillc.document.folder import read_skill
from skillc.document.markdown import lines_of, prose
from skillc.document.skill import Section, document_of, section_title, title_of
from skillc.document.skill_md import PREAMBLE, from_skill_md, other_lines, read_frontmatter
from skillc.errors import SkillcError
from skillc.fences import close_fence
from skillc.plan.schema import artifact_name
from skillc.skill_files import read_folder, write_folder
from skillc.syntax.files import read_source
from skillc.syntax.literals import quote
from skillc.text import counted, listed

# The optional keys of the Agent Skills specification; validators reject others.
SPEC_KEYS = ("license", "compatibility", "metadata", "allowed-tools")
_FOLDERS = ("references", "scripts", "assets")
# The least limit of a section in a new program, with room for a model's whole text.
WHOLE_TEXT = 1_500
_STEP = 500


@dataclass(frozen=True, slots=True)
class ExistingSection:
    """A section as the program declares it.

    Attributes:
        shown: its original heading, for messages.
        why: why it is frozen, or the number of its rules.
        file: its file in the skill's folder, None for a section of SKILL.md.
        about: when to read its file.
    """

    name: str
    mode: Literal["frozen", "trainable"]
    text: str
    title: str | None
    limit: int | None
    shown: str
    why: str
    file: str | None = None
    about: str = ""


@dataclass(frozen=True, slots=True)
class Existing:
    """A skill to start from.

    Attributes:
        name: in the spelling of the language; empty if the file has no valid one.
        about: the description, on one line.
        title: the first heading; None if it follows from the name.
        frontmatter: further keys, as YAML.
        kept: names of these keys.
        left_out: descriptions of what the compiled SKILL.md will lack.
        files: the further files of its folder, which the skill keeps as they are.
        folder: the folder that the program names for them; None without such files.
    """

    name: str
    about: str
    title: str | None
    frontmatter: str
    kept: tuple[str, ...]
    sections: tuple[ExistingSection, ...]
    left_out: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    folder: str | None = None

    def with_folder(self, program: Path, *, force: bool) -> Existing:
        """Copy the further files beside a program, and name their folder in it.

        Raises:
            SkillcError: the folder exists and has other files, or it cannot be written.
        """
        if not self.files:
            return self
        folder = program.with_name(f"{program.stem}_files")
        if folder.exists() and not force and (not folder.is_dir() or read_folder(folder) != self.files):
            hint = "name another program with --output, or overwrite with --force"
            raise SkillcError(f"`{folder}` exists and has other files", hint=hint)
        try:
            write_folder(folder, self.files)
        except OSError as problem:
            raise SkillcError(f"`{folder}` cannot be written: {problem.strerror}") from problem
        return replace(self, folder=folder.name)


def existing_skill(path: Path, freeze: Sequence[str] = ()) -> Existing:
    """Read a SKILL.md, or the one in a folder.

    A section whose text is a list becomes rules, unless `freeze` has its heading; every other section stays text.

    Raises:
        SkillcError: the file cannot be read, or has no section with such a heading.
    """
    file = path / SKILL_FILE if path.is_dir() else path
    text = read_source(file).text
    document = read_skill(file, text, whole=_is_folder(file, text))
    frozen = {_named(title, document.sections) for title in freeze}
    sections = tuple(_section(section, section.name in frozen) for section in document.sections)
    lines = document.frontmatter.split("\n") if document.frontmatter else []
    keys = list(read_frontmatter(lines))
    unknown = [key for key in keys if key not in SPEC_KEYS]
    left_out = [f"the frontmatter key `{key}`, which Agent Skills does not define" for key in unknown]
    about = " ".join(document.about.split())
    if len(about) > ABOUT_CHARACTERS:
        left_out.append(f"the end of the description: an agent reads at most {ABOUT_CHARACTERS:,} characters")
        about = about[:ABOUT_CHARACTERS].rsplit(" ", 1)[0]
    if not _is_folder(file, text):
        left_out += [f"`{name}`, beside the file: copy it to the compiled skill" for name in _beside(file)]
    name = re.sub(r"[^a-z0-9]+", "_", document.name.lower()).strip("_")
    name = name if name[:1].isalpha() else ""
    return Existing(
        name=name,
        about=about,
        title=_title(document.title, document.name, artifact_name(name)),
        frontmatter="\n".join(other_lines(lines, unknown)),
        kept=tuple(key for key in keys if key in SPEC_KEYS),
        sections=sections,
        left_out=tuple(left_out),
        files=dict(document.files),
    )


def _is_folder(file: Path, text: str) -> bool:
    """Return whether a file is the SKILL.md of a folder that is a skill: it has the skill's name, or folders of one."""
    if file.name != SKILL_FILE:
        return False
    folder = file.parent.resolve()
    others = {each.name for each in folder.iterdir()} - {SKILL_FILE, *_FOLDERS}
    return folder.name == from_skill_md(text).name or (bool(_beside(file)) and not others)


def _title(title: str | None, before: str, after: str) -> str | None:
    """The first heading, also if it was made from a name that the program cannot write."""
    return title_of(before) if title is None and title_of(before) != title_of(after) else title


def _beside(file: Path) -> list[str]:
    """Other folders of the skill; only if the file is named `SKILL.md`."""
    if file.name != SKILL_FILE:
        return []
    return [f"{name}/" for name in _FOLDERS if (file.parent / name).is_dir()]


def _named(title: str, sections: Sequence[Section]) -> str:
    wanted = " ".join(title.lstrip("#").split()).casefold()
    for section in sections:
        if wanted in (section.name.casefold(), section_title(section).casefold()):
            return section.name
    titles = [section_title(section) or section.name for section in sections]
    hint = spelling_hint(title, titles) or f"sections: {listed(titles) or 'none'}"
    raise SkillcError(f"the skill has no section `{title}`", hint=hint)


def _section(section: Section, frozen: bool) -> ExistingSection:
    why = "named by --freeze" if frozen else _no_rules(section)
    # An open fence ends with the file; in a program it would include the following sections.
    text = close_fence(section.text)
    made = Section(section.name, "trainable", text)
    return ExistingSection(
        name=section.name,
        mode="frozen" if why else "trainable",
        text=text,
        title=section.title,
        limit=None if why else max(WHOLE_TEXT, -(-2 * made.tokens // _STEP) * _STEP),
        shown=section_title(section) or "the text above the first `## ` heading",
        why=why or counted(len(made.rules), "rule"),
        file=section.file,
        about=section.about,
    )


def _no_rules(section: Section) -> str | None:
    """Why a text stays text; None if it is a list, perhaps with paragraphs, that rules reproduce exactly."""
    if section.name == PREAMBLE and section.title == "":
        return "it has no heading"
    made = document_of("x", "", [(section.name, "trainable", section.text, None)]).sections[0]
    items = sum(rule.mark != "" for rule in made.rules)
    if 2 * items <= len(made.rules):
        return "it is not a list"
    if _plain(made.body) == _plain(section.text):
        return None
    lines = [line for line, is_prose in prose(lines_of(section.text)) if is_prose and line.strip()]
    if any(re.match(r"\s*\d{1,3}[.)]\s", line) for line in lines):
        return "its numbers are not 1., 2., 3. and so on"
    if len(lines) < len([line for line in lines_of(section.text) if line.strip()]):
        return "it contains code between its lines"
    return "rules would change its text"


def _plain(text: str) -> list[str]:
    """The lines of a text, without bullet signs and blank lines between items."""
    found: list[str] = []
    for line, is_prose in prose(lines_of(text)):
        if line.strip() or not is_prose:
            found.append(re.sub(r"^(\s*)[*+](?=\s)", r"\1-", line.rstrip()) if is_prose else line)
    return found


def literal_text(text: str, margin: str) -> str:
    """A text literal: in triple quotes if they keep every character, else with escapes."""
    lines = text.split("\n")
    indented = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    plain = all(line.rstrip() == line and line.isprintable() for line in lines)
    if not text or indented or not plain or '"""' in text:
        return quote(text)
    body = "\n".join(f"{margin}  {line}" if line else "" for line in lines)
    return f'"""\n{body}\n{margin}"""'
