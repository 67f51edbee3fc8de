"""Write the compiled skill: SKILL.md in its own folder for agents, the module and git's attributes beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.conflict import check_merged
from skillc.document.skill import Document
from skillc.document.skill_md import to_skill_md
from skillc.errors import SkillcError
from skillc.files import write_whole
from skillc.plan.schema import Plan
from skillc.program.emit import module_source


def check_folder(paths: ArtifactPaths) -> None:
    """Refuse places that no skill can be written to, or that a merge left open.

    Raises:
        SkillcError: a file is in the place of a folder, the layout is an older one, or a file holds conflict marks.
    """
    check_merged(paths)
    for folder in (paths.base, paths.folder):
        if folder.exists() and not folder.is_dir():
            raise SkillcError(f"`{folder}` is a file; the skill needs a folder", hint="choose another with `--output`")
    if (paths.folder / "skill.lock").exists():
        raise SkillcError(
            f"`{paths.folder}` has the layout of an earlier skillc, with lock and history inside",
            hint=f"move `skill.lock` to `{paths.lock}` and `history.jsonl` to `{paths.history}`, remove the other "
            "files of the folder, and compile again",
        )


def attributes_of(paths: ArtifactPaths) -> Mapping[str, str]:
    """Return git's attributes of each file, by its pattern.

    `-merge` keeps git from mixing two skills line by line, which no gate has seen. A lock with conflict marks says that
    a merge is open. Line ends stay as written, so that digests hold on every system.
    """
    return {
        f"/{paths.key(paths.skill)}": "text eol=lf -merge",
        f"/{paths.key(paths.module)}": "text eol=lf -merge",
        f"/{paths.key(paths.lock)}": "text eol=lf",
        f"/{paths.key(paths.history)}": "text eol=lf merge=union",
    }


def write_attributes(paths: ArtifactPaths) -> None:
    """Add the attributes of a skill to `.gitattributes`; a pattern that is there already keeps its line.

    A new file merges as a union itself: two branches that each compile another skill both add lines at its end.

    Raises:
        SkillcError: the file cannot be read or written.
    """
    place = paths.attributes
    try:
        before = place.read_bytes() if place.exists() else b"/.gitattributes merge=union\n"
        known = {words[0] for line in before.splitlines() if (words := line.split())}
        wanted = {pattern.encode(): line.encode() for pattern, line in attributes_of(paths).items()}
        missing = [pattern + b" " + line for pattern, line in wanted.items() if pattern not in known]
        if missing:
            end = b"\r\n" if b"\r\n" in before else b"\n"
            whole = before if before.endswith(b"\n") or not before else before + end
            write_whole(place, whole + b"".join(line + end for line in missing))
    except OSError as problem:
        raise SkillcError(f"`{place}` cannot be written: {problem.strerror}") from problem


def artifact_texts(paths: ArtifactPaths, plan: Plan, document: Document) -> dict[Path, str]:
    """Return SKILL.md and the module, by their places."""
    return {paths.skill: to_skill_md(document), paths.module: module_source(plan, document)}


def write_artifact(paths: ArtifactPaths, texts: Mapping[Path, str]) -> None:
    """Write SKILL.md and the module over what is there; each file is there whole or not at all.

    Raises:
        SkillcError: a file cannot be written.
    """
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
        for place, text in texts.items():
            write_whole(place, text)
    except OSError as problem:
        raise SkillcError(f"`{paths.folder}` cannot be written: {problem.strerror}") from problem
