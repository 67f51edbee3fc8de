"""The candidate: a compiled skill without the required verdict, in a folder beside the delivered skills.

`skills.candidate/route-tickets/SKILL.md` has module, lock and history beside it like a delivered skill. Agents load
`skills`, so they never see it. Its lock keeps the looks at the test split until a delivered lock exists. The next
compile that delivers takes over its history and removes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import JsonValue

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.owner import check_owner, other_owner
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.frontend import Planned
from skillc.plan.lock import Lock, LookLock, merge_looks, read_lock
from skillc.plan.schema import Plan
from skillc.program.artifact import attributes_of, check_folder
from skillc.run.history import read_history
from skillc.skill_files import remove_files
from skillc.versions.hand_edits import HandEdit, WrittenCopies, hand_edits, overwrite_note


@dataclass(frozen=True, slots=True)
class Withheld:
    """A skill that was not delivered.

    Attributes:
        required: the verdict that the program requires.
        verdict: of the final test.
        path: SKILL.md of the delivered skill.
        delivered: whether an earlier skill was delivered.
    """

    required: str
    verdict: str
    path: Path
    delivered: bool


def withhold(plan: Plan, verdict: str, paths: ArtifactPaths) -> Withheld | None:
    """Return why a skill with this verdict is not delivered, None if it is."""
    required = plan.required_verdict
    if required is None or verdict == required:
        return None
    return Withheld(required, verdict, paths.skill, paths.skill.exists())


@dataclass(frozen=True, slots=True)
class Candidate:
    """The candidate of one program.

    Attributes:
        lock: None without a candidate, or if it is another program's.
    """

    paths: ArtifactPaths
    lock: Lock | None = None

    def history(self) -> list[dict[str, JsonValue]]:
        """Return the decisions of the compiles that were not delivered.

        Raises:
            SkillcError: a line is not JSON.
        """
        return read_history(self.paths.history) if self.lock is not None else []

    def save_edits(self, written: WrittenCopies) -> Iterator[str]:
        """Copy files that were edited by hand into `.skillc`, and yield a note on each.

        Raises:
            SkillcError: a file cannot be read, or the copy cannot be written.
        """
        for edit in self._edits(written):
            yield overwrite_note(edit, written)

    def remove(self, written: WrittenCopies) -> Iterator[str]:
        """Remove the candidate because a later skill was delivered; yield a note on each file that stays.

        The lock goes last, so that a resumed compile continues the removal. A file that was edited by hand stays, and
        with it the whole candidate.

        Raises:
            SkillcError: a file cannot be removed.
        """
        if self.lock is None and not written.unfinished(self.paths):
            return
        edited = [edit.path for edit in self._edits(written)]
        for path in edited:
            yield f"`{path}` was edited by hand, so the candidate is kept; remove it if it is not needed"
        if edited:
            return
        try:
            names = tuple(self.lock.files) if self.lock is not None else ()
            own = [Path(name).relative_to(self.paths.name) for name in names if name.startswith(f"{self.paths.name}/")]
            remove_files(self.paths.folder, (name.as_posix() for name in own if ".." not in name.parts))
            for path in (self.paths.skill, self.paths.module, self.paths.history, self.paths.lock):
                path.unlink(missing_ok=True)
            _remove_attributes(self.paths, names)
            for folder in (self.paths.folder, self.paths.base):
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()
        except OSError as problem:
            raise SkillcError(f"`{problem.filename}` cannot be removed: {problem.strerror}") from problem
        written.end(self.paths)

    def _edits(self, written: WrittenCopies) -> tuple[HandEdit, ...]:
        return hand_edits(self.paths, self.lock, written)


def find_candidate(planned: Planned, paths: ArtifactPaths, *, force: bool = False) -> Candidate:
    """Return the candidate of a program, which need not exist.

    `paths` are those of its delivered skill, and `force` takes over the candidate of another program.

    Raises:
        SkillcError: the program may need the folder but cannot use it: it contains a file or another program's
            candidate, has unresolved conflicts, or its lock is damaged.
    """
    found = paths.candidate
    needed = planned.plan.required_verdict is not None
    if needed:
        check_folder(found)
    lock = read_lock(found.lock) if found.lock.exists() else None
    if force:
        return Candidate(found, lock)
    if needed:
        check_owner(planned.path, found, lock)
    return Candidate(found, lock if other_owner(planned.path, found, lock) is None else None)


def looks_of(*locks: Lock | None) -> tuple[LookLock, ...]:
    """Return the looks at the test split of several locks, each once."""
    looks: tuple[LookLock, ...] = ()
    for lock in locks:
        looks = merge_looks(looks, lock.looks if lock is not None else ())
    return looks


def _remove_attributes(paths: ArtifactPaths, names: Iterable[str]) -> None:
    """Remove the lines on one skill from `.gitattributes`, and the file if only its own line is left."""
    if not paths.attributes.is_file():
        return
    own = {f"{pattern} {line}" for pattern, line in attributes_of(paths, names).items()}
    lines = paths.attributes.read_text(encoding="utf-8").splitlines()
    left = [line for line in lines if line.strip() not in own]
    if left in ([], ["/.gitattributes merge=union"]):
        paths.attributes.unlink()
    elif left != lines:
        write_atomically(paths.attributes, "".join(f"{line}\n" for line in left))
