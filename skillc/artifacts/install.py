"""Copy a compiled skill to where an agent reads it, without overwriting what was changed there.

Beside an installed skill is a record, `.NAME.skillc.json`: digests of the files, and where they came from. It is in the
agent's folder, so that a clone of the project and another project of the same user see it too.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import SKILL_FILE, ArtifactPaths
from skillc.artifacts.loading import program_in
from skillc.artifacts.owner import path_to
from skillc.conflict import check_merged
from skillc.diagnostics.render import difference
from skillc.document.skill_md import from_skill_md, validate
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.frontend import plan_file
from skillc.plan.lock import Lock, has_digest, read_lock

Action = Literal["install", "update", "replace", "unchanged"]
Contents = Mapping[str, bytes]

# Seconds after which a copy that was never put in its place is taken for a killed process's.
_ABANDONED = 3600.0
_SKIPPED = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent and its folders of skills.

    Attributes:
        title: its name for readers.
        project: its folder below a project, None if it reads none.
        user: variables that move its own folder, what is below such a folder, and the default below the home.
        source: the page that says so.
    """

    title: str
    project: str | None
    variable: str | None
    below: str
    default: str
    source: str


AGENTS: Mapping[str, Agent] = {
    "claude-code": Agent(
        *("Claude Code", ".claude/skills", "CLAUDE_CONFIG_DIR", "skills", ".claude/skills"),
        "https://code.claude.com/docs/en/skills",
    ),
    "codex": Agent(
        *("Codex", ".agents/skills", None, "", ".agents/skills"),
        "https://developers.openai.com/codex/skills",
    ),
    "opencode": Agent(
        *("opencode", ".opencode/skills", "XDG_CONFIG_HOME", "opencode/skills", ".config/opencode/skills"),
        "https://opencode.ai/docs/skills",
    ),
    "hermes": Agent(
        *("Hermes Agent", None, "HERMES_HOME", "skills", ".hermes/skills"),
        "https://hermes-agent.nousresearch.com/docs/user-guide/features/skills",
    ),
}


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """One place that a skill goes to.

    Attributes:
        agent: a key of `AGENTS`.
        folder: of the skill there.
        action: what installing does.
    """

    agent: str
    folder: Path
    action: Action


@dataclass(frozen=True, slots=True)
class Installed:
    """What was installed, or would be.

    Attributes:
        skill: its name.
        source: its folder.
        verdict: of the lock, None without one.
        notes: what the user should know.
    """

    skill: str
    source: Path
    verdict: str | None
    targets: tuple[InstallTarget, ...]
    notes: tuple[str, ...]


class ChangedThereError(SkillcError):
    """What is installed was changed, or is not skillc's.

    Attributes:
        difference: from what is there to what would be installed, as unified diffs.
    """

    def __init__(self, message: str, shown: str) -> None:
        super().__init__(message, hint="keep it and install elsewhere, or overwrite it with `--force`")
        self.difference = shown


def install_skill(
    path: Path,
    agents: Sequence[str],
    *,
    project: Path | None,
    environment: Mapping[str, str],
    force: bool = False,
    dry_run: bool = False,
) -> Installed:
    """Install a skill for some agents: for all of them or, if one place refuses it, for none.

    Args:
        path: a program, its folder, or the folder of a skill.
        agents: keys of `AGENTS`.
        project: the project to install into, None for the user's own folders.
        environment: variables that say where those are.
        force: overwrite what was changed there.
        dry_run: only say what would be done.

    Raises:
        ChangedThereError: a place holds something else.
        SkillcError: there is no such skill, or a place cannot be written.
    """
    paths = _skill_of(path)
    check_merged(paths)
    files, lock = _files_of(paths.folder), read_lock(paths.lock) if paths.lock.exists() else None
    _check_valid(paths, files)
    places = {agent: _place(agent, project, environment) for agent in agents}

    def looked_at() -> tuple[InstallTarget, ...]:
        return tuple(_target(agent, place, paths, files, force=force) for agent, place in places.items())

    if not dry_run:
        for place in places.values():
            _recover(place / paths.name)
    targets = looked_at()
    if not dry_run:
        _write([each for each in targets if each.action != "unchanged"], paths, files, looked_at)
    return Installed(paths.name, paths.folder, lock.verdict if lock else None, targets, _notes(paths, lock))


def _notes(paths: ArtifactPaths, lock: Lock | None) -> tuple[str, ...]:
    if lock is None:
        return (f"`{paths.lock}` is not there, so nothing says how this skill was tested",)
    edited = [
        str(path)
        for name, path in paths.files.items()
        if path == paths.skill and not has_digest(path.read_bytes(), lock.files.get(name))
    ]
    return tuple(f"`{path}` was edited since the compile, so the lock's test is of another text" for path in edited)


# ---- the skill ------------------------------------------------------------------------------------


def _skill_of(path: Path) -> ArtifactPaths:
    paths = ArtifactPaths.of_folder(path)
    if paths.skill.is_file():
        return paths
    program = program_in(path)
    paths = ArtifactPaths.beside(program.parent, plan_file(program, complete=False).plan.skill.artifact)
    if not paths.skill.is_file():
        hint = f"`skillc compile {program}`; a skill of `--output` is named by its folder"
        if paths.candidate.skill.is_file():
            hint = f"the last one was not delivered: `skillc compile {program} --require none` delivers it"
        raise SkillcError(f"`{program}` is not compiled: there is no `{paths.skill}`", hint=hint)
    return paths


def _files_of(folder: Path) -> Contents:
    """Return the files of a skill by their paths, with `/`; hidden ones and caches are no part of it."""
    found = {}
    try:
        for place, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
            for name in sorted([*names, *(each for each in folders if Path(place, each).is_symlink())]):
                file = Path(place, name)
                if name.startswith("."):
                    continue
                if file.is_symlink() or not file.is_file():
                    raise SkillcError(f"`{file}` is not a plain file", hint="put the file itself there")
                found[file.relative_to(folder).as_posix()] = file.read_bytes()
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be read: {problem.strerror}") from problem
    return found


def _check_valid(paths: ArtifactPaths, files: Contents) -> None:
    try:
        skill = from_skill_md(files[SKILL_FILE].decode("utf-8-sig"))
    except (SkillcError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{paths.skill}` is no skill: {problem}") from problem
    problems = validate(skill.name, skill.about)
    if skill.name != paths.name:
        problems.append(f"the name `{skill.name}` is not that of its folder")
    if problems:
        raise SkillcError(f"no agent loads `{paths.skill}`: {problems[0]}", hint="fix its frontmatter")


# ---- the place ------------------------------------------------------------------------------------


def _place(agent: str, project: Path | None, environment: Mapping[str, str]) -> Path:
    """Return the folder of skills of an agent.

    Raises:
        SkillcError: the agent has none, or a link leads out of the project.
    """
    known = AGENTS[agent]
    if project is None:
        own = environment.get(known.variable, "") if known.variable is not None else ""
        return Path(own, known.below) if own else _home(environment) / known.default
    if known.project is None:
        raise SkillcError(f"{known.title} reads no skills of a project", hint="install it for yourself with `--user`")
    if not project.is_dir():
        raise SkillcError(f"there is no folder `{project}`")
    place = project / known.project
    if not place.resolve().is_relative_to(project.resolve()):
        raise SkillcError(f"`{place}` is behind a link that leads out of `{project}`", hint="replace it by a folder")
    return place


def _home(environment: Mapping[str, str]) -> Path:
    home = environment.get("HOME") or environment.get("USERPROFILE")
    if not home:
        raise SkillcError("the home folder is not known", hint="set `HOME`, or name a project with `--project`")
    return Path(home)


def _target(agent: str, place: Path, paths: ArtifactPaths, files: Contents, *, force: bool) -> InstallTarget:
    """Return what installing at a place does.

    Raises:
        ChangedThereError: something else is there.
    """
    folder = place / paths.name
    if folder.is_symlink():
        to = folder.readlink()
        raise SkillcError(f"`{folder}` is a link to `{to}`", hint="remove the link; what it leads to is never written")
    if folder.resolve() == paths.folder.resolve():
        raise SkillcError(f"`{folder}` is the compiled skill itself", hint="there is nothing to install")
    if not folder.exists():
        return InstallTarget(agent, folder, "install")
    if not folder.is_dir():
        raise SkillcError(f"`{folder}` is a file", hint="remove it")
    there, record = _files_of(folder), _record(folder)
    if there == files and record.get("from") == _origin(paths, folder):
        return InstallTarget(agent, folder, "unchanged")
    if force or there == files:
        return InstallTarget(agent, folder, "replace" if there != files else "update")
    shown = _differences(folder, there, files)
    if not record:
        raise ChangedThereError(f"`{folder}` was not installed by skillc and would be overwritten", shown)
    digests = _digests(there)
    if digests not in (record.get("files"), record.get("writing")):
        raise ChangedThereError(f"`{folder}` was changed since it was installed and would be overwritten", shown)
    origin = str(record.get("from"))
    if origin != _origin(paths, folder) and not _is_gone(origin, folder):
        message = f"`{folder}` was installed from another skill of that name, {_named(origin, folder)}"
        raise ChangedThereError(message, shown)
    return InstallTarget(agent, folder, "update")


def _origin(paths: ArtifactPaths, folder: Path) -> str:
    """Return where a skill comes from, by the path from where it goes; see `skillc/artifacts/owner.py`."""
    return path_to(paths.folder, folder.parent)


def _is_gone(origin: str, folder: Path) -> bool:
    return not origin.startswith("sha256:") and not (folder.parent.resolve() / origin / SKILL_FILE).exists()


def _named(origin: str, folder: Path) -> str:
    if origin.startswith("sha256:"):
        return "in a folder that the record does not name"
    return f"`{os.path.normpath(folder.parent.resolve() / origin)}`"


def _differences(folder: Path, there: Contents, files: Contents) -> str:
    """Return what installing would change, file by file."""
    shown = []
    for name in sorted({*there, *files}):
        before, after = (side.get(name, b"").decode(errors="replace") for side in (there, files))
        shown.append(difference(str(folder / name), before, after))
    return "".join(shown)


# ---- writing --------------------------------------------------------------------------------------


def _write(
    targets: Sequence[InstallTarget], paths: ArtifactPaths, files: Contents, check: Callable[[], object]
) -> None:
    """Copy a skill beside all its places, check the places again, then put each copy in its place in one step."""
    staged: list[tuple[InstallTarget, Path]] = []
    try:
        for target in targets:
            staged.append((target, _beside(target.folder, "new")))
            _stage(staged[-1][1], files)
        check()
        for target, new in staged:
            _swap(target, new, _origin(paths, target.folder), _digests(files))
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be written: {problem.strerror}") from problem
    finally:
        for _, new in staged:
            shutil.rmtree(new, ignore_errors=True)


def _stage(new: Path, files: Contents) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    new.mkdir()
    for name, content in files.items():
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(new / name, content)


def _swap(target: InstallTarget, new: Path, origin: str, digests: Mapping[str, str]) -> None:
    """Put a copy in the place of a skill. The record names the old and the new files while both may be there."""
    folder, old = target.folder, _beside(target.folder, "old")
    record: dict[str, object] = {"format_version": 1, "from": origin, "files": digests}
    before = _record(folder).get("files")
    _write_record(folder, {**record, "files": before, "writing": digests} if before else record)
    if folder.exists():
        folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    if before:
        # Until the old skill is gone, so that a kill leaves nothing that looks like somebody's own.
        _write_record(folder, {**record, "before": before})
    shutil.rmtree(old, ignore_errors=True)
    _write_record(folder, record)


def _recover(folder: Path) -> None:
    """Recover from a kill: put back a skill whose place is empty, and remove copies that nothing needs."""
    if not folder.parent.is_dir() or folder.is_symlink():
        return
    record, now = _record(folder), time.time()
    try:
        for old in sorted(folder.parent.glob(f".{folder.name}.*.old")):
            if not folder.exists():
                old.rename(folder)
            elif _digests(_files_of(old)) in (record.get("files"), record.get("writing"), record.get("before")):
                shutil.rmtree(old)
        for new in folder.parent.glob(f".{folder.name}.*.new"):
            # A younger one may be another process's.
            if now - new.stat().st_mtime > _ABANDONED:
                shutil.rmtree(new)
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be written: {problem.strerror}") from problem


def _beside(folder: Path, what: str) -> Path:
    return folder.with_name(f".{folder.name}.{os.getpid()}.{what}")


def _digests(files: Contents) -> dict[str, str]:
    return {name: hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() for name, content in files.items()}


def _record_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.skillc.json")


def _record(folder: Path) -> Mapping[str, object]:
    try:
        record = json.loads(_record_of(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write_record(folder: Path, record: Mapping[str, object]) -> None:
    write_atomically(_record_of(folder), json.dumps(record, indent=2, sort_keys=True) + "\n")


def install_json(done: Installed, *, dry_run: bool) -> dict[str, object]:
    """Return the result for a program to read."""
    return {
        "format_version": 1,
        "skill": done.skill,
        "source": str(done.source),
        "verdict": done.verdict,
        "dry_run": dry_run,
        "targets": [{"agent": each.agent, "path": str(each.folder), "action": each.action} for each in done.targets],
        "notes": list(done.notes),
    }


def install_text(done: Installed, *, dry_run: bool) -> str:
    """Return the result for people, a line for each place."""
    said: Callable[[Action], str] = (_WOULD if dry_run else _DID).__getitem__
    width = max(len(each.agent) for each in done.targets)
    lines = [f"{each.agent:<{width}}  {_shown(each.folder)}   {said(each.action)}" for each in done.targets]
    return "\n".join([*(f"note: {note}" for note in done.notes), *lines])


def _shown(folder: Path) -> str:
    """Return a folder as a shell takes it, with `~` for the home."""
    try:
        return f"~/{folder.relative_to(Path.home()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(folder)


_DID: Mapping[Action, str] = {
    "install": "installed",
    "update": "updated",
    "replace": "replaced",
    "unchanged": "is up to date",
}
_WOULD: Mapping[Action, str] = {
    "install": "would be installed",
    "update": "would be updated",
    "replace": "would be replaced",
    "unchanged": "is up to date",
}
