"""Which program a compiled skill belongs to, so that no two programs write one folder and count one lock's looks."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.errors import SkillcError
from skillc.plan.lock import Lock

_DIGEST = "sha256:"


def path_to(program: Path, base: Path) -> str:
    """Return how a lock in `base` names a program: by the path from `base`, with `/`.

    A path that leaves the user's projects would name folders of one machine. Its digest replaces it.
    """
    whole, start = _place(program), base.resolve()
    try:
        between = Path(os.path.relpath(whole, start)).as_posix()
        meeting = Path(os.path.commonpath((whole, start)))
    except ValueError:  # Two drives of Windows.
        return _digest(whole)
    if meeting not in (start, whole.parent) and _is_above_projects(meeting):
        return _digest(whole)
    return between


def check_owner(program: Path, paths: ArtifactPaths, lock: Lock | None) -> None:
    """Refuse a program the compiled skill of another one.

    Raises:
        SkillcError: the lock names another program, which has a skill of this name.
    """
    owner = other_owner(program, paths, lock)
    if owner is not None:
        raise SkillcError(
            f"`{paths.folder}` is the compiled skill of {owner}, and `{program}` has a skill of that name too",
            hint="rename one of the two skills, or compile one with `--output` into another folder",
        )


def other_owner(program: Path, paths: ArtifactPaths, lock: Lock | None) -> str | None:
    """Return how a message names the other program that a lock belongs to, None if it belongs to this one.

    A program that is gone, or that has no skill of this name any more, was renamed or moved: its skill is free.
    """
    if lock is None or lock.program.path == path_to(program, paths.base):
        return None
    named = lock.program.path
    if named is not None and named.startswith(_DIGEST):
        return f"another `{lock.program.file}`, in a folder that the lock does not name"
    place = _named(paths, lock)
    if not place.is_file() or _same(place, program) or paths.name not in _skills_in(place):
        return None
    return f"`{_shown(place)}`"


def is_of(program: Path, paths: ArtifactPaths, lock: Lock) -> bool:
    """Return whether a lock may belong to a program; in locks without a path, by the name of the file alone."""
    if lock.program.path is None:
        return lock.program.file == program.name
    return other_owner(program, paths, lock) is None


def program_of(paths: ArtifactPaths, lock: Lock) -> Path | None:
    """Return the program that a lock names, None if it is not there."""
    place = _named(paths, lock)
    return Path(_shown(place)) if place.is_file() else None


def _named(paths: ArtifactPaths, lock: Lock) -> Path:
    base, path = paths.base.resolve(), lock.program.path
    if path is None or path.startswith(_DIGEST):
        return base.parent / lock.program.file
    return Path(os.path.normpath(base / path))


def _place(program: Path) -> Path:
    """Return the place of a program without links in its folders; a program that is a link keeps its own name."""
    return program.parent.resolve() / program.name


def _digest(place: Path) -> str:
    return _DIGEST + hashlib.sha256(place.as_posix().encode()).hexdigest()[:16]


def _is_above_projects(folder: Path) -> bool:
    """Return whether a folder holds whole machines' or users' trees: a root, or a folder above the user's own."""
    try:
        home = Path.home().resolve()
    except RuntimeError:
        home = folder
    return folder == Path(folder.anchor) or (home != folder and home.is_relative_to(folder))


def _skills_in(program: Path) -> set[str]:
    """Artifact names of the skills of a program, even of one with errors."""
    from skillc.frontend import check_file
    from skillc.plan.resolve import artifact_name

    try:
        checked = check_file(program)
    except SkillcError:
        return set()
    return {artifact_name(each.name or "") for each in checked.entities if each.kind == "skill"}


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _shown(place: Path) -> str:
    try:
        return str(place.relative_to(Path.cwd()))
    except ValueError:
        return str(place)
