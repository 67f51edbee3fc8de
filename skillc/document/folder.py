"""A skill as a folder: SKILL.md, the sections in other files, and the files that are kept unchanged.

A section with `file = "references/refunds.md"` is one line in SKILL.md, which links the file, and its text is in the
file. `files_of` returns all files of a skill, for everything that writes or installs one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from skillc.artifact_paths import SCRIPTS, SKILL_FILE, is_script
from skillc.document.markdown import heading, lines_of, tidy, trim
from skillc.document.skill import (
    Document,
    Section,
    file_sections,
    link_line,
    script_rules,
    script_sections,
    section_title,
)
from skillc.document.skill_md import from_skill_md, to_skill_md
from skillc.errors import SkillcError
from skillc.skill_files import check_distinct, decoded, plain_name, read_folder
from skillc.syntax.files import PathError, resolve_path

_SUFFIX = ".md"
_LINK = re.compile(r"(?:(?P<about>\S.*): read|Read) \[(?P<path>[^\[\]()]+)\]\((?P=path)\)\.")


def files_of(document: Document) -> Mapping[str, bytes]:
    """Return the files of a skill by their paths in its folder: SKILL.md, sections in files, kept files.

    A section without text has neither a link nor a file.

    Raises:
        SkillcError: two files have one path on systems that ignore case.
    """
    files = {SKILL_FILE: to_skill_md(document).encode()}
    for section in file_sections(document):
        files[section.file or ""] = reference_text(section).encode()
    check_distinct([*files, *(name for name, _ in document.files)])
    return {**files, **dict(document.files)}


def read_skill(path: Path, text: str, *, whole: bool = False) -> Document:
    """Return the skill in a SKILL.md with the files that its sections are in.

    Args:
        path: the file; one of another name is only its text.
        text: its text.
        whole: whether to read all files of its folder, for rollouts that install the skill.

    Raises:
        SkillcError: it is no skill, or its files cannot be read.
    """
    if path.name != SKILL_FILE:
        return from_skill_md(text)
    if whole:
        return document_from({**read_folder(path.parent), SKILL_FILE: text.encode()})
    files = read_linked(path, text)
    return replace(document_from({**files, SKILL_FILE: text.encode()}, exact=False), files=())


def read_linked(path: Path, text: str) -> Mapping[str, bytes]:
    """Return the files that the sections of a SKILL.md link, without those that are missing.

    Raises:
        SkillcError: it is no skill, or a file cannot be read.
    """
    found = {name: path.parent / name for name in linked_files(text)}
    try:
        return {name: place.read_bytes() for name, place in found.items() if place.is_file()}
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be read: {problem.strerror}") from problem


def document_from(files: Mapping[str, bytes], *, exact: bool = True) -> Document:
    """Return the skill in a folder; `files_of` returns the same files, except for the layout of SKILL.md.

    A section that only links a file becomes a section in that file; with `exact` only if skillc would write the same
    file, which keeps any other byte for byte.

    Raises:
        SkillcError: SKILL.md is no skill, or a linked file is not UTF-8.
    """
    document = from_skill_md(decoded(SKILL_FILE, files[SKILL_FILE], "utf-8-sig"))
    taken = {SKILL_FILE}
    sections = []
    for section in document.sections:
        found = _linked(section, files, exact=exact)
        if found is not None:
            taken.add(found.file or "")
            section = found
        sections.append(section)
    kept = tuple((name, content) for name, content in sorted(files.items()) if name not in taken)
    return replace(document, sections=tuple(sections), files=kept)


def linked_files(text: str) -> tuple[str, ...]:
    """Return the paths that the sections of a SKILL.md link, as skillc writes them.

    Raises:
        SkillcError: the frontmatter is not closed.
    """
    found = (_LINK.fullmatch(section.text) for section in from_skill_md(text).sections)
    return tuple(match["path"] for match in found if match is not None and _is_text_file(match["path"]))


def reference_text(section: Section) -> str:
    """Return the text of a section's file: its title as the heading, and its body; of a script only the body."""
    if section.is_script:
        return section.body
    return tidy(f"# {section_title(section)}\n\n{section.body}")


def reference_body(text: str) -> str:
    """Return the body of a section's file, without its heading."""
    lines = trim(lines_of(text.removeprefix("\ufeff")))
    first = heading(lines[0]) if lines else None
    return "\n".join(trim(lines[1:] if first is not None and first.level == 1 else lines))


def in_one(document: Document) -> Document:
    """Return a skill with all sections but scripts in SKILL.md, as targets that cannot open files read it."""
    sections = (each if each.is_script else replace(each, file=None, about="") for each in document.sections)
    return replace(document, sections=tuple(sections))


def texts_in_one(skill: bytes, files: Mapping[str, bytes]) -> bytes:
    """Return a SKILL.md with the text of each linked file in place of its link.

    Raises:
        UnicodeDecodeError: a file is not UTF-8.
    """
    lines = []
    for line in skill.decode("utf-8-sig").replace("\r\n", "\n").split("\n"):
        match = _LINK.fullmatch(line)
        content = files.get(match["path"]) if match is not None else None
        lines.append(line if content is None else reference_body(content.decode("utf-8-sig")))
    return "\n".join(lines).encode()


def with_scripts(document: Document, folder: Path | None) -> Document:
    """Return a skill with the scripts that its compiled folder has.

    Raises:
        SkillcError: a script cannot be read, or is not UTF-8.
    """
    for section in script_sections(document):
        place = folder / section.file if folder is not None and section.file is not None else None
        if place is None or not place.is_file():
            continue
        try:
            text = decoded(str(place), place.read_bytes())
        except OSError as problem:
            raise SkillcError(f"`{place}` cannot be read: {problem.strerror}") from problem
        taken = set(document.ids) - {rule.id for rule in section.rules}
        document = document.with_section(replace(section, rules=script_rules(text, section.name, taken)))
    return document


def _linked(section: Section, files: Mapping[str, bytes], *, exact: bool) -> Section | None:
    """Return the section of a linked file, None if the section is text, or the file is not as skillc writes it."""
    match = _LINK.fullmatch(section.text)
    path = match["path"] if match is not None else ""
    if match is None or path not in files or not _is_text_file(path) or section.title == "":
        return None
    text = decoded(path, files[path], "utf-8-sig").replace("\r\n", "\n")
    found = replace(section, text=reference_body(text), file=path, about=match["about"] or "")
    return found if not exact or (reference_text(found) == text and link_line(found) == section.text) else None


def _is_text_file(path: str) -> bool:
    return section_file_problem(path) is None and not is_script(path)


def section_file_problem(path: str) -> tuple[str, str] | None:
    """Return why a section cannot be in a file of the skill's folder, and how to fix it; None if it can."""
    example = 'write a path in the skill, such as `file = "references/refunds.md"`'
    try:
        whole = resolve_path(path, "", "the skill's folder")
    except PathError as problem:
        return problem.message, f'write `file = "{problem.instead}"`' if problem.instead else example
    if whole != path:
        return f"`{path}` is not the shortest form of its path", f'write `file = "{whole}"`'
    if posixpath.splitext(path)[1] != _SUFFIX and not is_script(path):
        return f"`{path}` is neither a `.md` file nor below `{SCRIPTS}`", example
    if plain_name(path) == plain_name(SKILL_FILE):
        return "SKILL.md has the sections without a file", "remove `file`, or name another"
    if any(part.startswith(".") for part in path.split("/")):
        return f"`{path}` is hidden, so no install copies it", example
    if re.search(r"[\s\[\]()<>|?*\"`]", path):
        return f"`{path}` cannot be linked from markdown on every system", "use letters, digits, `-`, `_` and `.`"
    return None
