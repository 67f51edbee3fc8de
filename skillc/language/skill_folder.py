"""Rules over the files of a skill's folder: where sections may be, and which files are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skillc.artifact_paths import SKILL_FILE
from skillc.diagnostics.diagnostic import Reporter
from skillc.errors import SkillcError
from skillc.language.checked import Entity, Setting
from skillc.language.modules import Loader
from skillc.language.skill_scripts import check_scripts
from skillc.language.types import add_error
from skillc.skill_files import collision, list_folder, plain_name
from skillc.syntax.files import PathError, resolve_path


def check_skill_folder(report: Reporter, skill: Entity, loader: Loader) -> None:
    """Check the paths of sections in files, and the folder of files that are kept."""
    placed: dict[str, Setting] = {}
    for section in skill.children:
        if section.kind == "section":
            _check_about(report, section)
        setting = section.settings.get("file") if section.kind == "section" else None
        if setting is None or not isinstance(setting.value, str):
            continue
        if not _check_path(report, section, setting):
            continue
        clash = collision([*(path for path in placed), setting.value])
        if clash is not None:
            other = next(path for path in clash if path in placed)
            message = f"`{setting.value}` and `{other}` cannot be two files of one folder"
            if other == setting.value:
                message = f"two sections are in `{other}`"
            add_error(report, "SK425", setting, message, "write each section to a file of its own")
            continue
        placed[setting.value] = setting
    begun = {each.file for each in check_scripts(report, skill, loader)}
    files = skill.settings.get("files")
    if files is not None and isinstance(files.value, str):
        _check_kept(report, files, files.value, {n: each for n, each in placed.items() if n not in begun}, loader)


def _check_about(report: Reporter, section: Entity) -> None:
    """Check the settings of a section that need a file."""
    about, file = section.settings.get("about"), section.settings.get("file")
    if about is not None and file is None:
        hint = 'add `file = "references/..."`, or remove `about`'
        add_error(report, "SK424", about, "`about` says when to read a file, and the section is in SKILL.md", hint)
    text = about.value if about is not None else ""
    if about is not None and isinstance(text, str) and not " ".join(text.split()).rstrip(".:"):
        add_error(report, "SK424", about, "`about` is empty", "write when to read the file, or remove it")


def _check_path(report: Reporter, section: Entity, setting: Setting) -> bool:
    # Imported here because most programs have no section in a file, and the import takes 3 % of a `check`.
    from skillc.document.folder import section_file_problem

    assert isinstance(setting.value, str)
    problem = section_file_problem(setting.value)
    title = section.settings.get("title")
    if problem is None and title is not None and isinstance(title.value, str) and not title.value.strip():
        problem = "a section in a file needs a title", "remove `title`: SKILL.md links the file below the title"
    if problem is not None:
        add_error(report, "SK424", setting, *problem)
    return problem is None


def _check_kept(report: Reporter, setting: Setting, written: str, placed: dict[str, Setting], loader: Loader) -> None:
    def fail(message: str, hint: str | None) -> None:
        report.add("SK426", setting.source, setting.span, message, hint=hint)

    try:
        path = resolve_path(written, "")
        if path == ".":
            return fail("the program's folder cannot be the skill's files", "move the files into a folder of their own")
        place = loader.folder().inside(path)
        if not loader.complete and not place.exists():
            return None
        if not place.is_dir():
            what = "is a file, not a folder" if place.exists() else "does not exist beside the program"
            return fail(f"the folder `{written}` {what}", "name the folder that has the skill's files")
        names = [name for name in list_folder(place) if name != SKILL_FILE]
    except PathError as problem:
        hint = f'write `files = "{problem.instead}"`' if problem.instead else "copy the files into the program's folder"
        return fail(problem.message, hint)
    except SkillcError as problem:
        return fail(problem.message.replace(f"{loader.root}/", ""), problem.hint)
    for one, other in _clashes(names, [SKILL_FILE, *placed]):
        message = f"`{written}/{one}` cannot be beside `{other}` in the skill"
        hint = "rename it, or the `file` of the section" if other in placed else "rename it"
        fail(message, hint)
    return None


def _clashes(names: Sequence[str], written: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each kept file with the written one that takes its path."""
    for other in written:
        key = plain_name(other)
        for name in names:
            known = plain_name(name)
            if known == key or known.startswith(f"{key}/") or key.startswith(f"{known}/"):
                yield name, other
