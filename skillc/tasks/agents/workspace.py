"""The folders of one rollout: a workspace with the task's files, and a home; and what changed in the workspace."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from skillc.artifact_paths import SKILL_FILE
from skillc.dataclass import dataclass
from skillc.document.folder import files_of
from skillc.document.skill import Document
from skillc.sandbox.policy import MAPPED, WORK, Kind, Mount
from skillc.skill_files import write_folder
from skillc.trajectories.trajectory import FileChange

HOME = "/home/agent"
"""Where an agent sees its home in a sandbox with mounts."""

# Folders of tools, whose files are no result.
_OWN = frozenset({".git", "__pycache__", "node_modules", ".venv", ".cache"})
_MOST_FILES = 200
_MOST_TEXT = 32 * 1024


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folders of one rollout, and the paths at which the agent sees them.

    Attributes:
        folder: the working folder, on this machine.
        home: the home, on this machine.
        seen: the working folder, as the agent sees it.
        seen_home: the home, as the agent sees it.
    """

    folder: Path
    home: Path
    seen: str
    seen_home: str

    @classmethod
    def make(cls, place: Path, sandbox: Kind, files: Path | None = None) -> Workspace:
        """Make both in a new folder, and copy the content of `files` into the workspace.

        Raises:
            OSError: a file cannot be copied.
        """
        folder, home = place / "work", place / "home"
        folder.mkdir()
        home.mkdir()
        if files is not None and files.is_dir():
            shutil.copytree(
                files,
                folder,
                symlinks=True,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns(".skillc", "__pycache__"),
            )
        elif files is not None:
            shutil.copy2(files, folder)
        mounted = sandbox in MAPPED
        return cls(folder, home, WORK if mounted else str(folder), HOME if mounted else str(home))

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The home, for a sandbox."""
        return (Mount(self.home, self.seen_home, writable=True),)

    def write(self, path: str, text: str) -> str:
        """Write a file of the home; return its path as the agent sees it."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return f"{self.seen_home}/{path}"

    def install(self, skill: Document, folder: str) -> str:
        """Install a skill with its files below a folder of the home; return the path of its SKILL.md for the agent."""
        write_folder(self.home / folder / skill.name, files_of(skill), lasting=False)
        return f"{self.seen_home}/{folder}/{skill.name}/{SKILL_FILE}"

    def digests(self) -> dict[str, str]:
        """Return a digest of each file of the workspace by path; of a link only its target."""
        return {name: _digest(path) for name, path in _files(self.folder)}

    def changes(self, before: Mapping[str, str]) -> tuple[FileChange, ...]:
        """Return the files that differ from earlier digests, by path, with the text of small UTF-8 files."""
        after = {name: (path, _digest(path)) for name, path in _files(self.folder)}
        found = [FileChange(name, "removed") for name in before if name not in after]
        for name, (path, digest) in after.items():
            if before.get(name) != digest:
                found.append(FileChange(name, "changed" if name in before else "added", _text(path)))
        return tuple(sorted(found, key=lambda change: change.path)[:_MOST_FILES])


def digest_of(path: Path) -> str:
    """Return a digest of a file, or of all files of a folder with their paths."""
    if not path.is_dir():
        return _digest(path)
    lines = sorted(f"{name}\0{_digest(file)}\n" for name, file in _files(path, own=frozenset({".skillc"})))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _files(folder: Path, own: frozenset[str] = _OWN) -> Iterator[tuple[str, Path]]:
    """Yield files and links below a folder with their paths; folders of tools are left out, links are not followed."""
    for parent, folders, names in os.walk(folder):
        linked = [name for name in folders if (Path(parent) / name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in own)
        for name in sorted([*names, *linked]):
            path = Path(parent) / name
            yield path.relative_to(folder).as_posix().encode("utf-8", "replace").decode(), path


def _digest(path: Path) -> str:
    """Return a digest of a regular file; a word for anything else, which is never opened."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return f"link {path.readlink()}"
        if not stat.S_ISREG(status.st_mode):
            return "special"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"


def _text(path: Path) -> str | None:
    """Return the text of a small regular file in UTF-8."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_TEXT:
            return None
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text
