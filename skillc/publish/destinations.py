"""The destinations of a skill: what is in agents' folders, and which of it may be replaced without loss."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from skillc.artifacts.beside import read_record
from skillc.artifacts.foreign import look_into
from skillc.artifacts.install import place_of
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.publish.kept import Files, adopted, digest_of, read_log, replaced
from skillc.publish.manifest import Entry, Scope

State = Literal["up to date", "missing", "another version", "changed by hand", "unreadable"]


@dataclass(frozen=True, slots=True)
class Destination:
    """One place of a skill.

    Attributes:
        folder: of the skill in the agent's folder of skills.
        digest: of `files`, None without any.
        files: those that skillc wrote, edited or not, and others in the place of one that is to be installed.
        foreign: paths of all others there, which every command keeps.
        problem: why it cannot be read.
    """

    scope: Scope
    agent: str
    folder: Path
    state: State
    digest: str | None = None
    files: Mapping[str, bytes] | None = None
    problem: str = ""
    foreign: tuple[str, ...] = ()


def destinations(
    root: Path, entry: Entry, environment: Mapping[str, str], brings: Files | None = None
) -> tuple[Destination, ...]:
    """Return the destinations of an entry with their states.

    Args:
        root: the folder of the manifest.
        entry: of the skill.
        environment: variables that locate the user's folders.
        brings: the version that is to be installed; a file of somebody else in the place of one of its files is an
            edit by hand.

    Raises:
        SkillcError: a folder of skills is unknown, or behind a link that leads out of the project.
    """
    known = known_versions(root, entry.name)
    return tuple(_destination(entry, known, brings, *each) for each in folders(root, entry, environment))


def folders(root: Path, entry: Entry, environment: Mapping[str, str]) -> list[tuple[Scope, str, Path]]:
    """Return scope, agent and folder of skills of each destination.

    Raises:
        SkillcError: as `destinations`.
    """
    return [
        (scope, agent, place_of(agent, root if scope == "project" else None, environment))
        for scope, agent in entry.agents
    ]


def known_versions(root: Path, name: str) -> set[str]:
    """Return the digests that were adopted once: replacing one of them loses nothing.

    Raises:
        SkillcError: the log cannot be read.
    """
    return {str(each["version"]) for each in read_log(root, name) if each["event"] in ADOPTIONS and "version" in each}


ADOPTIONS = ("installed", "adopted", "rolled back")
"""Events of the log after which another version is the adopted one."""


def edited(found: Iterable[Destination], replaceable: Collection[str] = ()) -> list[Destination]:
    """Return the destinations that were changed by hand, except those with replaceable digests.

    Raises:
        SkillcError: one cannot be read.
    """
    changed = []
    for each in found:
        if each.state == "unreadable":
            raise SkillcError(each.problem)
        if each.state == "changed by hand" and each.digest not in replaceable:
            changed.append(each)
    return changed


def keep_copies(root: Path, name: str, changed: Sequence[Destination]) -> list[Path]:
    """Copy the files of destinations before they are replaced; return the copies.

    Raises:
        SkillcError: a copy cannot be written.
    """
    return [replaced(root).keep(name, each.files or {}).paths.folder for each in changed]


def has_version(root: Path, entry: Entry) -> bool:
    """Return whether the adopted version of an entry is on this machine."""
    return entry.version is not None and adopted(root).version(entry.name, entry.version) is not None


def _destination(
    entry: Entry, known: Collection[str], brings: Files | None, scope: Scope, agent: str, place: Path
) -> Destination:
    folder = place / entry.name
    if folder.is_symlink():
        problem = f"`{folder}` is a link to `{folder.readlink()}`"
        return Destination(scope, agent, folder, "unreadable", problem=problem)
    if not folder.exists():
        return Destination(scope, agent, folder, "missing")
    if not folder.is_dir():
        return Destination(scope, agent, folder, "unreadable", problem=f"`{folder}` is a file")
    try:
        found = look_into(folder, read_record(folder), brings)
    except SkillcError as problem:
        return Destination(scope, agent, folder, "unreadable", problem=problem.message)
    if not found.ours:
        return Destination(scope, agent, folder, "missing", foreign=found.foreign)
    digest = digest_of(found.ours)
    if digest == entry.version:
        state: State = "up to date"
    elif digest in known:
        state = "another version"
    else:
        state = "changed by hand"
    return Destination(scope, agent, folder, state, digest, found.ours, foreign=found.foreign)
