"""Hand edits of a compiled skill: find them by the lock's digests, show them, and refuse to overwrite them.

Before a skill is written, copies of its texts are kept in `.skillc/written` under their digests, with a note on the
files to be replaced. The note is removed once the lock is written. After a kill in between, new files are beside an old
lock: the note distinguishes them from hand edits.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths, is_script
from skillc.artifacts.owner import check_owner, path_to
from skillc.conflict import check_merged
from skillc.dataclass import dataclass
from skillc.diagnostics.render import difference
from skillc.document.folder import texts_in_one
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.frontend import Planned, plan_file
from skillc.plan.lock import Lock, has_digest, read_lock
from skillc.plan.schema import Plan
from skillc.program.artifact import check_folder, first_scripts, planned_files
from skillc.run.folder import HOME, make_home
from skillc.text import joined, listed
from skillc.versions.git import repository_of
from skillc.versions.taking import is_taken

# Larger files are not copied: a copy only serves to show a difference.
_MOST_KEPT = 1_000_000


@dataclass(frozen=True, slots=True)
class HandEdit:
    """A file that differs from what skillc wrote.

    Attributes:
        written: the content that skillc wrote; None if neither `.skillc` nor git has it.
        foreign: whether skillc never wrote the file.
    """

    path: Path
    content: bytes
    written: bytes | None = None
    foreign: bool = False

    @property
    def difference(self) -> str:
        """A unified diff from the written content, ignoring line ends; empty if that is unknown."""
        if self.written is None:
            return ""
        return difference(str(self.path), _text(self.written), _text(self.content))


class HandEditedError(SkillcError):
    """Files that were edited by hand would be overwritten.

    Attributes:
        difference: the edits as unified diffs.
    """

    def __init__(
        self, edits: Sequence[HandEdit], program: Path, *, hint: str | None = None, files: str | None = None
    ) -> None:
        names = listed([edit.path for edit in edits], "and")
        was, them = ("was", "it") if len(edits) == 1 else ("were", "them")
        force = f"overwrite {them} with `--force`"
        if all(edit.foreign for edit in edits):
            message = f"{names} {was} not written by skillc and would be overwritten"
            fix = f"write elsewhere with `--output`, or {force}"
        else:
            message = f"{names} {was} edited by hand and would be overwritten"
            unknown = [f"`{edit.path}`" for edit in edits if edit.written is None and not edit.foreign]
            if unknown:
                message += f"; cannot show the difference of {joined(unknown)}: the compiled text is neither in "
                message += "`.skillc` nor in git"
            take = f"take the edits of SKILL.md into the program with `skillc compile {program} --take-edits`"
            fix = f"{take}, or {force}" if any(edit.path.suffix == ".md" for edit in edits) else force
            scripts = [edit for edit in edits if edit.path.suffix == ".py" and edit.path.parent.name == "scripts"]
            others = [edit for edit in edits if edit not in scripts]
            if files is not None and not any(edit.path.suffix in (".md", ".py") for edit in others):
                fix = f"make the edits in `{files}` beside the program, or {force}"
        hint = hint or fix
        super().__init__(message, hint=hint)
        self.difference = "".join(edit.difference for edit in edits)


def hand_edits(
    paths: ArtifactPaths, lock: Lock | None, written: WrittenCopies, planned: Mapping[str, bytes | None] | None = None
) -> tuple[HandEdit, ...]:
    """Return the files of a compiled skill that differ from its lock and from what a killed compile wrote.

    `planned` are further files that the next compile may write into the skill's folder, with their content if known.

    Raises:
        SkillcError: a file cannot be read.
    """
    unfinished = written.unfinished(paths)
    found = []
    wanted = {paths.key(paths.folder / name): content for name, content in (planned or {}).items()}
    for name, path in written_files(paths, (*unfinished, *(lock.files if lock else ()), *wanted)).items():
        content = content_of(path)
        if content is not None and content == wanted.get(name):
            continue
        digests = [known[name] for known in (unfinished, lock.files if lock else {}) if name in known]
        if content is None or any(has_digest(content, digest) for digest in digests):
            continue
        before = next((text for digest in digests for text in _originals(paths, path, digest, written)), None)
        found.append(HandEdit(path, content, before, foreign=not digests))
    return tuple(found)


def written_files(paths: ArtifactPaths, names: Iterable[str]) -> Mapping[str, Path]:
    """Return SKILL.md, the module, and the files of a lock or a note, by their names there."""
    below = {name: paths.base / name for name in sorted(names) if name.startswith(f"{paths.name}/")}
    return {**paths.files, **{name: path for name, path in below.items() if ".." not in name.split("/")}}


def edit_of_skill(program: Path, paths: ArtifactPaths) -> HandEdit | None:
    """Return the hand edit of a program's SKILL.md and of the files of its sections, as one SKILL.md with all sections.

    None if they are unedited or missing.

    Raises:
        SkillcError: skillc never wrote the file, another program owns it, or it has unresolved conflicts.
    """
    check_folder(paths)
    lock = read_lock(paths.lock) if paths.lock.exists() else None
    check_owner(program, paths, lock)
    edits = hand_edits(paths, lock, WrittenCopies(program.parent / HOME))
    found = edit_in_one(plan_file(program, complete=False).plan, paths, edits)
    if found is not None and found.foreign:
        raise SkillcError(
            f"`{paths.skill}` was not written by skillc, so it has no edits to take",
            hint='start from it instead: `use "./SKILL.md" as mine` imports the sections of a skill',
        )
    return found


def edit_in_one(plan: Plan, paths: ArtifactPaths, edits: Sequence[HandEdit]) -> HandEdit | None:
    """Return the edits of SKILL.md and of sections in files as one edit of a SKILL.md that has all sections.

    None if none of them was edited.
    """
    own = next((edit for edit in edits if edit.path == paths.skill), None)
    by_path = {edit.path: edit for edit in edits if not edit.foreign}
    places = {each: paths.folder / each for each in _text_files(plan)}
    if not any(place in by_path for place in places.values()) and (own is None or not places):
        return own
    content = own.content if own is not None else content_of(paths.skill)
    if content is None:
        return own
    before = own.written if own is not None else content
    now, then = dict[str, bytes](), dict[str, bytes]()
    for name, place in places.items():
        edit = by_path.get(place)
        present = content_of(place)
        original = edit.written if edit is not None else present
        if edit is not None and original is None:
            before = None
        now.update({name: present} if present is not None else {})
        then.update({name: original} if original is not None else {})
    whole = texts_in_one(content, now)
    return HandEdit(paths.skill, whole, texts_in_one(before, then) if before is not None else None)


@dataclass(frozen=True, slots=True)
class ArtifactSnapshot:
    """A compiled skill at the start of a compile.

    Attributes:
        lock: None before the first compile.
        digests: of the files that the compile will write, None for a missing one.
        notes: for the user, before anything is spent.
    """

    lock: Lock | None
    digests: Mapping[Path, str | None]
    notes: tuple[str, ...] = ()


def protect(planned: Planned, paths: ArtifactPaths, home: Path, *, force: bool = False) -> ArtifactSnapshot:
    """Refuse to overwrite what another program, an editor or another tool wrote.

    Edits that the program already contains are no loss: `--take-edits` may have put them there.

    Args:
        planned: the program.
        paths: where its skill goes.
        home: the `.skillc` folder with copies of written files.
        force: overwrite; edited files are copied into `home` first.

    Raises:
        HandEditedError: a file was edited by hand or not written by skillc.
        SkillcError: another program owns the skill, or the folder cannot be used.
    """
    check_folder(paths)
    lock = read_lock(paths.lock) if paths.lock.exists() else None
    if not force:
        check_owner(planned.path, paths, lock)
    written, notes = WrittenCopies(home), list[str]()
    further = planned_files(planned.plan, planned.root)
    edits = hand_edits(paths, lock, written, {**further, **first_scripts(planned.plan, planned.root)})
    whole = edit_in_one(planned.plan, paths, edits)
    if whole is not None and is_taken(planned.plan, paths, whole):
        edits = tuple(edit for edit in edits if not _is_section(planned.plan, paths, edit))
    if edits and not force:
        raise HandEditedError(edits, planned.path, files=planned.plan.skill.files)
    for edit in edits:
        notes.append(overwrite_note(edit, written))
    if lock is not None and not force and lock.program.path not in (None, path_to(planned.path, paths.base)):
        notes.append(
            f"`{paths.folder}` was compiled from `{lock.program.file}`, which is gone: this program takes it over"
        )
    names = (*(lock.files if lock else ()), *(paths.key(paths.folder / name) for name in further))
    contents = {path: content_of(path) for path in written_files(paths, names).values()}
    digests = {path: None if each is None else hashlib.sha256(each).hexdigest() for path, each in contents.items()}
    return ArtifactSnapshot(lock, digests, tuple(notes))


def _is_section(plan: Plan, paths: ArtifactPaths, edit: HandEdit) -> bool:
    """Return whether a file is SKILL.md or that of a section, and skillc wrote it."""
    own = {paths.skill, *(paths.folder / each for each in _text_files(plan))}
    return edit.path in own and not edit.foreign


def _text_files(plan: Plan) -> list[str]:
    """Return the files of sections with a text; a script is code, whose edits no program can take."""
    return [each.file for each in plan.skill.sections if each.file is not None and not is_script(each.file)]


def overwrite_note(edit: HandEdit, written: WrittenCopies) -> str:
    """Keep a copy of an edited file; return the note that it is overwritten.

    Raises:
        SkillcError: the copy cannot be written.
    """
    return f"`{edit.path}` was edited by hand and is overwritten; a copy is in `{written.keep(edit.content)}`"


def changed_since(
    before: ArtifactSnapshot, program: Path, paths: ArtifactPaths
) -> tuple[Lock | None, tuple[Path, ...]]:
    """Return the present lock, and the files that were edited since the compile began.

    A file that another compile of this program wrote matches the present lock, and does not count.

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
    for path, digest in before.digests.items():
        content = content_of(path)
        if content is None or has_digest(content, digest):
            continue
        if lock is None or not has_digest(content, lock.files.get(paths.key(path))):
            changed.append(path)
    return lock, tuple(changed)


def free_paths(paths: ArtifactPaths) -> ArtifactPaths:
    """Return unused paths beside a skill: `skills.new`, `skills.new-2` and so on."""
    suffixes = itertools.chain([".new"], (f".new-{number}" for number in itertools.count(2)))
    beside = map(paths.beside_base, suffixes)
    return next(each for each in beside if not any(path.exists() for path in each.tracked))


def content_of(path: Path) -> bytes | None:
    """Return the content of a file, None if it is missing.

    Raises:
        SkillcError: the file cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be read: {problem.strerror}") from problem


def _originals(paths: ArtifactPaths, path: Path, digest: str, written: WrittenCopies) -> Iterator[bytes]:
    """Yield the content with a digest, from `.skillc` or from git."""
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


# ---- copies of written files ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenCopies:
    """Copies of written files in one `.skillc` folder.

    Attributes:
        home: the `.skillc` folder, which need not exist.
    """

    home: Path

    @property
    def folder(self) -> Path:
        """The folder of copies and notes."""
        return self.home / "written"

    def keep(self, content: bytes) -> Path:
        """Keep a content under its digest and return its path.

        Raises:
            SkillcError: it cannot be written.
        """
        path = self.folder / hashlib.sha256(content).hexdigest()
        if not path.exists():
            self._write(path, content)
        return path

    def content(self, digest: str) -> bytes | None:
        """Return the content with a digest, None if there is no copy or it is damaged."""
        try:
            content = (self.folder / digest).read_bytes()
        except OSError:
            return None
        return content if has_digest(content, digest) else None

    def begin(self, paths: ArtifactPaths, files: Mapping[Path, bytes]) -> dict[str, str]:
        """Keep the files of a skill, except large ones, and note that they are about to be written.

        Returns:
            Their digests, by their paths from the lock.

        Raises:
            SkillcError: a copy cannot be written.
        """
        for content in files.values():
            if len(content) <= _MOST_KEPT:
                self.keep(content)
        digests = {paths.key(path): hashlib.sha256(content).hexdigest() for path, content in files.items()}
        self._write(self._note(paths), json.dumps(digests, indent=2, sort_keys=True).encode() + b"\n")
        return digests

    def unfinished(self, paths: ArtifactPaths) -> Mapping[str, str]:
        """Return the digests of files that a killed compile wrote or was about to write, by their paths."""
        try:
            noted = json.loads(self._note(paths).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(name): str(digest) for name, digest in noted.items()} if isinstance(noted, dict) else {}

    def end(self, paths: ArtifactPaths) -> None:
        """Remove the note: the lock lists the files now."""
        self._note(paths).unlink(missing_ok=True)

    def _note(self, paths: ArtifactPaths) -> Path:
        """Return the note of one skill, different for each `--output` folder, also after the project was moved."""
        base = os.path.relpath(paths.base.resolve(), self.home.resolve())
        return self.folder / f"{paths.name}-{hashlib.sha256(base.encode()).hexdigest()[:8]}.json"

    def _write(self, path: Path, content: bytes) -> None:
        try:
            make_home(self.home)
            self.folder.mkdir(exist_ok=True)
            write_atomically(path, content)
        except OSError as problem:
            raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem
