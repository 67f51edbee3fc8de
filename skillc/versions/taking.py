"""Take hand edits of SKILL.md into the program: `compile --take-edits`.

SKILL.md is compared section by section with the text of the last compile. The text of an edited section goes to the
program: for a frozen section as its text, for a trainable or slow one as the text that training starts from. A new
heading becomes a frozen section; further keys of the frontmatter become the setting `frontmatter`. Edits that the
program cannot express are refused by name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from skillc.artifact_paths import ArtifactPaths
from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Fix
from skillc.diagnostics.fixing import apply_fixes
from skillc.diagnostics.render import difference
from skillc.document.folder import in_one
from skillc.document.markdown import below_section
from skillc.document.skill import Section, section_title, title_of
from skillc.document.skill_md import from_skill_md, further_keys, read_frontmatter, section_name, to_skill_md
from skillc.errors import SkillcError
from skillc.fences import describe_unclosed
from skillc.frontend import ProgramError, check_source, plan_file
from skillc.plan.existing import SPEC_KEYS
from skillc.plan.initial import initial_document
from skillc.plan.schema import Plan
from skillc.syntax import nodes
from skillc.syntax.files import read_source, write_source
from skillc.syntax.formatting.lines import FENCE, STEP
from skillc.syntax.literals import quote
from skillc.syntax.outline import indentation
from skillc.syntax.source import Source, Span
from skillc.text import listed

if TYPE_CHECKING:
    from skillc.versions.hand_edits import HandEdit


@dataclass(frozen=True, slots=True)
class TakenEdits:
    """Edits taken into a program.

    Attributes:
        parts: names of the changed parts: `about`, `frontmatter`, sections.
        difference: of the program's text, as a unified diff.
    """

    program: Path
    parts: tuple[str, ...]
    difference: str


@dataclass(frozen=True, slots=True)
class _Parts:
    """A SKILL.md by the sections of a program; `lead` is the text before the first known one."""

    name: str
    about: str
    title: str
    lead: str
    texts: Mapping[str, str]
    added: tuple[_Added, ...]
    frontmatter: str


@dataclass(frozen=True, slots=True)
class _Added:
    """A heading without a section in the program, its text, and the section before it."""

    heading: str
    text: str
    after: str


@dataclass(frozen=True, slots=True)
class _Changes:
    """The parts of a SKILL.md that the program lacks, and descriptions of edits that it cannot express."""

    about: str | None
    texts: Mapping[str, str]
    added: tuple[_Added, ...]
    refused: tuple[str, ...]
    frontmatter: str | None

    @property
    def any(self) -> bool:
        """Whether there are edits to take or to refuse."""
        return bool(self.parts or self.refused)

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the changed parts."""
        settings = {"about": self.about, "frontmatter": self.frontmatter}
        changed = [name for name, value in settings.items() if value is not None]
        return (*changed, *self.texts, *(added.heading for added in self.added))


def is_taken(plan: Plan, paths: ArtifactPaths, edit: HandEdit) -> bool:
    """Return whether a program contains all edits of its SKILL.md, so that overwriting the file loses nothing."""
    if edit.path != paths.skill or edit.foreign:
        return False
    try:
        return not _changes(plan, edit).any
    except (SkillcError, UnicodeDecodeError):
        return False


def take_edits(program: Path, paths: ArtifactPaths, edit: HandEdit) -> TakenEdits | None:
    """Write the edits of a SKILL.md into its program; return None if the program already contains them.

    Raises:
        SkillcError: the program cannot express an edit, or cannot be written; nothing is changed.
    """
    planned = plan_file(program, complete=False)
    try:
        changes = _changes(planned.plan, edit)
    except UnicodeDecodeError as problem:
        raise SkillcError(f"`{paths.skill}` is not UTF-8", hint="save it as UTF-8") from problem
    if not changes.any:
        return None
    fixes, refused = _fixes(planned.checked.program, planned.plan, changes)
    refused = [*changes.refused, *refused]
    if refused:
        raise SkillcError(
            f"`{paths.skill}` has edits that the program cannot take: {'; '.join(refused)}",
            hint="revert these, or make them in the program by hand; `--force` overwrites all edits",
        )
    source = read_source(program)
    after = apply_fixes(source, fixes)
    _prove(program, after, edit)
    write_source(program, after.text)
    return TakenEdits(program, changes.parts, difference(str(program), source.text, after.text))


def _prove(program: Path, after: Source, edit: HandEdit) -> None:
    """Refuse a rewritten program that has errors or differs from SKILL.md."""
    checked = check_source(after, program.parent)
    try:
        left = _changes(plan_file(program, checked=checked, complete=False).plan, edit)
    except ProgramError as problem:
        raise ProgramError(program, problem.diagnostics) from None
    if left.any:
        names = listed(left.parts) or "some parts"
        raise SkillcError(
            f"the program cannot express the edits of {names} exactly",
            hint=f"make them in `{program}` by hand",
        )


# ---- what changed ---------------------------------------------------------------------------------


def _changes(plan: Plan, edit: HandEdit) -> _Changes:
    """Compare a SKILL.md with the compiled text, or with the program if that is unknown."""
    initial = initial_document(plan)
    names = {title_of(section.name): section.name for section in initial.sections}
    written = edit.written.decode("utf-8-sig") if edit.written is not None else to_skill_md(in_one(initial))
    before = _parts(written, names)
    # Headings inside a section's text belong to it; only new ones become sections.
    known = {added.heading for added in before.added}
    before, now = _parts(written, names, known), _parts(edit.content.decode("utf-8-sig"), names, known)
    declared = {section.name for section in plan.skill.sections}
    texts, refused = dict[str, str](), list[str]()
    for section in initial.sections:
        text = now.texts.get(section.name, "")
        edited = Section(section.name, section.mode, below_section(text))
        if text == before.texts.get(section.name, "") or edited.body == section.body:
            continue
        if section.name not in declared:
            refused.append(f"the section `{section.name}`, which the program does not declare")
        elif not text and section.mode == "frozen":
            refused.append(f"the frozen section `{section.name}` was removed")
        elif problem := describe_unclosed(text):
            refused.append(f"the section `{section.name}`: {problem}")
        else:
            texts[section.name] = text if section.mode == "trainable" else below_section(text)
    if now.name != before.name:
        refused.append(f"the name `{now.name}`: the program defines the skill's name")
    if now.title != before.title or now.lead not in (before.lead, _lead_with(plan, now.texts, names)):
        refused.append("text above the first section, which a compile generates from the program's `task`")
    about = now.about if now.about not in (before.about, initial.about) else None
    frontmatter = now.frontmatter if now.frontmatter not in (before.frontmatter, initial.frontmatter) else None
    if frontmatter is not None:
        refused += _refused_keys(frontmatter, initial.frontmatter)
    return _Changes(about, texts, now.added, tuple(refused), frontmatter)


def _refused_keys(frontmatter: str, declared: str) -> list[str]:
    """Describe the keys of a frontmatter that a program cannot take."""
    keys = further_keys(frontmatter) if frontmatter else set[str]()
    if keys is None:
        return ["the frontmatter, which is not YAML"]
    known = {*SPEC_KEYS, *read_frontmatter(declared.split("\n"))}
    return [f"the frontmatter key `{key}`, which Agent Skills does not define" for key in sorted(keys - known)]


def _lead_with(plan: Plan, texts: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Return the generated text above the first section of a skill with other texts."""
    sections = tuple(each.model_copy(update={"text": texts.get(each.name, "")}) for each in plan.skill.sections)
    other = plan.model_copy(update={"skill": plan.skill.model_copy(update={"sections": sections})})
    return _parts(to_skill_md(in_one(initial_document(other))), names).lead


def _parts(text: str, names: Mapping[str, str], inner: Collection[str] = ()) -> _Parts:
    """Split a SKILL.md by known sections (by heading); the text of a section includes `inner` headings."""
    document = from_skill_md(text)
    lead, texts, added = list[str](), dict[str, str](), list[_Added]()
    last = ""
    for section in document.sections:
        heading = section_title(section)
        whole = f"## {heading}\n\n{section.text}" if heading else section.text
        if heading in names and names[heading] not in texts:
            last = names[heading]
            texts[last] = section.text
        elif not last:
            lead.append(whole)
        elif heading in inner:
            texts[last] += f"\n\n{whole}"
        else:
            added.append(_Added(heading, section.text, last))
    title = title_of(document.name) if document.title is None else document.title
    return _Parts(document.name, document.about, title, "\n\n".join(lead), texts, tuple(added), document.frontmatter)


# ---- where it goes --------------------------------------------------------------------------------


def _fixes(program: nodes.Program, plan: Plan, changes: _Changes) -> tuple[list[Fix], list[str]]:
    """Return the replacements in the program's text, and descriptions of refused edits."""
    source, fixes, refused = program.source, list[Fix](), list[str]()
    declarations = [each for each in program.statements if isinstance(each, nodes.Declaration)]
    skill = next(each for each in declarations if _words(each)[:1] == ["skill"])
    block = skill.block.statements if skill.block is not None else ()
    inside = [each for each in block if isinstance(each, nodes.Declaration)]
    sections = {_words(each)[-1]: each for each in inside if "section" in _words(each)}
    if changes.about is not None:
        about = next((each for each in inside if _words(each)[-1] == "about"), None)
        value = about.value if about is not None else None
        if isinstance(value, nodes.String | nodes.Text):
            fixes.append(Fix(value.span, quote(changes.about)))
        else:
            refused.append("the description, whose text is in another file")
    if changes.frontmatter is not None:
        own = next((each for each in inside if _words(each)[-1] == "frontmatter"), None)
        beside = next((each for each in inside if _words(each)[-1] == "about"), None)
        if own is not None and isinstance(own.value, nodes.String | nodes.Text):
            new_text = _fenced(source, own, changes.frontmatter) if changes.frontmatter else quote("")
            fixes.append(Fix(own.value.span, new_text))
        elif own is None and beside is not None:
            margin = "\n" + " " * indentation(source.text, beside.span.start)
            _insert(fixes, beside.span.end, f"{margin}frontmatter = {_fenced(source, beside, changes.frontmatter)}")
        else:
            refused.append("the frontmatter, whose text is in another file")
    for name, text in changes.texts.items():
        found = sections.get(name)
        if found is None or not isinstance(found.value, nodes.String | nodes.Text | None):
            refused.append(f"the section `{name}`, whose text is in another file")
        else:
            fixes.append(_text_fix(source, found, text))
    new: dict[str, list[str]] = {}
    taken = {section.name for section in plan.skill.sections}
    for added in changes.added:
        name = section_name(added.heading, taken)
        if title_of(name) != added.heading:
            refused.append(f"the heading `{added.heading}`: a section name can only produce `{title_of(name)}`")
            continue
        taken.add(name)
        new.setdefault(added.after, []).append(f"frozen section {name} = {_fenced(source, skill, added.text, STEP)}")
    for after, lines in new.items():
        if after not in sections:
            refused.append(f"a heading below `{after}`, which the program does not declare")
            continue
        end = sections[after].span.end
        margin = "\n" + " " * indentation(source.text, sections[after].span.start)
        _insert(fixes, end, "".join(margin + line for line in lines))
    return fixes, refused


def _insert(fixes: list[Fix], end: int, text: str) -> None:
    """Add text after a declaration, where a fix of its value may end."""
    at = next((i for i, fix in enumerate(fixes) if fix.span.end == end), None)
    if at is not None:
        fixes[at] = Fix(fixes[at].span, fixes[at].text + text)
    else:
        fixes.append(Fix(Span(end, end), text))


def _text_fix(source: Source, section: nodes.Declaration, text: str) -> Fix:
    """Return the replacement of a declared section's text, which may be removed or added."""
    end = section.words[-1].span.end
    if not text:
        return Fix(Span(end, section.value.span.end if section.value is not None else end), "")
    literal = _fenced(source, section, text)
    if section.value is not None:
        return Fix(section.value.span, literal)
    return Fix(Span(end, end), f" = {literal}")


def _fenced(source: Source, beside: nodes.Node, text: str, deeper: int = 0) -> str:
    """Return a text in fences, indented below the line of a node like `fmt`."""
    indent = indentation(source.text, beside.span.start) + deeper
    margin = " " * (indent + STEP)
    lines = text.replace(FENCE, f"\\{FENCE}").split("\n")
    return "\n".join([FENCE, *(margin + line if line.strip() else "" for line in lines), " " * indent + FENCE])


def _words(declaration: nodes.Declaration) -> list[str]:
    return [word.text for word in declaration.words]
