"""A program as it stands in one place: in the working tree, at a commit, or in a file of its own."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from skillc.artifact_paths import ArtifactPaths
from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.errors import SkillcError
from skillc.frontend import check_file
from skillc.language.checked import Checked
from skillc.plan.lock import Lock, read_lock
from skillc.plan.resolve import resolve
from skillc.plan.schema import Plan
from skillc.syntax.nodes import Use
from skillc.syntax.parser import parse
from skillc.syntax.source import Source
from skillc.text import counted
from skillc.versions.git import Repository
from skillc.versions.lfs import content_of, pointed_at


class NotComparable(SkillcError):  # noqa: N818
    """A program with errors in one of the places; the diagnostics say which."""

    def __init__(self, shown: str, label: str, diagnostics: Sequence[Diagnostic]) -> None:
        errors = sum(each.severity is Severity.ERROR for each in diagnostics)
        where = f" at `{label}`" if label else ""
        count = counted(errors, "error")
        super().__init__(f"`{shown}`{where} has {count}, so it cannot be compared")
        self.diagnostics = tuple(diagnostics)


class Files(Protocol):
    """The files of one place; paths are from its root, with `/`."""

    @property
    def label(self) -> str:
        """How messages call the place: `main`, `the working tree`."""

    def read(self, path: str) -> bytes | None:
        """A file's content, None where there is none."""


@dataclass(frozen=True, slots=True)
class OnDisk:
    """Files below a folder."""

    root: Path
    label: str

    def read(self, path: str) -> bytes | None:
        """A file's content, None where there is none or it may not be read."""
        try:
            return (self.root / path).read_bytes()
        except (OSError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class AtCommit:
    """Files of a commit. Of those that git keeps elsewhere, what is on this machine."""

    repository: Repository
    commit: str
    label: str

    def read(self, path: str) -> bytes | None:
        """A file's content, None where there is none, or only a pointer to it."""
        content = self.repository.read(self.commit, path)
        oid = pointed_at(content) if content is not None else None
        if oid is None:
            return content
        return content_of(oid, self.repository.root, OnDisk(self.repository.root, "").read(path))

    def missing(self, path: str) -> bool:
        """Whether the commit holds a pointer alone."""
        content = self.repository.read(self.commit, path)
        return content is not None and pointed_at(content) is not None


@dataclass(frozen=True, slots=True)
class Version:
    """A program in one place.

    Attributes:
        file: the program, from the root of `files`.
        shown: how messages call it.
        root: the folder on the disk where its files are, or where they are put as they are asked for.
        lock: of its compiled skill beside it, where there is one that can be read.
    """

    files: Files
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
        """A file by its path from the program."""
        return self.files.read(posixpath.normpath(posixpath.join(self.folder, path)))


def version_of(files: Files, file: str, shown: str, scratch: Path) -> Version | None:
    """A program in one place; None where there is none, or only a library.

    Args:
        files: the place.
        file: the program's path there.
        shown: how messages call the file; of a place on the disk its path.
        scratch: an empty folder of its own, for what is not on the disk.

    Raises:
        NotComparable: the program has errors there.
        SkillcError: it is no text.
    """
    if isinstance(files, OnDisk):
        path = Path(shown)
        if not path.is_file():
            return None
        checked, root = check_file(path), path.parent
        diagnostics: tuple[Diagnostic, ...] = checked.diagnostics
    else:
        root = scratch / posixpath.dirname(file) if posixpath.dirname(file) else scratch
        if not _taken(files, file, scratch, set()):
            return None
        checked = _checked(scratch / file, scratch, files.label)
        diagnostics = _renamed(checked.diagnostics, scratch, files.label)
    if checked.library:
        return None
    resolved = resolve(checked)
    found = (*diagnostics, *_renamed(resolved.diagnostics, scratch, files.label))
    if resolved.plan is None:
        raise NotComparable(shown, "" if isinstance(files, OnDisk) else files.label, found)
    return Version(files, file, shown, checked, resolved.plan, root, _lock(files, file, resolved.plan, scratch))


def _checked(path: Path, scratch: Path, label: str) -> Checked:
    try:
        return check_file(path)
    except SkillcError as problem:
        raise SkillcError(problem.message.replace(f"{scratch}{os.sep}", f"{label}:"), hint=problem.hint) from None


def _taken(files: Files, file: str, scratch: Path, done: set[str]) -> bool:
    """Puts a program and the files that it uses on the disk, each at its path."""
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
                _taken(files, path, scratch, done)
    return True


def _renamed(found: Sequence[Diagnostic], scratch: Path, label: str) -> tuple[Diagnostic, ...]:
    """Findings whose files are called by their place in git, not by the one where they lie for a moment."""

    def named(each: Label) -> Label:
        return replace(each, source=shown_source(each.source, scratch, label))

    return tuple(
        replace(each, primary=named(each.primary), secondary=tuple(named(label_) for label_ in each.secondary))
        for each in found
    )


def shown_source(source: Source, scratch: Path, label: str) -> Source:
    """A text under the name that a user knows it by."""
    path = Path(source.name)
    if not path.is_relative_to(scratch):
        return source
    return Source(f"{label}:{path.relative_to(scratch).as_posix()}", source.text)


def _lock(files: Files, file: str, plan: Plan, scratch: Path) -> Lock | None:
    content = files.read(ArtifactPaths.beside(Path(posixpath.dirname(file)), plan.skill.artifact).lock.as_posix())
    if content is None:
        return None
    scratch.mkdir(parents=True, exist_ok=True)
    place = scratch / "compiled.lock"
    place.write_bytes(content)
    try:
        return read_lock(place)
    except SkillcError:
        return None
    finally:
        place.unlink()
