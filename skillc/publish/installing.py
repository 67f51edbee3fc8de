"""Add skills to the manifest, and bring all destinations to it: a fresh clone gets the same skills."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.install import InstallTarget, check_valid, install_files, notes_on, skill_of
from skillc.artifacts.loading import program_in
from skillc.conflict import check_merged
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.plan.lock import read_lock
from skillc.provenance.quarantine import check_adoptable
from skillc.publish.changes import text_diff
from skillc.publish.destinations import destinations, edited, folders, has_version, keep_copies, known_versions
from skillc.publish.git_address import check_address, check_ref
from skillc.publish.git_source import fetch, restore
from skillc.publish.kept import HOME, adopted, append_log, digest_of, now, project_lock
from skillc.publish.manifest import MANIFEST, Entry, GitOrigin, Scope, read_manifest, source_of, write_entry
from skillc.publish.staging import EditedThereError, stage
from skillc.publish.transaction import recover
from skillc.publish.waiting import lock_text_at, pinned_version
from skillc.skill_files import read_folder


@dataclass(frozen=True, slots=True)
class SkillInstalled:
    """A skill of the manifest after an install, or after its dry run.

    Attributes:
        version: digest of the installed version.
        verdict: of its lock, None without one.
        staged: digest of a compiled version that waits for adoption.
    """

    skill: str
    source: str
    version: str
    verdict: str | None
    targets: tuple[InstallTarget, ...]
    notes: tuple[str, ...] = ()
    staged: str | None = None


def add(
    root: Path,
    path: Path,
    agents: Sequence[str],
    scope: Scope,
    *,
    by: str,
    force: bool = False,
    dry_run: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> SkillInstalled:
    """Install a compiled skill for agents, and add it to the manifest of a project with its version.

    A skill that is already in the manifest is installed in the adopted version; a newer version is staged.

    Args:
        root: the folder of the manifest, and the project of scope `project`.
        path: a program, its folder, or the folder of a skill.
        agents: keys of `AGENTS`.
        scope: whether the project's or the user's folders of these agents.
        by: who installs it.
        force: overwrite changed files.
        dry_run: write nothing.
        environment: variables that locate the user's folders.

    Raises:
        ChangedThereError: a destination contains something else.
        SkillcError: the skill does not exist, another one of this name is in the manifest, or it cannot be written.
    """
    if not root.is_dir():
        raise SkillcError(f"folder `{root}` does not exist")
    paths = skill_of(path)
    check_merged(paths)
    source = source_of(root, path if path == paths.folder or (path / "SKILL.md").is_file() else program_in(path))
    if dry_run:
        return _add(root, source, paths, agents, scope, by, force=force, dry_run=True, environment=environment)
    with project_lock(root):
        recover(root, environment)
        done = _add(root, source, paths, agents, scope, by, force=force, dry_run=False, environment=environment)
    if done.staged is not None:
        stage(root, done.skill, paths, by=by)
    return done


def add_from_git(
    root: Path,
    url: str,
    folder: str | None,
    ref: str | None,
    agents: Sequence[str],
    scope: Scope,
    *,
    by: str,
    force: bool = False,
    dry_run: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> SkillInstalled:
    """Install a compiled skill of a git repository, and pin it in the manifest to the commit that it is from.

    Args:
        root: the folder of the manifest, and the project of scope `project`.
        url: the address of the repository; a path on this machine is stored relative to `root`.
        folder: of the skill in the repository; None if it has one skill only.
        ref: a branch, a tag or a commit; None for the default branch.
        agents: keys of `AGENTS`.
        scope: whether the project's or the user's folders of these agents.
        by: who installs it.
        force: overwrite changed files.
        dry_run: fetch the skill, and write nothing else.
        environment: variables that locate the user's folders.

    Raises:
        ChangedThereError: a destination contains something else.
        SkillcError: the repository cannot be read, or the skill cannot be used; or as `add`.
    """
    if not root.is_dir():
        raise SkillcError(f"folder `{root}` does not exist")
    address = check_address(url)
    if Path(url).expanduser().is_dir():
        address = source_of(root, Path(url).expanduser())
    origin = GitOrigin(check_address(address), check_ref(ref) if ref is not None else None)
    with project_lock(root):
        recover(root, environment)
        fetched = fetch(root, origin, folder)
        paths, pinned = fetched.paths, replace(origin, commit=fetched.commit)
        check_adoptable(paths)
        done = _add(
            root,
            fetched.folder,
            paths,
            agents,
            scope,
            by,
            force=force,
            dry_run=dry_run,
            environment=environment,
            git=pinned,
        )
    if done.staged is not None and not dry_run:
        stage(root, done.skill, paths, by=by, commit=fetched.commit)
    return done


def install_all(
    root: Path,
    *,
    force: bool = False,
    dry_run: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> list[SkillInstalled]:
    """Bring all destinations of a manifest to the adopted versions, or none if one of them was changed.

    Raises:
        EditedThereError: a destination was changed by hand, and not `force`.
        SkillcError: the manifest has no skill, a version is missing, or a destination cannot be written.
    """
    if dry_run:
        return _bring(root, _entries(root), environment, force=force, dry_run=True)
    if not (root / HOME).is_dir():
        _entries(root)
    with project_lock(root):
        recover(root, environment)
        entries = _entries(root)
        _bring(root, entries, environment, force=force, dry_run=True)
        return _bring(root, entries, environment, force=force, dry_run=False)


def _entries(root: Path) -> list[Entry]:
    manifest = read_manifest(root)
    return list(manifest.entries.values()) or [manifest.entry("")]


def _bring(
    root: Path, entries: Sequence[Entry], environment: Mapping[str, str], *, force: bool, dry_run: bool
) -> list[SkillInstalled]:
    done = []
    for entry in entries:
        if entry.version is None:
            raise SkillcError(
                f"`{entry.name}` in `{MANIFEST}` has no version", hint=f"`skillc update {entry.name}` stages one"
            )
        if entry.git is not None and not has_version(root, entry):
            restore(root, entry)
        version = pinned_version(root, entry)
        check_adoptable(version.paths)
        files, lock, known = version.files(), version.lock(), known_versions(root, entry.name)
        changed = edited(destinations(root, entry, environment, files))
        if changed and not force:
            diff = "".join(text_diff(files, each.files or {}, f"{each.folder}/") for each in changed)
            raise EditedThereError(entry.name, changed, diff)
        if changed and not dry_run:
            keep_copies(root, entry.name, changed)
        places = [(agent, place) for _, agent, place in folders(root, entry, environment)]
        targets = install_files(
            entry.origin(root),
            files,
            places,
            force=force,
            dry_run=dry_run,
            may_replace=lambda present, known=known: digest_of(present) in known,  # type: ignore[misc]  # bound now
        )
        verdict = lock.verdict if lock is not None else None
        done.append(SkillInstalled(entry.name, entry.source, version.digest, verdict, targets))
    return done


def _add(
    root: Path,
    source: str,
    paths: ArtifactPaths,
    agents: Sequence[str],
    scope: Scope,
    by: str,
    *,
    force: bool,
    dry_run: bool,
    environment: Mapping[str, str],
    git: GitOrigin | None = None,
) -> SkillInstalled:
    files, lock = read_folder(paths.folder), read_lock(paths.lock) if paths.lock.exists() else None
    check_valid(paths, files)
    digest, name = digest_of(files), paths.name
    before = read_manifest(root).entries.get(name)
    asked = Entry(name, source, git=git)
    if before is not None and not _is_same(root, before, asked):
        raise SkillcError(
            f"`{root / MANIFEST}` has `{name}` from {_origin(before)}, not from {_origin(asked)}",
            hint="rename one of the two skills, or use `--no-manifest`",
        )
    entry = before or asked
    once = tuple(dict.fromkeys(agents))
    new = Entry(name, source, project=once, git=git) if scope == "project" else Entry(name, source, user=once, git=git)
    entry = replace(entry, project=_union(entry.project, new.project), user=_union(entry.user, new.user))
    staged = None
    if before is not None and before.version is not None:
        version = pinned_version(root, before)
        staged = digest if digest != (before.upstream or before.version) else None
        files, lock = version.files(), version.lock()
    known = known_versions(root, name)
    entry = replace(entry, version=entry.version or digest)
    places = [(agent, place) for _, agent, place in folders(root, new, environment)]

    if force and not dry_run:
        keep_copies(root, name, edited(destinations(root, replace(new, version=entry.version), environment, files)))

    def commit() -> None:
        if before is None or before.version is None:
            adopted(root).keep(name, files, lock_text_at(paths.lock))
            record = {"event": "installed", "when": now(), "who": by, "version": digest, "before": None}
            record |= {"commit": git.commit} if git is not None else {}
            append_log(root, name, record)
        write_entry(root, entry)

    targets = install_files(
        entry.origin(root),
        files,
        places,
        force=force,
        dry_run=dry_run,
        may_replace=lambda present: digest_of(present) in known,
        commit=commit,
    )
    notes = notes_on(paths, lock) if staged is None else ()
    verdict = lock.verdict if lock is not None else None
    return SkillInstalled(name, entry.source, str(entry.version), verdict, targets, notes, staged)


def _is_same(root: Path, one: Entry, other: Entry) -> bool:
    """Return whether two entries are of the same skill, whatever its version is."""
    if one.git is None or other.git is None:
        return one.git is other.git and (root / one.source).resolve() == (root / other.source).resolve()
    return (one.git.url, one.git.ref, one.source) == (other.git.url, other.git.ref, other.source)


def _origin(entry: Entry) -> str:
    if entry.git is None:
        return f"`{entry.source}`"
    return f"`{entry.source}` in `{entry.git.url}`" + (f" at `{entry.git.ref}`" if entry.git.ref else "")


def _union(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*one, *other]))
