"""Uninstall a skill of the manifest: from all of its destinations, or from some."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from skillc.artifacts.install import other_source
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.publish.changes import text_diff
from skillc.publish.destinations import Destination, destinations, edited, keep_copies, known_versions
from skillc.publish.kept import adopted, now, project_lock
from skillc.publish.manifest import MANIFEST, Entry, Scope, read_manifest
from skillc.publish.removing import Removal, apply_removal
from skillc.publish.transaction import recover
from skillc.publish.waiting import pinned_version
from skillc.text import listed


class ChangedSinceError(SkillcError):
    """Destinations were changed by hand, and removing them would lose the edits.

    Attributes:
        difference: the edits, from the adopted version, as unified diffs.
    """

    def __init__(self, name: str, problem: str, difference: str) -> None:
        super().__init__(problem, hint=f"`skillc uninstall {name} --force` removes it and keeps a copy")
        self.difference = difference


@dataclass(frozen=True, slots=True)
class Uninstalled:
    """A skill after its removal, or after a dry run.

    Attributes:
        places: the destinations that were removed, with the state before.
        left: destinations that the manifest still has.
        copies: of the edits by hand that were removed.
    """

    skill: str
    places: tuple[Destination, ...]
    left: int
    copies: tuple[Path, ...] = ()


def uninstall(
    project: Path,
    name: str,
    agents: Sequence[str] = (),
    scope: Scope | None = None,
    *,
    by: str,
    why: str = "",
    force: bool = False,
    dry_run: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> Uninstalled:
    """Remove a skill from its destinations, all or none; with the last one its entry leaves the manifest.

    Its versions and its log stay in `skills.adopted`, and files that skillc did not write stay where they are.

    Args:
        project: the folder of the manifest.
        name: of the skill.
        agents: only from these.
        scope: only from the project's, or the user's, folders.
        by: who removes it.
        why: the reason, for the log.
        force: remove destinations that were changed by hand, with a copy.
        dry_run: remove nothing.
        environment: variables that locate the user's folders.

    Raises:
        ChangedSinceError: a destination was changed by hand, and not `force`.
        SkillcError: the manifest has no such skill or destination, one is a link, is from another skill, or cannot be
            removed. Nothing is changed.
    """
    if dry_run:
        return _uninstall(project, name, agents, scope, by, why, environment, force=force, dry_run=True)
    with project_lock(project):
        recover(project, environment)
        return _uninstall(project, name, agents, scope, by, why, environment, force=force, dry_run=False)


def _uninstall(
    project: Path,
    name: str,
    agents: Sequence[str],
    scope: Scope | None,
    by: str,
    why: str,
    environment: Mapping[str, str],
    *,
    force: bool,
    dry_run: bool,
) -> Uninstalled:
    entry = read_manifest(project).entry(name)
    places = [
        each
        for each in destinations(project, entry, environment)
        if (not agents or each.agent in agents) and (scope is None or each.scope == scope)
    ]
    missing = [each for each in agents if each not in {place.agent for place in places}]
    if missing or (not places and entry.agents):
        where = f" for {listed(missing)}" if missing else f" in the {scope}'s folders"
        raise SkillcError(f"`{MANIFEST}` has no `{name}`{where}", hint=f"it has: {_has(entry)}")
    changed = edited(places)
    for each in places:
        other = other_source(entry.origin(project), each.folder)
        if each.files is not None and other is not None:
            raise SkillcError(
                f"`{each.folder}` was installed from another skill of that name, {other}",
                hint=f"uninstall it there, or take it out of `{MANIFEST}` by hand",
            )
    if changed and not force:
        _refuse_changed(project, entry, changed)
    kept = adopted(project)
    copied = [
        each
        for each in places
        if each.digest is not None and (each in changed or kept.version(name, each.digest) is None)
    ]
    left = len(entry.agents) - len(places)
    if dry_run:
        return Uninstalled(name, tuple(places), left)
    copies = keep_copies(project, name, copied)
    record = {
        "event": "uninstalled",
        "when": now(),
        "who": by,
        "why": why,
        "version": entry.version,
        "from": [f"{each.scope}: {each.agent}" for each in places],
    }
    may_remove = known_versions(project, name) | {each.digest for each in places if each.digest is not None}
    apply_removal(project, Removal(entry, tuple(places), record, frozenset(may_remove)))
    return Uninstalled(name, tuple(places), left, tuple(copies))


def _has(entry: Entry) -> str:
    return ", ".join(f"`{agent}` ({scope})" for scope, agent in entry.agents) or "no destination"


def _refuse_changed(project: Path, entry: Entry, changed: Sequence[Destination]) -> None:
    base = pinned_version(project, entry).files() if entry.version is not None else {}
    names = listed([each.folder for each in changed], "and")
    diff = "".join(text_diff(base, each.files or {}, f"{each.folder}/") for each in changed)
    raise ChangedSinceError(entry.name, f"{names} {'was' if len(changed) == 1 else 'were'} changed by hand", diff)
