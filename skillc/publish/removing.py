"""Remove an installed skill from agents' folders: all that were asked for, or none.

A journal and the manifest are written first, then each folder is moved beside its place; a folder with what skillc did
not write there takes its place. Then the log gets its line, and last the moved folders are deleted. A kill before the
journal leaves everything as it was; after it, the next command finishes the removal. An error brings everything back.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillc.artifacts.beside import beside, copies, locked, read_record, record_path, recover_folder
from skillc.artifacts.foreign import are_carried, carry, look_into, without_junk
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.publish.destinations import Destination, folders
from skillc.publish.kept import append_log, cannot_write, digest_of, journal_path, read_log
from skillc.publish.manifest import MANIFEST, Entry, read_manifest, remove_entry, write_entry
from skillc.publish.waiting import unstage

REMOVES = "removes"
"""The key of a journal that is of a removal: the destinations, by scope and agent."""
# A folder that was moved away and is to be deleted. No install restores one of this name.
_GONE = "gone"
# What stays of it: links to the files that skillc did not write. The next command removes one that a kill left.
_LEFT = "new"


@dataclass(frozen=True, slots=True)
class Removal:
    """What is removed.

    Attributes:
        places: the destinations.
        record: the line for the log.
        may_remove: digests of the files that may be deleted.
    """

    entry: Entry
    places: tuple[Destination, ...]
    record: Mapping[str, object]
    may_remove: frozenset[str]

    @property
    def left(self) -> Entry:
        """The entry with the destinations that stay."""
        return without(self.entry, [(each.scope, each.agent) for each in self.places])


def without(entry: Entry, places: Collection[tuple[str, str]]) -> Entry:
    """Return an entry without some of its destinations."""
    project = tuple(each for each in entry.project if ("project", each) not in places)
    return replace(entry, project=project, user=tuple(each for each in entry.user if ("user", each) not in places))


def apply_removal(project: Path, removal: Removal) -> None:
    """Remove destinations and their entry.

    Raises:
        SkillcError: a folder cannot be moved, or was changed meanwhile; nothing is removed.
    """
    name, journal, manifest = removal.entry.name, journal_path(project, removal.entry.name), project / MANIFEST
    value = {
        REMOVES: [[each.scope, each.agent] for each in removal.places],
        "record": dict(removal.record),
        "may_remove": sorted(removal.may_remove),
    }
    targets = [each.folder for each in removal.places]
    moved: list[tuple[Path, Path]] = []
    with locked(each.parent for each in targets):
        try:
            before = manifest.read_bytes()
            write_atomically(journal, json.dumps(value))
            try:
                _write_left(project, removal.left)
                _move_away(targets, removal.may_remove, moved)
                append_log(project, name, removal.record)
            except (OSError, SkillcError):
                for folder, gone in reversed(moved):
                    _bring_back(folder, gone)
                write_atomically(manifest, before)
                journal.unlink()
                raise
        except OSError as problem:
            raise cannot_write(problem, journal) from problem
        _delete(project, removal.left, targets)


def finish_removal(project: Path, name: str, value: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Finish a removal that was killed after its journal was written.

    Raises:
        KeyError: the journal is damaged.
        SkillcError: manifest or log cannot be written.
    """
    places = [(str(scope), str(agent)) for scope, agent in value[REMOVES]]
    known, record = frozenset(value["may_remove"]), value["record"]
    entry = read_manifest(project).entries.get(name)
    left = without(entry, places) if entry is not None else Entry(name, "-")
    if entry is not None:
        _write_left(project, left)
    of_places = _of(places)
    targets = [place / name for _, _, place in folders(project, of_places, environment)]
    moved: list[tuple[Path, Path]] = []
    with locked(each.parent for each in targets) as alone:
        for target in targets:
            # One that was changed since the kill stays: `skillc install` refuses to overwrite it, and shows it.
            with suppress(SkillcError, OSError):
                recover_folder(target, alone=alone)
                _move_away([target], known, moved)
        if record not in read_log(project, name)[-1:]:
            append_log(project, name, record)
        _delete(project, left, targets)


def _of(places: Sequence[tuple[str, str]]) -> Entry:
    agents = {scope: tuple(agent for each, agent in places if each == scope) for scope in ("project", "user")}
    return Entry("-", "-", agents["project"], agents["user"])


def _write_left(project: Path, left: Entry) -> None:
    if left.agents:
        write_entry(project, left)
    else:
        remove_entry(project, left.name)


def _move_away(targets: Sequence[Path], may_remove: Collection[str], moved: list[tuple[Path, Path]]) -> None:
    """Move each folder beside its place, and add both paths to `moved`.

    Raises:
        SkillcError: one was changed since it was looked at; it is where it was.
        OSError: one cannot be moved.
    """
    for folder in targets:
        if folder.is_symlink() or not folder.exists():
            continue
        gone, left, record = beside(folder, _GONE), beside(folder, _LEFT), read_record(folder)
        found = look_into(folder, record)
        if not found.ours:
            continue
        shutil.rmtree(left, ignore_errors=True)
        try:
            kept = without_junk(found.foreign)
            if kept:
                left.mkdir()
                carry(folder, left, kept)
            folder.rename(gone)
            moved.append((folder, gone))
            found = look_into(gone, record)
            kept = without_junk(found.foreign)
            if digest_of(found.ours) not in may_remove or not are_carried(gone, left, kept):
                moved.pop()
                gone.rename(folder)
                raise SkillcError(f"`{folder}` was changed while it was being removed", hint="run the command again")
            if kept:
                left.rename(folder)
        finally:
            shutil.rmtree(left, ignore_errors=True)


def _bring_back(folder: Path, gone: Path) -> None:
    """Undo `_move_away`: the moved folder has what its stand-in has."""
    if folder.exists():
        folder.rename(beside(folder, _LEFT))
        shutil.rmtree(beside(folder, _LEFT), ignore_errors=True)
    gone.rename(folder)


def _delete(project: Path, left: Entry, targets: Sequence[Path]) -> None:
    """Delete what was moved away and the records, and end the journal if nothing is left of them."""
    for folder in targets:
        record = read_record(folder)
        for gone in copies(folder, _GONE):
            # A kill may have come before the rest was moved into its place.
            try:
                carry(gone, folder, without_junk(look_into(gone, record).foreign))
            except OSError as problem:
                raise cannot_write(problem, folder) from problem
            shutil.rmtree(gone, ignore_errors=True)
        if not folder.exists() or not look_into(folder, record).ours:
            with suppress(OSError):
                record_path(folder).unlink(missing_ok=True)
    if not left.agents:
        unstage(project, left.name)
    if not any(copies(folder, _GONE) for folder in targets):
        journal_path(project, left.name).unlink(missing_ok=True)
