"""Every version of a skill that was adopted, by its digest, and the log of what was done with them.

`skills.adopted/NAME/DIGEST/NAME/` beside the manifest has the files of a version, and `NAME.lock` beside them its lock.
The folder belongs into git, so that a clone can roll back. `skills.adopted/NAME/log.jsonl` has a line for each
adoption, rejection and rollback: when, who, why. Staged versions are in the same form in `.skillc/publish`, which git
ignores, as are copies of edits that an adoption replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from skillc.artifact_paths import ArtifactPaths
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.plan.lock import Lock, read_lock
from skillc.run.folder import make_home
from skillc.skill_files import read_folder, with_plain_ends, write_folder

ADOPTED = "skills.adopted"
HOME = ".skillc/publish"
SHOWN = 12
"""Digits of a digest in messages."""
_FOLDER = 16
_WAIT = 60.0
_UNFINISHED = re.compile(r"\..+\.\d+\.new")
_ATTRIBUTES = "* -text\n*.jsonl merge=union\n"

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a skill, kept on disk.

    Attributes:
        digest: SHA-256 of its files, 64 hexadecimal digits.
        paths: of the copy: files of the skill and its lock.
    """

    skill: str
    digest: str
    paths: ArtifactPaths

    @property
    def short(self) -> str:
        """The digest in messages."""
        return self.digest[:SHOWN]

    def files(self) -> dict[str, bytes]:
        """Return its files.

        Raises:
            SkillcError: they cannot be read, or are not those that were kept.
        """
        files = read_folder(self.paths.folder)
        if digest_of(files) != self.digest:
            raise SkillcError(
                f"`{self.paths.folder}` was changed since version `{self.short}` was adopted",
                hint=f"restore it: `git checkout -- {self.paths.folder}`",
            )
        return files

    def lock(self) -> Lock | None:
        """Return the lock of its compile, None if it has none."""
        return read_lock(self.paths.lock) if self.paths.lock.exists() else None


def digest_of(files: Files) -> str:
    """Return the digest of a skill's files, the same after git has converted line ends."""
    lines = (
        f"{hashlib.sha256(with_plain_ends(content)).hexdigest()}  {name}\n" for name, content in sorted(files.items())
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Kept:
    """A folder of versions: the adopted ones of a project, or those that are staged or replaced.

    Attributes:
        folder: `skills.adopted`, or a folder of `.skillc/publish`.
        tracked: whether git should have it.
    """

    folder: Path
    tracked: bool = True

    def place(self, skill: str, digest: str) -> ArtifactPaths:
        """Return where a version is kept."""
        return ArtifactPaths(self.folder / skill / digest[:_FOLDER], skill)

    def version(self, skill: str, digest: str) -> Version | None:
        """Return a kept version, None if it is missing."""
        paths = self.place(skill, digest)
        return Version(skill, digest, paths) if paths.folder.is_dir() else None

    def versions(self, skill: str) -> Iterator[Version]:
        """Yield the kept versions of a skill.

        Raises:
            SkillcError: one cannot be read.
        """
        folder = self.folder / skill
        if folder.is_dir():
            for place in sorted(each for each in folder.iterdir() if len(each.name) == _FOLDER and each.is_dir()):
                paths = ArtifactPaths(place, skill)
                if paths.folder.is_dir():
                    yield Version(skill, digest_of(read_folder(paths.folder)), paths)

    def keep(self, skill: str, files: Files, lock: str | None = None) -> Version:
        """Keep a version, unless it is kept already: written beside its place and moved there whole.

        Raises:
            SkillcError: it cannot be written; nothing is left.
        """
        digest = digest_of(files)
        paths = self.place(skill, digest)
        new = paths.base.with_name(f".{paths.base.name}.{os.getpid()}.new")
        try:
            if paths.folder.is_dir():
                if lock is not None and _text_of(paths.lock) != lock:
                    write_atomically(paths.lock, lock)
                return Version(skill, digest, paths)
            self.prepare(skill)
            shutil.rmtree(new, ignore_errors=True)
            write_folder(new / skill, files)
            if lock is not None:
                write_atomically(new / paths.lock.name, lock)
            new.rename(paths.base)
        except OSError as problem:
            raise cannot_write(problem, paths.base) from problem
        finally:
            shutil.rmtree(new, ignore_errors=True)
        return Version(skill, digest, paths)

    def prepare(self, skill: str) -> None:
        """Make the folder of a skill.

        Raises:
            OSError: it cannot be made.
        """
        if self.tracked:
            self.folder.mkdir(exist_ok=True)
            if not (self.folder / ".gitattributes").exists():
                write_atomically(self.folder / ".gitattributes", _ATTRIBUTES)
        else:
            make_home(self.folder.parent.parent)
        (self.folder / skill).mkdir(parents=True, exist_ok=True)


def adopted(project: Path) -> Kept:
    """Return the adopted versions of a project."""
    return Kept(project / ADOPTED)


def waiting(project: Path) -> Kept:
    """Return the staged versions of a project."""
    return Kept(project / HOME / "staged", tracked=False)


def replaced(project: Path) -> Kept:
    """Return the edits by hand that adoptions replaced."""
    return Kept(project / HOME / "replaced", tracked=False)


def remove_unfinished(project: Path) -> None:
    """Remove what killed writers of the manifest and of these folders left; the caller holds `project_lock`.

    Raises:
        SkillcError: it cannot be removed.
    """
    places = (ADOPTED, HOME, f"{HOME}/staged", f"{HOME}/replaced")
    forms = (".*.new", "*/.*.new", "*/*/.*.new")
    found = [path for each in places for form in forms for path in (project / each).glob(form)]
    try:
        for path in (*project.glob(".skills.toml.*.new"), *found):
            if _UNFINISHED.fullmatch(path.name) and not path.is_symlink():
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    except OSError as problem:
        raise cannot_write(problem, project) from problem


def cannot_write(problem: OSError, path: Path) -> SkillcError:
    """Return the error of a file that cannot be written."""
    return SkillcError(f"`{problem.filename or path}` cannot be written: {problem.strerror}")


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


# ---- the log --------------------------------------------------------------------------------------


def log_path(project: Path, skill: str) -> Path:
    """Return the log of a skill."""
    return project / ADOPTED / skill / "log.jsonl"


def read_log(project: Path, skill: str) -> list[dict[str, Any]]:
    """Return the records of a skill, oldest first. A line that a kill cut short is left out.

    Raises:
        SkillcError: the log cannot be read, or a whole line is no record.
    """
    path = log_path(project, skill)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"the log `{path}` cannot be read: {problem}") from problem
    *whole, _ = text.split("\n")
    records = []
    for number, line in enumerate(whole, 1):
        try:
            record = json.loads(line)
        except ValueError:
            if not line.endswith("}"):
                continue
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("event"), str):
            raise SkillcError(f"line {number} of `{path}` is no record", hint="restore the log from git")
        records.append(record)
    return records


def append_log(project: Path, skill: str, record: Mapping[str, object]) -> None:
    """Append a record; it is on the disk when this returns.

    Raises:
        SkillcError: it cannot be written.
    """
    path = log_path(project, skill)
    line = json.dumps(dict(record), ensure_ascii=False, sort_keys=True) + "\n"
    try:
        adopted(project).prepare(skill)
        with path.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            cut = size > 0 and file.read(1) != b"\n"
            try:
                file.write((b"\n" if cut else b"") + line.encode())
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                # A full disk may have taken half of the line.
                os.ftruncate(file.fileno(), size)
                raise
    except OSError as problem:
        raise cannot_write(problem, path) from problem


def journal_path(project: Path, skill: str) -> Path:
    """Return the journal of a change to a skill's destinations, which exists while the change is not finished."""
    return project / HOME / f"{skill}.journal"


def now() -> str:
    """Return the time of a record, UTC to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def project_lock(project: Path) -> Iterator[None]:
    """Let one process at a time change what a project publishes.

    Raises:
        SkillcError: another process holds the lock, or `.skillc` cannot be written.
    """
    home = project / HOME
    lock = FileLock(str(home / "lock"), timeout=_WAIT)
    try:
        make_home(home.parent)
        home.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as problem:
        raise SkillcError(
            f"another process changes the skills of `{project}`", hint="try again when it has ended"
        ) from problem
    except OSError as problem:
        raise cannot_write(problem, home) from problem
    try:
        yield
    finally:
        lock.release()
