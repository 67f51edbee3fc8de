"""Write a document as SKILL.md, which any agent can load, and read such files."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from skillc.artifact_paths import ABOUT_CHARACTERS, NAME_CHARACTERS
from skillc.document.markdown import heading, lines_of, prose, tidy, trim
from skillc.document.skill import Document, Section, for_target, section_title, split_rules, title_of
from skillc.errors import SkillcError
from skillc.text import free_name

PREAMBLE = "preamble"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def to_skill_md(document: Document) -> str:
    """Return the file: frontmatter with `name`, `description` and further keys, then the text that the target reads.

    Sections in files are links.
    """
    keys = [f"name: {to_yaml(document.name)}", f"description: {to_yaml(document.about)}"]
    if document.frontmatter:
        keys.append(document.frontmatter)
    return "\n".join(["---", *keys, "---", "", for_target(document, linked=True)])


def from_skill_md(text: str) -> Document:
    """Return a SKILL.md, or a plain markdown file, as a document of frozen sections.

    A section begins at each `## ` heading; the text before the first is the section `preamble`, without a heading.
    The target reads the file's body, with one blank line around `#` and `##` headings. Frontmatter keys other than
    `name` and `description` are kept. Without a name, the first heading becomes the name.

    Raises:
        SkillcError: the frontmatter is not closed.
    """
    front, body = _parts(text)
    keys = read_frontmatter(front)
    title, sections = _outline(body)
    name = keys.get("name", "").strip() or _slug(title or "skill").replace("_", "-")
    own_title = None if title == title_of(name) else title or ""
    names: set[str] = set()
    frozen = []
    for head, content in sections:
        section = free_name(_slug(head) if head is not None else PREAMBLE, names)
        names.add(section)
        heading_text = None if head == title_of(section) else head or ""
        frozen.append(Section(section, "frozen", content, title=heading_text))
    further = "\n".join(other_lines(front, ("name", "description")))
    return Document(name, keys.get("description", ""), tuple(frozen), own_title, frontmatter=further)


def as_declared(text: str, declared: Document, *, own: bool) -> Document:
    """Fill the sections of a declared skill with the rules and slow texts of a SKILL.md.

    With `own`, skillc wrote the file, and its frozen texts are not compared.

    Raises:
        SkillcError: a text of the file would be lost.
    """
    sections = {section_title(section): section for section in declared.sections}
    introductions = {
        tidy("\n\n".join(part for part in parts if part))
        for parts in ((declared.task, declared.lead), (declared.task,))
    }
    texts: dict[str, str] = {}
    lost = []
    for section in from_skill_md(text).sections:
        title = section_title(section)
        known = sections.get(title)
        if known is not None and known.mode != "frozen":
            texts[known.name] = section.text
        elif known is None and title:
            lost.append(f"the section `{title}`, which the program does not declare")
        elif not own and tidy(section.text) not in ({tidy(known.text)} if known else introductions):
            lost.append(f"the frozen text of `{title}`" if title else "the text above the first `## ` heading")
    if lost:
        raise SkillcError(
            f"the program has no place for {'; '.join(lost)}", hint="write it into the program, or remove it"
        )
    taken: set[str] = set()
    filled = []
    for section in declared.sections:
        content = texts.get(section.name, "")
        if section.is_script:
            filled.append(section)
            continue
        if section.mode == "trainable":
            section = replace(section, rules=split_rules(content, section.name, taken))
            taken.update(rule.id for rule in section.rules)
        elif section.mode == "slow":
            section = replace(section, text=content)
        filled.append(section)
    return replace(declared, sections=tuple(filled))


def sections_of(text: str) -> Mapping[str, str]:
    """Return the sections of a SKILL.md by name: `## When to use` is `when_to_use`.

    Raises:
        SkillcError: the frontmatter is not closed.
    """
    return {section.name: section.text for section in from_skill_md(text).sections}


def frontmatter_and_body(text: str) -> tuple[dict[str, Any], str]:
    """Return the frontmatter of a SKILL.md as values, and the text below it, without blank lines before it.

    A date is its text, so that every value can be written as JSON.

    Raises:
        SkillcError: the frontmatter is not closed, or no YAML mapping.
    """
    import yaml

    front, body = _parts(text)
    try:
        found = yaml.safe_load("\n".join(front)) if front else {}
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        line = getattr(getattr(problem, "problem_mark", None), "line", 0) + 2
        hint = "put a value with a colon in quotes"
        raise SkillcError(f"the frontmatter is not YAML, line {line}", hint=hint) from problem
    if not isinstance(found, dict):
        raise SkillcError("the frontmatter is no mapping of YAML", hint="write it as `name: value` lines")
    values: dict[str, Any] = _as_json(found)
    return values, body.lstrip("\n")


def validate(name: str, description: str) -> list[str]:
    """Return the rules of Agent Skills that a name and a description break."""
    problems = []
    if not 1 <= len(name) <= NAME_CHARACTERS:
        problems.append(f"the name has {len(name)} characters; 1 to {NAME_CHARACTERS} are allowed")
    if name and not _NAME.fullmatch(name):
        problems.append(
            f"the name `{name}` may contain only a-z, 0-9 and single hyphens between them; "
            f"`{_slug(name).replace('_', '-')[:NAME_CHARACTERS].strip('-')}` is valid"
        )
    if not description.strip():
        problems.append("the description is empty")
    elif len(description) > ABOUT_CHARACTERS:
        problems.append(f"the description has {len(description)} characters; {ABOUT_CHARACTERS} are allowed")
    return problems


def _parts(text: str) -> tuple[list[str], str]:
    """Return the lines of the frontmatter, and the body."""
    lines = lines_of(text.removeprefix("\ufeff"))
    if lines[0].rstrip() != "---":
        return [], "\n".join(lines)
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        if is_mapping(lines[1:2]) and lines[1:2] != [""]:
            raise SkillcError("the frontmatter is not closed", hint="end it with a line `---`")
        return [], "\n".join(lines)
    if not is_mapping(lines[1:end]):
        return [], "\n".join(lines)
    return lines[1:end], "\n".join(lines[end + 1 :])


def _outline(body: str) -> tuple[str | None, list[tuple[str | None, str]]]:
    """Return the first heading, and (heading, text) of each section; the preamble's heading is None."""
    lines = trim(lines_of(tidy(body)))
    first = heading(lines[0]) if lines else None
    title = first.title if first and first.level == 1 and first.title else None
    if title is not None:
        lines = lines[1:]
    sections: list[tuple[str | None, list[str]]] = [(None, [])]
    for line, is_prose in prose(lines):
        found = heading(line) if is_prose else None
        if found and found.level == 2 and found.title:
            sections.append((found.title, []))
        else:
            sections[-1][1].append(line)
    # An empty section would be left out, so a heading without text belongs to the section before.
    whole: list[tuple[str | None, list[str]]] = []
    for head, content in sections:
        if trim(content) or not whole:
            whole.append((head, content))
        else:
            whole[-1][1].extend(["", f"## {head}", ""])
    return title, [(head, "\n".join(trim(content))) for head, content in whole if trim(content)]


def section_name(heading_text: str, taken: Collection[str]) -> str:
    """Return a free name for a section with a heading: `When to use` becomes `when_to_use`."""
    return free_name(_slug(heading_text), taken)


def _slug(heading_text: str) -> str:
    """Return a name that the language can write: `When to use` becomes `when_to_use`."""
    plain = unicodedata.normalize("NFKD", heading_text).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
    if not words:
        return "section"
    return words if words[0].isalpha() else re.sub(r"^[0-9_]+", "", words) or f"section_{words}"


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ,.()/_'-]*[A-Za-z0-9.)]|[A-Za-z]")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_BARE_KEY = r"[^\s#:'\"\[\]{}&*!|>%@`,?-][^:#]*|-[^\s:#][^:#]*"
_KEY = re.compile(rf"""(?:"([^"\\]*)"|'([^']*)'|({_BARE_KEY}))\s*:(?:[ \t]+(.*)|$)""")
_COMMENT = re.compile(r"(^|\s)#.*$")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", '"': '\\"', "\\": "\\\\"}


def to_yaml(text: str) -> str:
    """Return a text as one YAML scalar on one line: plain if that is safe, else double-quoted.

    Three hyphens are escaped, because the reference validator ends the frontmatter at any `---`.
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and "---" not in text:
        return text
    return '"' + "".join(map(_escaped_character, text)).replace("---", "--\\x2D") + '"'


def _escaped_character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character == " " or (character.isprintable() and character != "\ufeff"):
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def read_frontmatter(lines: list[str]) -> Mapping[str, str]:
    """Return the top-level keys of a YAML mapping with their values as text; never raise.

    A list, a mapping and invalid YAML, such as a plain value that contains `: `, become their text on one line.
    """
    found: dict[str, str] = {}
    key, value = "", list[str]()
    for line in [*lines, "end:"]:
        match = _KEY.fullmatch(line.rstrip())
        if match is None:
            value.append(line)
            continue
        if key:
            found.setdefault(key, _value(value))
        key, value = _key(match), [match[4] or ""]
    return found


def _key(match: re.Match[str]) -> str:
    return next(key for key in match.groups()[:3] if key is not None).strip()


def other_lines(lines: list[str], known: Collection[str]) -> list[str]:
    """Return the lines of a YAML mapping without those of some top-level keys."""
    kept: list[str] = []
    keeps = False
    for line in lines:
        match = _KEY.fullmatch(line.rstrip())
        if match is not None:
            keeps = _key(match) not in known
        if keeps and line.strip():
            kept.append(line.rstrip())
    return kept


def further_keys(text: str) -> set[str] | None:
    """Return the top-level keys of a YAML mapping, None if the text is none or would end the frontmatter."""
    lines = text.strip("\n").split("\n")
    if "---" in text or not is_mapping(lines):
        return None
    return set(read_frontmatter(lines))


def is_mapping(lines: list[str]) -> bool:
    """Return whether lines between two `---` can be a YAML mapping rather than text between thematic breaks."""
    outer = [line for line in lines if line.strip() and line[0] not in " \t#" and not line.startswith("- ")]
    keys = [line for line in outer if _KEY.fullmatch(line.rstrip())]
    return not outer or (bool(keys) and outer[0] is keys[0])


def _as_json(value: Any) -> Any:
    """Return a value of YAML with only what JSON has: a date is its text."""
    if isinstance(value, dict):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, list | set):
        return [_as_json(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _value(lines: list[str]) -> str:
    import yaml

    try:
        node = yaml.compose("key: " + "\n".join(lines), yaml.SafeLoader).value[0][1]
        if isinstance(node, yaml.ScalarNode):
            value = str(node.value)
            return value.removesuffix("\n") if node.style in ("|", ">") else value
    except (yaml.YAMLError, RecursionError):
        pass
    return " ".join(text for line in lines if (text := _COMMENT.sub("", line).strip()))
