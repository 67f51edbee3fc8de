"""The program that a compiled skill belongs to: two programs never share a folder or the looks of a lock."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths, is_script
from skillc.errors import SkillcError
from skillc.gates.terms import TextConstant, calls
from skillc.plan.digest import digest_of_tests
from skillc.plan.lock import Lock
from skillc.plan.schema import Plan, artifact_name
from skillc.user_code import code_digest

_DIGEST = "sha256:"


def path_to(program: Path, base: Path) -> str:
    """Return how a lock in `base` names a program: by the path from `base`, with `/`.

    A path that leaves the user's projects would name folders of one machine, so its digest replaces it.
    """
    # A program that is a link keeps its own name.
    whole, start = program.parent.resolve() / program.name, base.resolve()
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
            f"`{paths.folder}` is the compiled skill of {owner}, and `{program}` has a skill of the same name",
            hint="rename one of the two skills, or compile one into another folder with `--output`",
        )


def other_owner(program: Path, paths: ArtifactPaths, lock: Lock | None) -> str | None:
    """Return the name in messages of the other program that owns a lock, None if this program owns it.

    A program that is gone, or has no skill of this name any more, was renamed or moved, and owns nothing.
    """
    if lock is None or lock.program.path == path_to(program, paths.base):
        return None
    named = lock.program.path
    if named is not None and named.startswith(_DIGEST):
        return f"another `{lock.program.file}`, in a folder that the lock does not name"
    place = _named(paths, lock)
    if not place.is_file() or _same(place, program) or paths.name not in _skills_in(place):
        return None
    return f"`{_relative(place)}`"


def is_of(program: Path, paths: ArtifactPaths, lock: Lock) -> bool:
    """Return whether a lock may belong to a program; locks without a path are matched by the file's name."""
    if lock.program.path is None:
        return lock.program.file == program.name
    return other_owner(program, paths, lock) is None


def program_of(paths: ArtifactPaths, lock: Lock) -> Path | None:
    """Return the program that a lock names, None if it is missing."""
    place = _named(paths, lock)
    return _relative(place) if place.is_file() else None


def _named(paths: ArtifactPaths, lock: Lock) -> Path:
    base, path = paths.base.resolve(), lock.program.path
    if path is None or path.startswith(_DIGEST):
        return base.parent / lock.program.file
    return Path(os.path.normpath(base / path))


def _digest(place: Path) -> str:
    return _DIGEST + hashlib.sha256(place.as_posix().encode()).hexdigest()[:16]


def _is_above_projects(folder: Path) -> bool:
    """Return whether a folder is a root, or above the home folder."""
    try:
        home = Path.home().resolve()
    except RuntimeError:
        home = folder
    return folder == Path(folder.anchor) or (home != folder and home.is_relative_to(folder))


def _skills_in(program: Path) -> set[str]:
    """Return the artifact names of the skills of a program, even of one with errors."""
    from skillc.frontend import check_file

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


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def own_code_digest(plan: Plan, root: Path) -> str | None:
    """Return the digest of the code that a plan names, without running it; None if it names none.

    It is that of Python files, of the tests of scripts, and of the files that scripts begin with.
    """
    found = {
        function.value
        for metric in plan.metrics
        for call in calls(metric.term)
        if call.function == "python" and isinstance(function := call.arguments[0], TextConstant)
    }
    names = sorted(found | {model.backend for model in plan.models.values() if model.backend is not None})

    def read(path: str) -> bytes | None:
        place = root / path
        return place.read_bytes() if place.is_file() else None

    parts = [code_digest(read, name) for name in names]
    if any(section.tests is not None for section in plan.skill.sections):
        begun = (f"{plan.skill.files}/{each.file}" for each in plan.skill.sections if is_script(each.file))
        parts += [digest_of_tests(plan, root), *(hashlib.sha256(read(path) or b"").hexdigest() for path in begun)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest() if parts else None
