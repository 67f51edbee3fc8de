"""Staged version of a skill: read and write its note on this machine, and list the rejected digests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.publish.destinations import ADOPTIONS
from skillc.publish.kept import HOME, Version, adopted, cannot_write, digest_of, read_log, waiting
from skillc.publish.manifest import Entry
from skillc.publish.merging import Conflict
from skillc.skill_files import read_folder

_REFUSALS = ("rejected", "rolled back")


@dataclass(frozen=True, slots=True)
class Staged:
    """A version that waits for its adoption.

    Attributes:
        version: what an adoption installs.
        upstream: the compiled version, if `version` also contains edits by hand that every update keeps.
        conflicts: rules that these edits and the update both changed; no adoption before they are resolved.
        by: who staged it.
        sessions: keys of the sessions that its data is from.
        commit: of the repository that it is from, None for one of this project.
    """

    skill: str
    version: Version
    upstream: Version | None
    by: str
    when: str
    conflicts: tuple[Conflict, ...] = ()
    sessions: tuple[str, ...] = ()
    commit: str | None = None


def staged(project: Path, name: str) -> Staged | None:
    """Return the staged version of a skill, None without one.

    Raises:
        SkillcError: its note is damaged.
    """
    path = _note(project, name)
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        upstream = value["upstream"] and waiting(project).version(name, value["upstream"])
        version = waiting(project).version(name, value["version"])
        conflicts = tuple(Conflict(**each) for each in value["conflicts"])
        if version is None:
            return None
        rest = conflicts, tuple(value["sessions"]), value.get("commit")
        found = Staged(name, version, upstream, value["by"], value["when"], *rest)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise SkillcError(f"`{path}` is damaged", hint="remove it and run `skillc update`") from problem
    return found


def write_note(project: Path, found: Staged) -> None:
    """Write the note of a staged version.

    Raises:
        SkillcError: it cannot be written.
    """
    value = {
        "version": found.version.digest,
        "upstream": found.upstream.digest if found.upstream is not None else None,
        "by": found.by,
        "when": found.when,
        "sessions": list(found.sessions),
        "commit": found.commit,
        "conflicts": [
            {"file": each.file, "base": each.base, "ours": each.ours, "theirs": each.theirs} for each in found.conflicts
        ],
    }
    path = _note(project, found.skill)
    try:
        write_atomically(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    except OSError as problem:
        raise cannot_write(problem, path) from problem


def unstage(project: Path, name: str) -> None:
    """Remove the note of a staged version, if there is one."""
    _note(project, name).unlink(missing_ok=True)


def refused(project: Path, name: str) -> set[str]:
    """Return the digests that were rejected or rolled back from, and not adopted since.

    Raises:
        SkillcError: the log cannot be read.
    """
    found = set[str]()
    for each in read_log(project, name):
        if each["event"] in _REFUSALS:
            found |= {str(each[key]) for key in ("refused", "refused_upstream") if each.get(key)}
        if each["event"] in ADOPTIONS:
            found -= {str(each.get("version")), str(each.get("upstream"))}
    return found


def pinned_version(project: Path, entry: Entry) -> Version:
    """Return the adopted version of an entry that has one; if it was not committed, that of the compiled skill.

    Raises:
        SkillcError: it is not in `skills.adopted`, and the compiled skill is another version.
    """
    assert entry.version is not None
    compiled = entry.origin(project)
    if adopted(project).version(entry.name, entry.version) is None and compiled.skill.is_file():
        files = read_folder(compiled.folder)
        if digest_of(files) == entry.version:
            return adopted(project).keep(entry.name, files, lock_text_at(compiled.lock))
    return kept_version(project, entry.name, entry.version)


def kept_version(project: Path, name: str, digest: str) -> Version:
    """Return a version that was adopted once.

    Raises:
        SkillcError: it is not in `skills.adopted`.
    """
    version = adopted(project).version(name, digest)
    if version is None:
        place = adopted(project).place(name, digest).base
        raise SkillcError(
            f"version `{digest[:12]}` of `{name}` is not in `{place}`",
            hint="restore the folder from git, and commit it",
        )
    return version


def lock_text_at(path: Path) -> str | None:
    """Return the text of a lock, None if it is missing.

    Raises:
        SkillcError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{path}` cannot be read: {problem}") from problem


def _note(project: Path, name: str) -> Path:
    return project / HOME / "staged" / name / "staged.json"
