"""A program in the working tree, at a commit or in another file, and pairs of versions to compare."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from skillc.artifact_paths import ArtifactPaths
from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.errors import SkillcError
from skillc.frontend import check_file, check_source
from skillc.language.checked import Checked
from skillc.plan.lock import Lock, parse_lock
from skillc.plan.resolve import resolve
from skillc.plan.schema import Plan
from skillc.syntax.files import read_main
from skillc.syntax.nodes import Use
from skillc.syntax.parser import parse
from skillc.syntax.source import Source
from skillc.text import counted
from skillc.versions.git import Repository, lfs_content, pointed_at, repository_of


class NotComparableError(SkillcError):
    """A version of a program has errors; the diagnostics name them."""

    def __init__(self, shown: str, label: str, diagnostics: Sequence[Diagnostic]) -> None:
        errors = sum(each.severity is Severity.ERROR for each in diagnostics)
        where = f" at `{label}`" if label else ""
        count = counted(errors, "error")
        super().__init__(f"`{shown}`{where} has {count}, so it cannot be compared")
        self.diagnostics = tuple(diagnostics)


class FileTree(Protocol):
    """The files of one version; paths are from its root, with `/`."""

    @property
    def label(self) -> str:
        """The name of the version in messages: `main`, `the working tree`."""

    def read(self, path: str) -> bytes | None:
        """Return a file's content, None if it is missing."""


@dataclass(frozen=True, slots=True)
class DiskTree:
    """Files below a folder."""

    root: Path
    label: str

    def read(self, path: str) -> bytes | None:
        """Return a file's content, None if it is missing or unreadable."""
        try:
            return (self.root / path).read_bytes()
        except (OSError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class CommitTree:
    """Files of a commit, with the Git LFS content on this machine."""

    repository: Repository
    commit: str
    label: str

    def read(self, path: str) -> bytes | None:
        """Return a file's content, None if it is missing, or only a pointer is available."""
        content = self.repository.read(self.commit, path)
        oid = pointed_at(content) if content is not None else None
        if oid is None:
            return content
        return lfs_content(oid, self.repository.root, DiskTree(self.repository.root, "").read(path))

    def is_pointer(self, path: str) -> bool:
        """Return whether the commit contains a Git LFS pointer."""
        content = self.repository.read(self.commit, path)
        return content is not None and pointed_at(content) is not None


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a program.

    Attributes:
        file: the program, from the root of `files`.
        shown: its name in messages.
        root: the folder of its files on disk, where files of a commit are written on demand.
        lock: of its compiled skill, None if it is missing or unreadable.
    """

    files: FileTree
    file: str
    shown: str
    checked: Checked
    plan: Plan
    root: Path
    lock: Lock | None

    @property
    def folder(self) -> str:
        """The program's folder, from the root of `files`."""
        return posixpath.dirname(self.file)

    def read(self, path: str) -> bytes | None:
        """Return a file by its path from the program."""
        return self.files.read(posixpath.normpath(posixpath.join(self.folder, path)))


def version_of(files: FileTree, file: str, shown: str, scratch: Path) -> Version | None:
    """Return one version of a program; None if it is missing or a library.

    Args:
        files: of the version.
        file: the program's path in `files`.
        shown: the program's name in messages; on disk its path.
        scratch: an empty folder, for files that are not on disk.

    Raises:
        NotComparableError: the program has errors.
        SkillcError: the file is not text.
    """
    if isinstance(files, DiskTree):
        path = Path(shown)
        if not path.is_file():
            return None
        checked, root = check_file(path), path.parent
        diagnostics: tuple[Diagnostic, ...] = checked.diagnostics
    else:
        root = scratch / posixpath.dirname(file) if posixpath.dirname(file) else scratch
        if not _copy_used(files, file, scratch, set()):
            return None
        checked = _checked(scratch / file, scratch, files.label)
        diagnostics = _renamed(checked.diagnostics, scratch, files.label)
    if checked.library:
        return None
    resolved = resolve(checked)
    found = (*diagnostics, *_renamed(resolved.diagnostics, scratch, files.label))
    if resolved.plan is None:
        raise NotComparableError(shown, "" if isinstance(files, DiskTree) else files.label, found)
    return Version(files, file, shown, checked, resolved.plan, root, _lock(files, file, resolved.plan))


def _checked(path: Path, scratch: Path, label: str) -> Checked:
    try:
        return check_source(read_main(path), path.parent, complete=False)
    except SkillcError as problem:
        raise SkillcError(problem.message.replace(f"{scratch}{os.sep}", f"{label}:"), hint=problem.hint) from None


def _copy_used(files: FileTree, file: str, scratch: Path, done: set[str]) -> bool:
    """Write a program and the files that it uses to disk; return whether the program exists."""
    content = files.read(file)
    if content is None:
        return False
    done.add(file)
    place = scratch / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    if not file.endswith(".skill"):
        return True
    parsed = parse(Source(file, content.decode("utf-8-sig", errors="replace")))
    for use in parsed.program.statements:
        if isinstance(use, Use) and use.file is not None:
            written = use.file.value.replace("\\", "/")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(file), written))
            if path not in done and not path.startswith(("/", "..")) and "\0" not in path:
                _copy_used(files, path, scratch, done)
    return True


def _renamed(found: Sequence[Diagnostic], scratch: Path, label: str) -> tuple[Diagnostic, ...]:
    """Replace the temporary paths of findings by their paths in git."""

    def renamed(each: Label) -> Label:
        path = Path(each.source.name)
        if not path.is_relative_to(scratch):
            return each
        return replace(each, source=Source(f"{label}:{path.relative_to(scratch).as_posix()}", each.source.text))

    return tuple(
        replace(each, primary=renamed(each.primary), secondary=tuple(map(renamed, each.secondary))) for each in found
    )


def _lock(files: FileTree, file: str, plan: Plan) -> Lock | None:
    content = files.read(ArtifactPaths.beside(Path(posixpath.dirname(file)), plan.skill.artifact).lock.as_posix())
    if content is None:
        return None
    try:
        return parse_lock(content.decode("utf-8-sig"), Path("compiled.lock"))
    except (SkillcError, UnicodeDecodeError):
        return None


HERE = "the working tree"


@dataclass(frozen=True, slots=True)
class VersionPair:
    """Both versions of a program; None for a missing one or a library."""

    shown: str
    old: Version | None
    new: Version | None


@contextmanager
def pairs(path: Path, against: str) -> Iterator[list[VersionPair]]:
    """Pair a program, or all programs of a folder, with their other versions.

    Args:
        path: a program or a folder.
        against: a branch, a tag or a commit; or a program, or a folder if `path` is one.

    Raises:
        SkillcError: a program, revision or file does not exist, git is missing, or a version has errors.
    """
    with TemporaryDirectory(prefix="skillc-") as scratch:
        yield _pairs(path, against, Path(scratch).resolve())


def _pairs(path: Path, against: str, scratch: Path) -> list[VersionPair]:
    exists = against.strip() and not against.startswith("-") and Path(against).exists()
    if exists and Path(against).suffix == ".skill":
        return _from_files(path, Path(against), scratch)
    try:
        commit = _commit(path, against)
    except SkillcError:
        if exists:
            return _from_files(path, Path(against), scratch)
        raise
    inside = commit.repository.inside(path)
    if path.is_dir():
        names = {*commit.repository.programs(None, inside), *commit.repository.programs(commit.commit, inside)}
        shown = {name: str(path / posixpath.relpath(name, inside or ".")) for name in sorted(names)}
        return _join_moves([_pair(commit, name, shown[name], scratch / str(i)) for i, name in enumerate(shown)])
    if not path.is_file() and commit.read(inside) is None:
        raise SkillcError(f"program `{path}` exists neither here nor at `{against}`")
    return [_pair(commit, inside, str(path), scratch / "0")]


def _commit(path: Path, against: str) -> CommitTree:
    folder = path if path.is_dir() else path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    repository = repository_of(folder)
    if repository is None:
        hint = "compare with a file of the other version: `--against old/tickets.skill`"
        raise SkillcError(f"`{path}` is in no git repository", hint=hint)
    return CommitTree(repository, repository.commit(against), against)


def _pair(commit: CommitTree, name: str, shown: str, scratch: Path) -> VersionPair:
    here = DiskTree(commit.repository.root, HERE)
    return VersionPair(shown, version_of(commit, name, shown, scratch), version_of(here, name, shown, scratch / "here"))


def _from_files(path: Path, other: Path, scratch: Path) -> list[VersionPair]:
    if path.is_dir() != other.is_dir():
        raise SkillcError(f"`{path}` and `{other}` are a folder and a file", hint="name two programs or two folders")
    if not path.is_dir():
        return [VersionPair(str(path), _on_disk(other, scratch), _on_disk(path, scratch))]
    names = {posix for root in (path, other) for posix in _programs(root)}
    found = [
        VersionPair(str(path / name), _on_disk(other / name, scratch), _on_disk(path / name, scratch))
        for name in sorted(names)
    ]
    return _join_moves(found)


def _on_disk(path: Path, scratch: Path) -> Version | None:
    files: FileTree = DiskTree(path.parent, str(path))
    return version_of(files, path.name, str(path), scratch / "lock")


def _programs(root: Path) -> Iterator[str]:
    for place, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            if name.endswith(".skill"):
                yield (Path(place) / name).relative_to(root).as_posix()


def _join_moves(found: list[VersionPair]) -> list[VersionPair]:
    """Drop programs that exist in neither version, and join those whose file moved by the name of their skill."""
    pairs = [pair for pair in found if pair.old is not None or pair.new is not None]
    added = {pair.new.plan.skill.name: pair for pair in pairs if pair.old is None and pair.new is not None}
    joined = list(pairs)
    for pair in pairs:
        other = added.get(pair.old.plan.skill.name) if pair.new is None and pair.old is not None else None
        if other is not None and other in joined:
            joined[joined.index(other)] = VersionPair(other.shown, pair.old, other.new)
            joined.remove(pair)
    return joined
