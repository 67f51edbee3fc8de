"""What a program is compared with: a commit of git's, or another file."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from skillc.errors import SkillcError
from skillc.versions.git import Repository, repository_of
from skillc.versions.version import AtCommit, Files, OnDisk, Version, version_of

HERE = "the working tree"


@dataclass(frozen=True, slots=True)
class Pair:
    """A program in both places; None where it is not there, or is only a library."""

    shown: str
    old: Version | None
    new: Version | None


@contextmanager
def pairs(path: Path, against: str) -> Iterator[list[Pair]]:
    """A program, or all those of a folder, beside the other version of each.

    Args:
        path: a program or a folder.
        against: a branch, a tag or a commit; or a program (a folder, where `path` is one) that holds the other version.

    Raises:
        SkillcError: there is no such program, commit or file; git is not there; or a program has errors in a place.
    """
    with TemporaryDirectory(prefix="skillc-") as scratch:
        yield _pairs(path, against, Path(scratch).resolve())


def _pairs(path: Path, against: str, scratch: Path) -> list[Pair]:
    if against.strip() and not against.startswith("-") and Path(against).exists():
        if Path(against).suffix == ".skill":
            return _from_files(path, Path(against), scratch)
        try:
            commit = _commit(path, against)
        except SkillcError:
            return _from_files(path, Path(against), scratch)
    else:
        commit = _commit(path, against)
    repository, files = commit.repository, commit
    if path.is_dir():
        folder = repository.inside(path)
        names = {*repository.programs(None, folder), *repository.programs(files.commit, folder)}
        found = [
            _pair(files, repository, name, _shown(path, folder, name), scratch / str(i))
            for i, name in enumerate(sorted(names))
        ]
        return _moves_joined([pair for pair in found if pair.old is not None or pair.new is not None])
    name = repository.inside(path)
    if not path.is_file() and files.read(name) is None:
        raise SkillcError(f"there is no program `{path}`, neither here nor at `{against}`")
    return [_pair(files, repository, name, str(path), scratch / "0")]


def _commit(path: Path, against: str) -> AtCommit:
    folder = path if path.is_dir() else path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    repository = repository_of(folder)
    if repository is None:
        hint = "compare with a file that holds the other version: `--against old/tickets.skill`"
        raise SkillcError(f"`{path}` lies in no git repository", hint=hint)
    return AtCommit(repository, repository.commit(against), against)


def _pair(files: AtCommit, repository: Repository, name: str, shown: str, scratch: Path) -> Pair:
    old = version_of(files, name, shown, scratch)
    return Pair(shown, old, version_of(OnDisk(repository.root, HERE), name, shown, scratch / "here"))


def _shown(path: Path, folder: str, name: str) -> str:
    return str(path / posixpath.relpath(name, folder or "."))


def _from_files(path: Path, other: Path, scratch: Path) -> list[Pair]:
    if path.is_dir() != other.is_dir():
        raise SkillcError(f"`{path}` and `{other}` are a folder and a file", hint="name two programs, or two folders")
    if not path.is_dir():
        return [Pair(str(path), _on_disk(other, scratch), _on_disk(path, scratch))]
    names = {posix for root in (path, other) for posix in _programs(root)}
    found = [
        Pair(str(path / name), _on_disk(other / name, scratch), _on_disk(path / name, scratch))
        for name in sorted(names)
    ]
    return _moves_joined([pair for pair in found if pair.old is not None or pair.new is not None])


def _on_disk(path: Path, scratch: Path) -> Version | None:
    files: Files = OnDisk(path.parent, str(path))
    return version_of(files, path.name, str(path), scratch / "lock")


def _programs(root: Path) -> Iterator[str]:
    for place, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            if name.endswith(".skill"):
                yield (Path(place) / name).relative_to(root).as_posix()


def _moves_joined(found: list[Pair]) -> list[Pair]:
    """A program whose file was moved, found by the name of its skill, as one pair."""
    fresh = {pair.new.plan.skill.name: pair for pair in found if pair.old is None and pair.new is not None}
    gone = [pair for pair in found if pair.new is None and pair.old is not None]
    joined = list(found)
    for pair in gone:
        other = fresh.get(pair.old.plan.skill.name) if pair.old is not None else None
        if other is not None and other in joined:
            joined[joined.index(other)] = Pair(other.shown, pair.old, other.new)
            joined.remove(pair)
    return joined
