"""Files of a compiled skill that were edited by hand: found by the lock's digests, shown, never overwritten unasked."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillc.artifact_paths import SKILL_FILE, ArtifactPaths
from skillc.artifacts.owner import check_owner, path_to
from skillc.artifacts.written import WrittenCopies
from skillc.conflict import check_merged
from skillc.diagnostics.render import difference
from skillc.errors import SkillcError
from skillc.frontend import Planned
from skillc.plan.lock import Lock, has_digest, read_lock
from skillc.program.artifact import check_folder
from skillc.run.folder import HOME
from skillc.text import joined, listed
from skillc.versions.git import repository_of
from skillc.versions.taking import is_taken


@dataclass(frozen=True, slots=True)
class HandEdit:
    """A file that is not as skillc wrote it.

    Attributes:
        content: the file now.
        written: what skillc wrote; None where neither `.skillc` nor git has it.
        foreign: whether skillc never wrote a file there.
    """

    path: Path
    content: bytes
    written: bytes | None = None
    foreign: bool = False

    @property
    def difference(self) -> str:
        """A unified diff from what was written, line ends aside; empty where that is not known."""
        if self.written is None:
            return ""
        return difference(str(self.path), _text(self.written), _text(self.content))


class HandEditedError(SkillcError):
    """Files that were edited by hand would be overwritten.

    Attributes:
        difference: what the edits changed, as unified diffs.
    """

    def __init__(self, edits: Sequence[HandEdit], program: Path, *, hint: str | None = None) -> None:
        names = listed([edit.path for edit in edits], "and")
        was = "was" if len(edits) == 1 else "were"
        if all(edit.foreign for edit in edits):
            message = f"{names} {was} not written by skillc and would be overwritten"
            hint = hint or "write elsewhere with `--output`, or overwrite it with `--force`"
        else:
            message = f"{names} {was} edited by hand and would be overwritten"
            unknown = [f"`{edit.path}`" for edit in edits if edit.written is None and not edit.foreign]
            if unknown:
                message += f"; no difference is shown for {joined(unknown)}: neither `.skillc` nor git has the "
                message += "compiled text"
            force = f"`--force` overwrites {'it' if len(edits) == 1 else 'them'}"
            if any(edit.path.name == SKILL_FILE for edit in edits):
                take = f"`skillc compile {program} --take-edits` writes the edits of SKILL.md into the program"
                force = f"{take}; {force}"
            hint = hint or force
        super().__init__(message, hint=hint)
        self.difference = "".join(edit.difference for edit in edits)


def hand_edits(paths: ArtifactPaths, lock: Lock | None, written: WrittenCopies) -> tuple[HandEdit, ...]:
    """Return the files of a compiled skill that are neither as its lock says nor left by a killed compile.

    Raises:
        SkillcError: a file cannot be read.
    """
    unfinished = written.unfinished(paths)
    found = []
    for name, path in paths.files.items():
        content = content_of(path)
        digests = [known[name] for known in (unfinished, lock.files if lock else {}) if name in known]
        if content is None or any(has_digest(content, digest) for digest in digests):
            continue
        before = next((text for digest in digests for text in _originals(paths, path, digest, written)), None)
        found.append(HandEdit(path, content, before, foreign=not digests))
    return tuple(found)


def edit_of_skill(program: Path, paths: ArtifactPaths) -> HandEdit | None:
    """Return the hand edit of a program's SKILL.md, None if it is as skillc wrote it or is not there.

    Raises:
        SkillcError: skillc never wrote it, another program owns it, or a merge left it open.
    """
    check_folder(paths)
    lock = read_lock(paths.lock) if paths.lock.exists() else None
    check_owner(program, paths, lock)
    edits = hand_edits(paths, lock, WrittenCopies(program.parent / HOME))
    found = next((edit for edit in edits if edit.path == paths.skill), None)
    if found is not None and found.foreign:
        raise SkillcError(
            f"`{paths.skill}` was not written by skillc, so it has no edits to take",
            hint='start from it: `use "./SKILL.md" as mine` takes over the sections of a skill',
        )
    return found


@dataclass(frozen=True, slots=True)
class ArtifactSnapshot:
    """A compiled skill as a compile finds it.

    Attributes:
        lock: None before the first compile.
        digests: of the files that the compile will write, None for one that is not there.
        notes: what the user should know before anything is spent.
    """

    lock: Lock | None
    digests: Mapping[Path, str | None]
    notes: tuple[str, ...] = ()


def protect(planned: Planned, paths: ArtifactPaths, home: Path, *, force: bool = False) -> ArtifactSnapshot:
    """Refuse to compile over what another program, an editor or another tool wrote.

    Edits that the program holds already are no loss: `--take-edits` may have put them there.

    Args:
        planned: the program.
        paths: where its skill goes.
        home: the `.skillc` folder with copies of what was written.
        force: overwrite it; edited files are copied into `home` first.

    Raises:
        HandEditedError: a file was edited by hand, or skillc did not write it.
        SkillcError: another program owns the skill, or no skill can be written there.
    """
    check_folder(paths)
    lock = read_lock(paths.lock) if paths.lock.exists() else None
    if not force:
        check_owner(planned.path, paths, lock)
    written, notes = WrittenCopies(home), list[str]()
    edits = tuple(edit for edit in hand_edits(paths, lock, written) if not is_taken(planned.plan, paths, edit))
    if edits and not force:
        raise HandEditedError(edits, planned.path)
    for edit in edits:
        notes.append(f"`{edit.path}` was edited by hand and is overwritten; a copy is `{written.keep(edit.content)}`")
    if lock is not None and not force and lock.program.path not in (None, path_to(planned.path, paths.base)):
        notes.append(f"`{paths.folder}` was compiled from `{lock.program.file}`, which is gone: taken for this program")
    return ArtifactSnapshot(lock, digests_of(paths), tuple(notes))


def changed_since(
    before: ArtifactSnapshot, program: Path, paths: ArtifactPaths
) -> tuple[Lock | None, tuple[Path, ...]]:
    """Return the lock as it is now, and the files that somebody else changed since the compile began.

    A file that another compile of this program wrote fits the lock of now, and is no such file.

    Raises:
        SkillcError: a file cannot be read.
    """
    changed = list[Path]()
    try:
        check_merged(paths)
        lock = read_lock(paths.lock) if paths.lock.exists() else None
        if lock != before.lock:
            check_owner(program, paths, lock)
    except SkillcError:
        lock = None
        changed.append(paths.lock)
    for name, path in paths.files.items():
        content = content_of(path)
        if content is None or has_digest(content, before.digests[path]):
            continue
        if lock is None or not has_digest(content, lock.files.get(name)):
            changed.append(path)
    return lock, tuple(changed)


def free_paths(paths: ArtifactPaths) -> ArtifactPaths:
    """Return paths beside a skill where nothing is: `skills.new`, `skills.new-2` and so on."""
    whole = paths.base.resolve() if paths.base.name in ("", "..") else paths.base
    numbers = itertools.count(2)
    name = f"{whole.name}.new"
    while any(path.exists() for path in ArtifactPaths(whole.with_name(name), paths.name).tracked):
        name = f"{whole.name}.new-{next(numbers)}"
    return ArtifactPaths(whole.with_name(name), paths.name)


def content_of(path: Path) -> bytes | None:
    """Return the content of a file, None where there is none.

    Raises:
        SkillcError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be read: {problem.strerror}") from problem


def digests_of(paths: ArtifactPaths) -> Mapping[Path, str | None]:
    """Return the digest of each file that a compile writes, None for one that is not there.

    Raises:
        SkillcError: a file cannot be read.
    """
    contents = {path: content_of(path) for path in paths.files.values()}
    return {path: None if each is None else hashlib.sha256(each).hexdigest() for path, each in contents.items()}


def _originals(paths: ArtifactPaths, path: Path, digest: str, written: WrittenCopies) -> Iterator[bytes]:
    """Yield the content of a digest, from `.skillc` or from git."""
    kept = written.content(digest)
    if kept is not None:
        yield kept
        return
    try:
        repository = repository_of(paths.base)
        if repository is None:
            return
        inside, lock = repository.inside(path), repository.inside(paths.lock)
        last = repository.last_change(lock)
        candidates = [repository.in_index(inside)]
        candidates += [repository.read(commit, inside) for commit in ("HEAD", last) if commit is not None]
    except SkillcError:
        return
    yield from (each for each in candidates if each is not None and has_digest(each, digest))


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="replace").replace("\r\n", "\n")
