"""Write a compiled skill: SKILL.md and the module that runs it without skillc."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skillc.artifact_paths import ArtifactPaths
from skillc.conflict import check_merged
from skillc.document.folder import files_of
from skillc.document.skill import Document, scripts_of
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.plan.initial import initial_document, with_files
from skillc.plan.lock import has_digest
from skillc.plan.schema import Plan
from skillc.program.emitted import module_source
from skillc.skill_files import remove_files, write_file

if TYPE_CHECKING:
    from skillc.tools.tool import Tool


def check_folder(paths: ArtifactPaths) -> None:
    """Refuse folders that no skill can be written to, or that have an unresolved merge.

    Raises:
        SkillcError: a file is where a folder must be, the layout is an older one, or a file has conflict markers.
    """
    check_merged(paths)
    for folder in (paths.base, paths.folder):
        if folder.exists() and not folder.is_dir():
            raise SkillcError(f"`{folder}` is a file; the skill needs a folder", hint="choose another with `--output`")
    if (paths.folder / "skill.lock").exists():
        raise SkillcError(
            f"`{paths.folder}` has the layout of an earlier version, with lock and history inside",
            hint=f"move `skill.lock` to `{paths.lock}` and `history.jsonl` to `{paths.history}`, remove the other "
            "files of the folder, and compile again",
        )


def attributes_of(paths: ArtifactPaths, names: Iterable[str] = ()) -> Mapping[str, str]:
    """Return git's attributes of each file, by its pattern; `names` are the files of the lock.

    `-merge` prevents git from merging two skills line by line into one that no gate has tested. The lock gets conflict
    markers while a merge is unresolved. Line ends are fixed, so that digests match on every system; those of further
    files in the skill's folder are never converted.
    """
    folder = paths.key(paths.folder)
    further = [name for name in names if name.startswith(f"{folder}/") and name != paths.key(paths.skill)]
    below = {f"/{folder}/*/**": "-text -merge"} if any(name.count("/") > 1 for name in further) else {}
    beside = {f"/{_pattern(name)}": "-text -merge" for name in further if name.count("/") == 1}
    return {
        f"/{paths.key(paths.skill)}": "text eol=lf -merge",
        f"/{paths.key(paths.module)}": "text eol=lf -merge",
        f"/{paths.key(paths.lock)}": "text eol=lf",
        f"/{paths.key(paths.history)}": "text eol=lf merge=union",
        **below,
        **beside,
    }


def _pattern(name: str) -> str:
    """Return a pattern of git for one name; `*` matches characters that git would read as part of a pattern."""
    return re.sub(r"[^A-Za-z0-9._/-]+", "*", name)


def write_attributes(paths: ArtifactPaths, names: Iterable[str] = ()) -> None:
    """Add the attributes of a skill to `.gitattributes`; a pattern that the file already has is not changed.

    `names` are the files of its lock.

    A new file merges as a union, because two branches that compile different skills both add lines at its end.

    Raises:
        SkillcError: the file cannot be read or written.
    """
    place = paths.attributes
    try:
        before = place.read_bytes() if place.exists() else b"/.gitattributes merge=union\n"
        known = {words[0] for line in before.splitlines() if (words := line.split())}
        wanted = {pattern.encode(): line.encode() for pattern, line in attributes_of(paths, names).items()}
        missing = [pattern + b" " + line for pattern, line in wanted.items() if pattern not in known]
        if missing:
            end = b"\r\n" if b"\r\n" in before else b"\n"
            whole = before if before.endswith(b"\n") or not before else before + end
            write_atomically(place, whole + b"".join(line + end for line in missing))
    except OSError as problem:
        raise SkillcError(f"`{place}` cannot be written: {problem.strerror}") from problem


def artifact_files(
    paths: ArtifactPaths, plan: Plan, document: Document, root: Path = Path(), tools: Sequence[Tool] = ()
) -> dict[Path, bytes]:
    """Return the files of the skill's folder and the module by path.

    Raises:
        SkillcError: the files that the folder keeps cannot be read.
    """
    files = files_of(with_files(document, plan, root))
    return {
        **{paths.folder / name: content for name, content in files.items()},
        paths.module: module_source(plan, document, tools).encode(),
    }


def planned_files(plan: Plan, root: Path) -> dict[str, bytes | None]:
    """Return the files besides SKILL.md that a compile may write into the skill's folder, by their paths in it.

    The content is None for a section, whose text is not known before.

    Raises:
        SkillcError: the files that the folder keeps cannot be read.
    """
    sections: dict[str, bytes | None] = {each.file: None for each in plan.skill.sections if each.file is not None}
    return {**sections, **dict(with_files(initial_document(plan), plan, root).files)}


def first_scripts(plan: Plan, root: Path) -> dict[str, bytes]:
    """Return the scripts that training begins with, by their paths in the skill's folder.

    Raises:
        SkillcError: as `planned_files`.
    """
    if not any(section.tests is not None for section in plan.skill.sections):
        return {}
    return scripts_of(with_files(initial_document(plan), plan, root))


def write_artifact(
    paths: ArtifactPaths, files: Mapping[Path, bytes], *, earlier: Mapping[str, str] | None = None
) -> None:
    """Write the files of a compiled skill, each atomically.

    `earlier` are the digests of the files that skillc wrote before; those that the skill no longer has are removed.

    Raises:
        SkillcError: a file cannot be written.
    """
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
        for place, content in files.items():
            write_file(place, content)
        stale = []
        for name, digest in (earlier or {}).items():
            place = paths.base / name
            own = name.startswith(f"{paths.name}/") and ".." not in name.split("/") and place not in files
            if own and place.is_file() and has_digest(place.read_bytes(), digest):
                stale.append(place.relative_to(paths.folder).as_posix())
        remove_files(paths.folder, stale)
    except OSError as problem:
        raise SkillcError(f"`{paths.folder}` cannot be written: {problem.strerror}") from problem
