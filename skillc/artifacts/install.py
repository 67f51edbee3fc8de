"""Copy a compiled skill to an agent's folder, without overwriting changes made there.

Beside an installed skill is a record with the digests of the files and their origin; see `beside.py`. It is in the
agent's folder, so that a clone of the project and another project of the same user see it too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import SKILL_FILE, ArtifactPaths
from skillc.artifacts.beside import (
    beside,
    digests,
    free_beside,
    locked,
    read_record,
    record_path,
    recover_folder,
    write_record,
)
from skillc.artifacts.foreign import are_carried, carry, look_into
from skillc.artifacts.loading import paths_of_program, program_in
from skillc.artifacts.owner import path_to
from skillc.conflict import check_merged
from skillc.dataclass import dataclass
from skillc.diagnostics.render import difference
from skillc.document.skill_md import from_skill_md, validate
from skillc.errors import SkillcError
from skillc.plan.lock import Lock, has_digest, read_lock
from skillc.skill_files import read_folder, write_folder

Action = Literal["install", "update", "replace", "unchanged"]
Contents = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent and its folders of skills.

    Attributes:
        project: its folder below a project, None if it reads none.
        default: its folder below the home.
        variable: the variable that moves the folder, and the folder below its value.
    """

    title: str
    project: str | None
    default: str
    variable: tuple[str, str] | None = None


AGENTS: Mapping[str, Agent] = {
    # https://code.claude.com/docs/en/skills
    "claude-code": Agent("Claude Code", ".claude/skills", ".claude/skills", ("CLAUDE_CONFIG_DIR", "skills")),
    # https://developers.openai.com/codex/skills
    "codex": Agent("Codex", ".agents/skills", ".agents/skills"),
    # https://opencode.ai/docs/skills
    "opencode": Agent(
        "opencode", ".opencode/skills", ".config/opencode/skills", ("XDG_CONFIG_HOME", "opencode/skills")
    ),
    # https://geminicli.com/docs/cli/using-agent-skills
    "gemini": Agent("Gemini CLI", ".gemini/skills", ".gemini/skills", ("GEMINI_CLI_HOME", ".gemini/skills")),
    # https://hermes-agent.nousresearch.com/docs/user-guide/features/skills
    "hermes": Agent("Hermes Agent", None, ".hermes/skills", ("HERMES_HOME", "skills")),
}


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """One destination of a skill.

    Attributes:
        agent: a key of `AGENTS`.
        present: digests of the files that are replaced, None without any.
    """

    agent: str
    folder: Path
    action: Action
    present: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Installed:
    """The result of an install or of its dry run.

    Attributes:
        verdict: of the lock, None without one.
    """

    skill: str
    source: Path
    verdict: str | None
    targets: tuple[InstallTarget, ...]
    notes: tuple[str, ...]


class ChangedThereError(SkillcError):
    """The installed files were changed, or were not installed by skillc.

    Attributes:
        difference: from the present files to the new ones, as unified diffs.
    """

    def __init__(self, message: str, changes: str) -> None:
        super().__init__(message, hint="keep it and install elsewhere, or overwrite it with `--force`")
        self.difference = changes


def install_skill(
    path: Path,
    agents: Sequence[str],
    *,
    project: Path | None,
    environment: Mapping[str, str],
    force: bool = False,
    dry_run: bool = False,
) -> Installed:
    """Install a skill for all given agents or, if one destination refuses it, for none.

    Args:
        path: a program, its folder, or the folder of a skill.
        agents: keys of `AGENTS`.
        project: the project to install into, None for the user's folders.
        environment: variables that locate the user's folders.
        force: overwrite changed files.
        dry_run: write nothing.

    Raises:
        ChangedThereError: a destination contains something else.
        SkillcError: the skill does not exist, or a destination cannot be written.
    """
    paths = skill_of(path)
    check_merged(paths)
    files, lock = read_folder(paths.folder), read_lock(paths.lock) if paths.lock.exists() else None
    check_valid(paths, files)
    places = [(agent, place_of(agent, project, environment)) for agent in dict.fromkeys(agents)]
    targets = install_files(paths, files, places, force=force, dry_run=dry_run)
    return Installed(paths.name, paths.folder, lock.verdict if lock else None, targets, notes_on(paths, lock))


def install_files(
    paths: ArtifactPaths,
    files: Contents,
    places: Sequence[tuple[str, Path]],
    *,
    force: bool = False,
    dry_run: bool = False,
    may_replace: Callable[[Contents], bool] = lambda present: False,
    commit: Callable[[], object] = lambda: None,
) -> tuple[InstallTarget, ...]:
    """Write the files of a skill into agents' folders or, if one refuses them, into none.

    Args:
        paths: the skill that the files are from; its name is that of the written folder.
        files: their content by path.
        places: agents and their folders of skills.
        force: overwrite changed files.
        dry_run: write nothing.
        may_replace: whether these files of a skill in a destination may be overwritten, whatever its record says.
        commit: called when all copies are written and all destinations checked, before the first one is replaced.

    Raises:
        ChangedThereError: a destination contains something else.
        SkillcError: a destination cannot be written, or was changed while it was replaced.
    """

    def find_targets() -> tuple[InstallTarget, ...]:
        return tuple(_target(*place, paths, files, force=force, may_replace=may_replace) for place in places)

    with ExitStack() as held:
        if not dry_run:
            alone = held.enter_context(locked(place for _, place in places))
            for _, place in places:
                recover_folder(place / paths.name, alone=alone)
        targets = find_targets()
        if not dry_run:
            _write([each for each in targets if each.action != "unchanged"], paths, files, find_targets, commit)
        return targets


def notes_on(paths: ArtifactPaths, lock: Lock | None) -> tuple[str, ...]:
    """Return what a user should know of a compiled skill: no lock, or files that were edited since the compile."""
    if lock is None:
        return (f"`{paths.lock}` is missing, so the verdict on this skill is unknown",)
    below = {name: paths.base / name for name in lock.files if name.startswith(f"{paths.name}/")}
    edited = [
        path for name, path in below.items() if not (path.is_file() and has_digest(path.read_bytes(), lock.files[name]))
    ]
    return tuple(
        f"`{path}` {'was edited' if path.is_file() else 'is missing'} since the compile, so the test in the lock is of "
        f"another {'text' if path == paths.skill else 'skill'}"
        for path in edited
    )


# ---- the skill ------------------------------------------------------------------------------------


def skill_of(path: Path) -> ArtifactPaths:
    """Return the paths of the compiled skill of a program, its folder, or the folder of a skill.

    Raises:
        SkillcError: there is none.
    """
    paths = ArtifactPaths.of_folder(path)
    if paths.skill.is_file():
        return paths
    program = program_in(path)
    paths = paths_of_program(program)
    if not paths.skill.is_file():
        hint = f"run `skillc compile {program}`, or name the folder of a skill compiled with `--output`"
        if paths.candidate.skill.is_file():
            hint = f"the last one was not delivered: `skillc compile {program} --require none` delivers it"
        raise SkillcError(f"`{program}` is not compiled: `{paths.skill}` is missing", hint=hint)
    return paths


def check_valid(paths: ArtifactPaths, files: Contents) -> None:
    """Refuse a skill that agents cannot load.

    Raises:
        SkillcError: with the first rule of Agent Skills that it breaks.
    """
    try:
        skill = from_skill_md(files[SKILL_FILE].decode("utf-8-sig"))
    except (SkillcError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{paths.skill}` is not a skill: {problem}") from problem
    problems = validate(skill.name, skill.about)
    if skill.name != paths.name:
        problems.append(f"the name `{skill.name}` differs from its folder's")
    if problems:
        raise SkillcError(f"agents cannot load `{paths.skill}`: {problems[0]}", hint="fix its frontmatter")


# ---- the place ------------------------------------------------------------------------------------


def place_of(agent: str, project: Path | None, environment: Mapping[str, str]) -> Path:
    """Return the folder of skills of an agent, in a project or, without one, the user's.

    Raises:
        SkillcError: the agent reads none there, the project does not exist, or a link leads out of it.
    """
    known = AGENTS[agent]
    if project is None:
        variable, below = known.variable or ("", "")
        if environment.get(variable):
            return Path(environment[variable], below)
        home = environment.get("HOME") or environment.get("USERPROFILE")
        if not home:
            raise SkillcError("the home folder is unknown", hint="set `HOME`, or name a project with `--project`")
        return Path(home) / known.default
    if known.project is None:
        raise SkillcError(f"{known.title} reads no skills of a project", hint="install it with `--user`")
    if not project.is_dir():
        raise SkillcError(f"folder `{project}` does not exist")
    place = project / known.project
    if not place.resolve().is_relative_to(project.resolve()):
        raise SkillcError(f"`{place}` is behind a link that leads out of `{project}`", hint="replace it by a folder")
    return place


def _target(
    agent: str,
    place: Path,
    paths: ArtifactPaths,
    files: Contents,
    *,
    force: bool,
    may_replace: Callable[[Contents], bool],
) -> InstallTarget:
    """Return the destination in one agent's folder, with the change that installing makes."""
    folder = place / paths.name
    if folder.is_symlink():
        to = folder.readlink()
        raise SkillcError(f"`{folder}` is a link to `{to}`", hint="remove the link; its target is never written")
    if folder.resolve() == paths.folder.resolve():
        raise SkillcError(f"`{folder}` is the compiled skill itself", hint="no install is needed")
    if not folder.exists():
        return InstallTarget(agent, folder, "install")
    if not folder.is_dir():
        raise SkillcError(f"`{folder}` is a file", hint="remove it")
    record, origin = read_record(folder), origin_of(paths, folder)
    present = look_into(folder, record, files).ours
    if not present:
        return InstallTarget(agent, folder, "install", {})
    present_digests = digests(present)
    if present == files and record.get("from") == origin:
        return InstallTarget(agent, folder, "unchanged", present_digests)
    if force or present == files or may_replace(present):
        return InstallTarget(agent, folder, "replace" if force and present != files else "update", present_digests)
    if not record:
        problem = "was not installed by skillc and would be overwritten"
    elif present_digests not in (record.get("files"), record.get("writing")):
        problem = "was changed since it was installed and would be overwritten"
    elif (other := other_source(paths, folder)) is not None:
        problem = f"was installed from another skill of that name, {other}"
    else:
        return InstallTarget(agent, folder, "update", present_digests)
    changes = "".join(
        difference(str(folder / name), *(side.get(name, b"").decode(errors="replace") for side in (present, files)))
        for name in sorted({*present, *files})
    )
    raise ChangedThereError(f"`{folder}` {problem}", changes)


def origin_of(paths: ArtifactPaths, folder: Path) -> str:
    """Return the path of a skill's source from its destination; see `skillc/artifacts/owner.py`."""
    return path_to(paths.folder, folder.parent)


def other_source(paths: ArtifactPaths, folder: Path) -> str | None:
    """Return the other skill that an installed folder is from, as messages name it; None without one that exists."""
    recorded = read_record(folder).get("from")
    if not isinstance(recorded, str) or recorded == origin_of(paths, folder):
        return None
    if recorded.startswith("sha256:"):
        return "in a folder that the record does not name"
    place = os.path.normpath(folder.parent.resolve() / recorded)
    return f"`{place}`" if Path(place, SKILL_FILE).exists() else None


# ---- writing --------------------------------------------------------------------------------------


def _write(
    targets: Sequence[InstallTarget],
    paths: ArtifactPaths,
    files: Contents,
    check: Callable[[], Sequence[InstallTarget]],
    commit: Callable[[], object],
) -> None:
    """Copy a skill beside all destinations with their foreign files, check again, commit, move them into place."""
    staged: list[tuple[InstallTarget, Path]] = []
    try:
        made = [target.folder.parent for target in targets if not target.folder.parent.is_dir()]
        for place in made:
            place.mkdir(parents=True, exist_ok=True)
        with locked(made):
            for target in targets:
                new = beside(target.folder, "new")
                staged.append((target, new))
                new.mkdir()
                write_folder(new, files)
                if target.present is not None:
                    found = look_into(target.folder, read_record(target.folder), files)
                    carry(target.folder, new, found.foreign)
            checked = {target.folder: target for target in check()}
            commit()
            for target, new in staged:
                _swap(checked[target.folder], new, origin_of(paths, target.folder), files)
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be written: {problem.strerror}") from problem
    finally:
        for _, new in staged:
            shutil.rmtree(new, ignore_errors=True)


def _swap(target: InstallTarget, new: Path, origin: str, files: Contents) -> None:
    """Move a copy into place. The record has the old and the new files while either may be there."""
    folder, written, present = target.folder, digests(files), target.present or {}
    old, recorded = free_beside(folder, "old"), read_record(folder)
    record: dict[str, object] = {"format_version": 1, "from": origin}
    installed = {"files": recorded["files"]} if recorded.get("files") else {}
    write_record(folder, {**record, **installed, "writing": written, "before": present})
    try:
        if folder.exists():
            folder.rename(old)
            found = look_into(old, recorded, files)
            if digests(found.ours) != present or not are_carried(old, new, found.foreign):
                raise SkillcError(f"`{folder}` was changed while it was being replaced", hint="run the command again")
        new.rename(folder)
    except (OSError, SkillcError):
        if old.exists():
            old.rename(folder)
        with suppress(OSError):
            if recorded:
                write_record(folder, recorded)
            else:
                record_path(folder).unlink()
        raise
    if present:
        # A kill while the old skill is removed must not leave files that look like the user's.
        write_record(folder, {**record, "files": written, "before": present})
    shutil.rmtree(old, ignore_errors=True)
    write_record(folder, {**record, "files": written})


def install_json(done: Installed, *, dry_run: bool) -> dict[str, object]:
    """Return the object that `install --json` prints."""
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
    """Return the report for people, a line for each destination."""
    would = "would be " if dry_run else ""
    past = {"install": "installed", "update": "updated", "replace": "replaced"}
    width = max(len(each.agent) for each in done.targets)
    lines = [f"note: {note}" for note in done.notes]
    for each in done.targets:
        action = would + past[each.action] if each.action in past else "is up to date"
        lines.append(f"{each.agent:<{width}}  {_with_tilde(each.folder)}   {action}")
    return "\n".join(lines)


def _with_tilde(folder: Path) -> str:
    try:
        return f"~/{folder.relative_to(Path.home()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(folder)
