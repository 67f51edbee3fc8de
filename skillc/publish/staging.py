"""Stage a compiled version, adopt it at all destinations of a skill, reject it, or roll back.

The manifest's `version` is the adopted one; a staged version is on this machine only.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.install import check_valid
from skillc.conflict import check_merged
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.provenance.quarantine import check_adoptable
from skillc.publish.changes import Changes, changes_between, is_tested, text_diff
from skillc.publish.destinations import (
    ADOPTIONS,
    Destination,
    destinations,
    edited,
)
from skillc.publish.kept import (
    Files,
    Version,
    append_log,
    digest_of,
    now,
    project_lock,
    read_log,
    waiting,
)
from skillc.publish.manifest import Entry, read_manifest
from skillc.publish.merging import Conflict, merge
from skillc.publish.policy import reasons_to_hold
from skillc.publish.sessions import are_cleared, sessions_behind, thin_rules
from skillc.publish.transaction import Adoption, Prepared, apply, check_not_quarantined, recover
from skillc.publish.waiting import (
    Staged,
    kept_version,
    lock_text_at,
    pinned_version,
    refused,
    staged,
    unstage,
    write_note,
)
from skillc.skill_files import read_folder
from skillc.text import counted, listed

__all__ = [
    "Adoption",
    "ConflictError",
    "EditedThereError",
    "Held",
    "Prepared",
    "Staged",
    "adopt",
    "adopt_by_policy",
    "changes_of",
    "current",
    "hold",
    "prepare",
    "reject",
    "rollback",
    "stage",
    "staged",
]

Edits = Literal["refuse", "keep", "drop"]


@dataclass(frozen=True, slots=True)
class Held:
    """A staged version that the policy does not adopt, with each reason."""

    skill: str
    version: Version
    reasons: tuple[str, ...]


class EditedThereError(SkillcError):
    """Destinations were changed by hand, and an adoption would overwrite the edits.

    Attributes:
        difference: the edits, from the adopted version, as unified diffs.
    """

    def __init__(self, name: str, changed: Collection[Destination], difference: str) -> None:
        names = listed([each.folder for each in changed], "and")
        hint = (
            f"`skillc adopt {name} --take-edits` takes the edits into the program, `--keep-edits` keeps them in this "
            "and later versions, `--drop-edits` replaces them and keeps a copy"
        )
        super().__init__(f"{names} {'was' if len(changed) == 1 else 'were'} changed by hand", hint=hint)
        self.difference = difference


class ConflictError(SkillcError):
    """Edits by hand and the update changed the same rules.

    Attributes:
        conflicts: with the texts of both sides.
    """

    def __init__(self, name: str, conflicts: tuple[Conflict, ...]) -> None:
        count = counted(len(conflicts), "rule")
        super().__init__(
            f"edits by hand and the update of `{name}` both changed {count}",
            hint=f"take the edits into the program: `skillc adopt {name} --take-edits`, or adopt the compiled text: "
            "`--drop-edits`, which keeps a copy of the edits",
        )
        self.conflicts = conflicts


# ---- what is adopted and staged -------------------------------------------------------------------


def current(project: Path, name: str) -> Version | None:
    """Return the adopted version of a skill, None before the first adoption.

    Raises:
        SkillcError: the manifest has no such entry, or the version is not in `skills.adopted`.
    """
    entry = read_manifest(project).entry(name)
    return pinned_version(project, entry) if entry.version is not None else None


def stage(
    project: Path, name: str, paths: ArtifactPaths, *, by: str, again: bool = False, commit: str | None = None
) -> Staged | None:
    """Stage a compiled skill; return None if there is nothing to adopt.

    That is so if it is the adopted version, was rejected or rolled back from (unless `again`), or if the policy is
    `never`. Edits by hand that the adopted version keeps are merged into it. `commit` is that of the repository that
    the skill is from.

    Raises:
        SkillcError: the manifest has no such entry, the skill is not valid or quarantined, or it cannot be written.
    """
    with project_lock(project):
        recover(project)
        entry = read_manifest(project).entry(name)
        check_merged(paths)
        files = read_folder(paths.folder)
        check_valid(paths, files)
        check_adoptable(paths)
        digest = digest_of(files)
        if entry.policy.who == "never" or digest == (entry.upstream or entry.version):
            unstage(project, name)
            return None
        if not again and digest in refused(project, name):
            return None
        # The sessions behind a skill of another repository are unknown here, whatever its lock names.
        lock, sessions = lock_text_at(paths.lock), sessions_behind(paths) if entry.git is None else ()
        upstream = waiting(project).keep(name, files, lock)
        version, conflicts = upstream, tuple[Conflict, ...]()
        if entry.upstream is not None:
            base = kept_version(project, name, entry.upstream).files()
            merged = merge(base, pinned_version(project, entry).files(), files)
            conflicts, version = merged.conflicts, waiting(project).keep(name, merged.files, lock)
        before = staged(project, name)
        if before is not None and before.version.digest == version.digest:
            return before
        found = Staged(name, version, upstream if version != upstream else None, by, now(), conflicts, sessions, commit)
        write_note(project, found)
        return found


def changes_of(project: Path, found: Staged) -> Changes:
    """Return what a staged version changes in the adopted one.

    Raises:
        SkillcError: one of them cannot be read.
    """
    before = current(project, found.skill)
    return changes_between(before.files() if before is not None else {}, found.version.files())


# ---- adoption -------------------------------------------------------------------------------------


def prepare(
    project: Path, name: str, *, edits: Edits = "refuse", environment: Mapping[str, str] = os.environ
) -> Prepared | None:
    """Return what an adoption would install; None if nothing is staged and no edit is to be kept or dropped.

    Raises:
        EditedThereError: a destination was changed by hand, and `edits` is `refuse`.
        ConflictError: edits and update changed the same rules.
        SkillcError: as `adopt`.
    """
    entry = read_manifest(project).entry(name)
    found = staged(project, name)
    pinned = pinned_version(project, entry) if entry.version is not None else None
    base = pinned.files() if pinned is not None else {}
    version, upstream = _wanted(project, entry, found, pinned, edits)
    files: Files = version.files() if version is not None else {}
    places = destinations(project, entry, environment, files)
    changed = edited(places, replaceable := _taken(project, name, found))
    if changed and edits == "refuse":
        diff = "".join(text_diff(base, each.files or {}, f"{each.folder}/") for each in changed)
        raise EditedThereError(name, changed, diff)
    if found is None and not (edits != "refuse" and (changed or (edits == "drop" and entry.upstream))):
        return None
    if version is None:
        return None
    lock = lock_text_at(version.paths.lock)
    if found is not None and found.conflicts and edits != "drop":
        raise ConflictError(name, found.conflicts)
    if changed and edits == "keep":
        if len({each.digest for each in changed}) > 1:
            names = listed([each.folder for each in changed], "and")
            raise SkillcError(f"{names} were changed differently", hint="copy the wanted edits to all of them")
        merged = merge(base, changed[0].files or {}, files)
        if merged.conflicts:
            raise ConflictError(name, merged.conflicts)
        if digest_of(merged.files) != version.digest:
            files, upstream = merged.files, upstream or version.digest
    digest = digest_of(files)
    replaced = tuple(each for each in (*changed, *_of(places, replaceable)) if each.digest != digest)
    allowed = frozenset(str(each.digest) for each in (*changed, *_of(places, replaceable)))
    commit = found.commit if found is not None else None
    return Prepared(entry, files, digest, lock, upstream, changes_between(base, files), replaced, allowed, commit)


def adopt(
    project: Path,
    name: str,
    *,
    by: str,
    why: str = "",
    digest: str | None = None,
    edits: Edits = "refuse",
    environment: Mapping[str, str] = os.environ,
    policy: str = "person",
) -> Adoption:
    """Install the staged version at all destinations of a skill, or at none.

    Args:
        project: the folder of the manifest.
        name: of the skill.
        by: who adopts it.
        why: the reason, for the log.
        digest: of the reviewed version, or its beginning; another one is refused.
        edits: what becomes of edits by hand at the destinations.
        environment: variables that locate the user's folders.
        policy: for the log.

    Raises:
        EditedThereError: a destination was changed by hand, and `edits` is `refuse`.
        ConflictError: edits and update changed the same rules.
        SkillcError: nothing is staged, the digest differs, the version is quarantined, or a destination cannot be
            written. Nothing is changed.
    """
    with project_lock(project):
        recover(project)
        ready = prepare(project, name, edits=edits, environment=environment)
        if ready is None:
            raise SkillcError(f"nothing is staged for `{name}`", hint=f"compile it, then `skillc update {name}`")
        if digest is not None and not _is_digest(digest, ready.digest):
            raise SkillcError(
                f"the version to adopt is `{ready.digest[:12]}`, and `--digest` names `{digest}`",
                hint=f"review it again: `skillc update {name}`",
            )
        event = {"event": "adopted", "who": by, "why": why, "policy": policy}
        return apply(project, ready, event, environment)


def adopt_by_policy(
    project: Path, name: str, *, by: str, environment: Mapping[str, str] = os.environ
) -> Adoption | Held:
    """Adopt the staged version if the policy of its entry admits it, else return why it is held.

    Raises:
        SkillcError: nothing is staged, or as `adopt`.
    """
    entry, found = read_manifest(project).entry(name), staged(project, name)
    if found is None:
        raise SkillcError(f"nothing is staged for `{name}`", hint=f"compile it, then `skillc update {name}`")
    reasons = hold(project, entry, found)
    if reasons:
        return Held(name, found.version, reasons)
    try:
        return adopt(
            project, name, by=by, digest=found.version.digest, environment=environment, policy=entry.policy.who
        )
    except EditedThereError as problem:
        return Held(name, found.version, (problem.message,))


def hold(project: Path, entry: Entry, found: Staged) -> tuple[str, ...]:
    """Return why a staged version needs a person; empty if the policy adopts it.

    Raises:
        SkillcError: a version or a lock cannot be read.
    """
    lock, files = found.version.lock(), found.version.files()
    cleared = entry.policy.sessions == "cleared" and bool(found.sessions) and are_cleared(project, found.sessions)
    thin = thin_rules(project, lock, entry.policy.support) if cleared and lock is not None else 0
    tested = lock is not None and is_tested(files, found.skill, lock)
    changes = changes_of(project, found)
    reasons = list(
        reasons_to_hold(entry.policy, changes, lock, tested=tested, sessions=found.sessions, cleared=cleared, thin=thin)
    )
    upstream = found.upstream.digest if found.upstream is not None else None
    try:
        check_not_quarantined(project, found.skill, (found.version.digest, upstream))
    except SkillcError as problem:
        reasons.append(problem.message)
    if entry.git is not None:
        reasons.append("it is from another repository, and a person reads it first")
    if found.conflicts:
        reasons.append(f"it conflicts with kept edits in {counted(len(found.conflicts), 'rule')}")
    return tuple(reasons)


def reject(project: Path, name: str, *, by: str, why: str) -> Staged:
    """Drop the staged version, and remember its digest: it is not staged again.

    Raises:
        SkillcError: nothing is staged, or the log cannot be written.
    """
    with project_lock(project):
        recover(project)
        found = staged(project, name)
        if found is None:
            raise SkillcError(f"nothing is staged for `{name}`", hint="`skillc installed` lists what is")
        upstream = found.upstream.digest if found.upstream is not None else None
        digests = {"refused": found.version.digest, **({"refused_upstream": upstream} if upstream else {})}
        append_log(project, name, {"event": "rejected", "when": now(), "who": by, "why": why, **digests})
        unstage(project, name)
        return found


def rollback(
    project: Path,
    name: str,
    *,
    to: str | None = None,
    by: str,
    why: str = "",
    edits: Edits = "refuse",
    environment: Mapping[str, str] = os.environ,
) -> Adoption:
    """Roll back to an earlier version at all destinations; the version left is not staged again.

    Args:
        project: the folder of the manifest.
        name: of the skill.
        to: digest of an adopted version, or its beginning; by default the one before the present one.
        by: who rolls back.
        why: the reason, for the log.
        edits: `drop` replaces edits by hand, with a copy.
        environment: variables that locate the user's folders.

    Raises:
        SkillcError: there is no such version, or as `adopt`. Nothing is changed.
    """
    with project_lock(project):
        recover(project)
        entry = read_manifest(project).entry(name)
        records = _stack(project, name)
        if to is None:
            if entry.version is None or len(records) < 2 or records[-1]["version"] != entry.version:
                raise SkillcError(
                    f"`{name}` has no version before the present one", hint="name one of `skillc installed --versions`"
                )
            record = records[-2]
        else:
            record = _adopted_as(project, name, to, entry)
        version = kept_version(project, name, str(record["version"]))
        files = version.files()
        changed = edited(destinations(project, entry, environment, files))
        base = pinned_version(project, entry).files() if entry.version is not None else {}
        if changed and edits != "drop":
            diff = "".join(text_diff(base, each.files or {}, f"{each.folder}/") for each in changed)
            raise EditedThereError(name, changed, diff)
        ready = Prepared(
            entry,
            files,
            version.digest,
            lock_text_at(version.paths.lock),
            record.get("upstream"),
            changes_between(base, files),
            tuple(changed),
            frozenset(str(each.digest) for each in changed),
            record.get("commit"),
        )
        left = {"refused": entry.version, **({"refused_upstream": entry.upstream} if entry.upstream else {})}
        return apply(project, ready, {"event": "rolled back", "who": by, "why": why, **left}, environment)


# ---- parts ----------------------------------------------------------------------------------------


def _wanted(
    project: Path, entry: Entry, found: Staged | None, pinned: Version | None, edits: Edits
) -> tuple[Version | None, str | None]:
    """Return the version to adopt before edits are merged, and its upstream."""
    if found is not None:
        pure = found.upstream or found.version
        if edits == "drop":
            return pure, None
        return found.version, found.upstream.digest if found.upstream is not None else None
    if edits == "drop" and entry.upstream is not None:
        return kept_version(project, entry.name, entry.upstream), None
    return pinned, entry.upstream


def _taken(project: Path, name: str, found: Staged | None) -> set[str]:
    """Return digests of edited destinations whose edits the staged version has from its program."""
    if found is None:
        return set()
    compiled = (found.upstream or found.version).digest
    records = [each for each in read_log(project, name) if each["event"] == "edits taken"]
    return {str(each["edits"]) for each in records if each.get("compiled") != compiled}


def _of(places: Collection[Destination], digests: Collection[str]) -> list[Destination]:
    return [each for each in places if each.state == "changed by hand" and each.digest in digests]


def _stack(project: Path, name: str) -> list[dict[str, Any]]:
    """Return the adoptions that led to the present version, oldest first: a rollback removes those after its target."""
    stack = list[dict[str, Any]]()
    for each in read_log(project, name):
        if each["event"] not in ADOPTIONS:
            continue
        known = [i for i, other in enumerate(stack) if other["version"] == each["version"]]
        if each["event"] == "rolled back" and known:
            del stack[known[-1] + 1 :]
        elif not known or known[-1] != len(stack) - 1:
            stack.append(each)
    return stack


def _adopted_as(project: Path, name: str, to: str, entry: Entry) -> dict[str, Any]:
    records = {str(each["version"]): each for each in read_log(project, name) if each["event"] in ADOPTIONS}
    found = [each for digest, each in records.items() if _is_digest(to, digest)]
    if len(found) != 1:
        known = listed([digest[:12] for digest in records]) or "none"
        problem = "no adopted version" if not found else "more than one adopted version"
        raise SkillcError(f"{problem} of `{name}` begins with `{to}`", hint=f"adopted versions: {known}")
    if found[0]["version"] == entry.version:
        raise SkillcError(f"`{to}` is the present version of `{name}`")
    return found[0]


def _is_digest(given: str, digest: str) -> bool:
    digits = given.removeprefix("sha256:")
    return len(digits) >= 8 and digest.startswith(digits)
