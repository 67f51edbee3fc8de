"""The transaction of an adoption: everything is written and checked first, then switched over, then logged.

The copies for all destinations are written beside them and the destinations are checked. Then a journal and the
manifest are written, the copies are moved into place, and the log gets its line. A kill before the journal leaves
everything as it was; after it, the next command finishes the adoption. An error brings everything back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from skillc.artifacts.beside import locked, recover_folder
from skillc.artifacts.install import InstallTarget, install_files, place_of
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.provenance.quarantine import check_adoptable
from skillc.publish.changes import Changes
from skillc.publish.destinations import Destination, folders, keep_copies, known_versions
from skillc.publish.kept import (
    HOME,
    Files,
    Version,
    adopted,
    append_log,
    cannot_write,
    digest_of,
    journal_path,
    now,
    read_log,
    remove_unfinished,
    waiting,
)
from skillc.publish.manifest import Entry, read_manifest, write_entry
from skillc.publish.removing import REMOVES, finish_removal
from skillc.publish.waiting import lock_text_at, pinned_version, unstage


@dataclass(frozen=True, slots=True)
class Prepared:
    """What an adoption would install, with edits by hand kept or dropped.

    Attributes:
        files: of the version.
        digest: of these files, which `--digest` names.
        lock: the text of its compile's lock, None without one.
        upstream: digest of the compiled version, if `files` has kept edits besides.
        changes: from the adopted version.
        replaces: destinations whose edits are copied first, because the version does not contain them.
        may_replace: digests of destinations that may be overwritten.
        commit: of the repository that the version is from; None if it stays the same.
    """

    entry: Entry
    files: Files
    digest: str
    lock: str | None
    upstream: str | None
    changes: Changes
    replaces: tuple[Destination, ...] = ()
    may_replace: frozenset[str] = frozenset()
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Adoption:
    """A version that was adopted or rolled back to.

    Attributes:
        before: digest of the version before, None for the first.
        copies: where edits by hand are that were replaced.
    """

    skill: str
    version: Version
    before: str | None
    targets: tuple[InstallTarget, ...]
    copies: tuple[Path, ...] = ()


def apply(project: Path, ready: Prepared, event: Mapping[str, object], environment: Mapping[str, str]) -> Adoption:
    """Adopt prepared files: all checks and copies first, then journal, manifest, destinations and log."""
    entry = ready.entry
    name, before = entry.name, entry.version
    check_not_quarantined(project, name, (ready.digest, ready.upstream))
    version = adopted(project).keep(name, ready.files, ready.lock)
    compiled = waiting(project).version(name, ready.upstream) if ready.upstream is not None else None
    if compiled is not None:
        # The next update is merged with the edits that this one keeps, from this base.
        adopted(project).keep(name, compiled.files(), lock_text_at(compiled.paths.lock))
    copies = keep_copies(project, name, ready.replaces)
    after = _at_commit(replace(entry, version=ready.digest, upstream=ready.upstream), ready.commit)
    record: dict[str, object] = {"when": now(), **event, "version": ready.digest, "before": before}
    record |= {"upstream": ready.upstream} if ready.upstream else {}
    record |= {"replaced": [each.digest for each in ready.replaces]} if ready.replaces else {}
    record |= {"commit": after.git.commit} if after.git is not None else {}
    known = known_versions(project, name) | ready.may_replace | {before}
    journal = journal_path(project, name)

    def commit() -> None:
        value = {"record": record, "source": entry.source, "may_replace": sorted(filter(None, known))}
        try:
            write_atomically(journal, json.dumps(value))
        except OSError as problem:
            raise cannot_write(problem, journal) from problem
        write_entry(project, after)

    places = [(agent, place) for _, agent, place in folders(project, after, environment)]
    try:
        targets = install_files(
            entry.origin(project), ready.files, places, may_replace=lambda now: digest_of(now) in known, commit=commit
        )
    except SkillcError:
        _undo(project, entry, places, known | {ready.digest}, journal)
        raise
    _finish(project, name, record)
    return Adoption(name, version, before, targets, tuple(copies))


def _at_commit(entry: Entry, commit: str | None) -> Entry:
    return entry if entry.git is None or commit is None else replace(entry, git=replace(entry.git, commit=commit))


def check_not_quarantined(project: Path, name: str, digests: Iterable[str | None]) -> None:
    """Refuse versions with rules from withdrawn sessions.

    Raises:
        SkillcError: a staged or adopted copy of one of them has such a rule.
    """
    for digest in filter(None, digests):
        for shelf in (waiting(project), adopted(project)):
            version = shelf.version(name, digest)
            if version is not None:
                check_adoptable(version.paths)


def _undo(
    project: Path, entry: Entry, places: list[tuple[str, Path]], known: Collection[str | None], journal: Path
) -> None:
    """Bring manifest and destinations back to the version before a failed adoption, as far as they can be written."""
    if not journal.exists():
        return
    write_entry(project, entry)
    if entry.version is not None:
        _restore(project, entry, places, known)
    journal.unlink(missing_ok=True)


def _restore(project: Path, entry: Entry, places: Sequence[tuple[str, Path]], known: Collection[str | None]) -> None:
    """Bring each destination to the version of an entry, if it has a known one and can be written.

    Others keep what they have: `installed` shows it, and `install` reports it.
    """
    files = pinned_version(project, entry).files()

    def may_replace(present: Files) -> bool:
        return digest_of(present) in known

    for place in places:
        with suppress(SkillcError):
            install_files(
                entry.origin(project), files, [place], may_replace=lambda present: digest_of(present) in known
            )


def recover(project: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Finish adoptions and removals that were killed after their journal was written, and remove what kills left.

    Raises:
        SkillcError: the manifest cannot be read, or manifest or log cannot be written.
    """
    remove_unfinished(project)
    for journal in sorted((project / HOME).glob("*.journal")):
        name = journal.name.removesuffix(".journal")
        try:
            value = json.loads(journal.read_text(encoding="utf-8"))
            if REMOVES in value:
                finish_removal(project, name, value, environment)
                continue
            record, known = value["record"], set(value["may_replace"])
        except (OSError, ValueError, KeyError) as problem:
            raise SkillcError(f"`{journal}` is damaged", hint="remove it and run `skillc installed`") from problem
        manifest = read_manifest(project)
        entry = manifest.entries.get(name) or Entry(name, value["source"])
        entry = replace(entry, version=record["version"], upstream=record.get("upstream"))
        entry = _at_commit(entry, record.get("commit"))
        write_entry(project, entry)
        places = [(agent, place) for _, agent, place in folders(project, entry, environment)]
        _restore(project, entry, places, known)
        _finish(project, name, record)
    for entry in read_manifest(project).entries.values():
        for scope, agent in entry.agents:
            # What cannot be read or written there is reported by the command that needs it.
            with suppress(SkillcError, OSError):
                place = place_of(agent, project if scope == "project" else None, environment)
                with locked([place]) as alone:
                    recover_folder(place / entry.name, alone=alone)


def _finish(project: Path, name: str, record: Mapping[str, object]) -> None:
    if not any(dict(record) == each for each in read_log(project, name)[-1:]):
        append_log(project, name, record)
    unstage(project, name)
    journal_path(project, name).unlink(missing_ok=True)
