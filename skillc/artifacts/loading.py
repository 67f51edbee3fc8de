"""Load a program or a skill folder as a DSPy module with the compiled skill."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc.dataclass import dataclass
from skillc.errors import SkillcError

if TYPE_CHECKING:
    import dspy

    from skillc.artifact_paths import ArtifactPaths
    from skillc.document.skill import Document
    from skillc.plan.lock import Lock
    from skillc.plan.schema import Plan

SUFFIX = ".skill"


@dataclass(frozen=True, slots=True)
class LoadedProgram:
    """A program with its present skill.

    Attributes:
        skill: the compiled skill, or the initial one.
        compiled: whether a compiled one was found.
    """

    plan: Plan
    root: Path
    skill: Document
    compiled: bool


def load(path: str | Path) -> dspy.Module:
    """Load the module of a program (`tickets.skill`, or a folder with one program) or of a folder with a SKILL.md.

    A program uses its target model unless DSPy has an LM configured. Before its first compile it has the initial skill,
    with a warning. A skill folder's module is imported and run, and uses DSPy's configured LM. A program whose rollouts
    are no DSPy module runs them through skillc, with its own target, also by its skill folder.

    Raises:
        SkillcError: the program does not exist or has errors.
    """
    from skillc.artifact_paths import ArtifactPaths

    place = Path(path)
    if place.is_dir() and (place / "SKILL.md").exists():
        return _from_folder(place)
    found = load_program(program_in(place))
    if not found.compiled:
        candidate = ArtifactPaths.beside(found.root, found.plan.skill.artifact).candidate.skill
        what = f"the skill of `{place}` was not delivered" if candidate.exists() else f"`{place}` is not compiled yet"
        warnings.warn(f"{what}; the module has the initial skill", stacklevel=2)
    return module_of(found)


def program_in(place: Path) -> Path:
    """Return the program at a path: the file, or the only one in a folder.

    Raises:
        SkillcError: there is none, or more than one.
    """
    if not place.is_dir():
        if not place.exists():
            raise SkillcError(f"program `{place}` does not exist")
        return place
    found = sorted(file for file in place.glob(f"*{SUFFIX}") if file.is_file())
    if len(found) != 1:
        count = "no program" if not found else "more than one program"
        raise SkillcError(f"`{place}` contains {count}", hint="name the file: `tickets.skill`")
    return found[0]


def program_and_skill(path: Path, usage: str) -> tuple[Path, Path | None]:
    """Return the program at a path, and the skill's folder if the path is one, or the SKILL.md in it.

    `usage` is the command for a skill whose program is unknown; `{}` in it is the folder.

    Raises:
        SkillcError: it is a skill whose lock names no program, or a folder without a program.
    """
    from skillc.artifact_paths import SKILL_FILE, ArtifactPaths
    from skillc.artifacts.owner import program_of
    from skillc.plan.lock import read_lock

    folder = path.parent if path.name == SKILL_FILE else path
    if not (folder / SKILL_FILE).is_file():
        return program_in(path), None
    paths = ArtifactPaths.of_folder(folder)
    program = program_of(paths, read_lock(paths.lock)) if paths.lock.exists() else None
    if program is None:
        raise SkillcError(f"`{path}` names no program, which has its examples", hint=usage.format(folder))
    return program, folder


def paths_of_program(program: Path) -> ArtifactPaths:
    """Return the paths of a program's compiled skill in `skills` beside it, whether it exists or not.

    Raises:
        SkillcError: the program cannot be read or has errors.
    """
    from skillc.artifact_paths import ArtifactPaths
    from skillc.frontend import plan_file

    return ArtifactPaths.beside(program.parent, plan_file(program, complete=False).plan.skill.artifact)


def load_program(path: Path) -> LoadedProgram:
    """Load a program's plan, and its compiled skill in `skills` beside it.

    Raises:
        SkillcError: the program or the skill cannot be read, has errors or unresolved conflicts.
    """
    from skillc.artifact_paths import ArtifactPaths
    from skillc.artifacts.owner import check_owner
    from skillc.conflict import check_merged
    from skillc.document.folder import read_skill
    from skillc.frontend import plan_file
    from skillc.plan.initial import initial_skill

    plan = plan_file(path, complete=False).plan
    paths = ArtifactPaths.beside(path.parent, plan.skill.artifact)
    try:
        text = paths.skill.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return LoadedProgram(plan, path.parent, initial_skill(plan, path.parent), compiled=False)
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"the skill `{paths.skill}` cannot be read: {problem}") from problem
    check_merged(paths)
    check_owner(path, paths, _lock(paths.lock))
    skill = read_skill(paths.skill, text, whole=not plan.task.rollout.one_turn)
    return LoadedProgram(plan, path.parent, skill, compiled=True)


def _lock(place: Path) -> Lock | None:
    """Return the lock of a compiled skill; one without a lock or with a damaged one can still run."""
    from skillc.plan.lock import read_lock

    try:
        return read_lock(place)
    except SkillcError:
        return None


def module_of(loaded: LoadedProgram) -> dspy.Module:
    """Return the module of a loaded program."""
    from skillc.document.skill import for_target
    from skillc.program.module import FallbackTarget, SkillModule
    from skillc.program.names import KINDS, instructions

    plan = loaded.plan
    if plan.task.rollout.kind not in KINDS or plan.skill.load == "on_demand":
        from skillc.tasks.module import RolloutModule

        return RolloutModule(plan, loaded.root, loaded.skill)
    text = instructions(plan.task, for_target(loaded.skill))
    return SkillModule(plan.task, plan.skill.name, text, fallback=FallbackTarget(plan, loaded.root))


def _from_folder(folder: Path) -> dspy.Module:
    from skillc.artifact_paths import ArtifactPaths
    from skillc.conflict import check_merged

    paths = ArtifactPaths.of_folder(folder)
    check_merged(paths)
    file = paths.module
    if not file.exists():
        raise SkillcError(f"`{folder}` has no module `{file}` beside it", hint="load the program instead")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise SkillcError(f"`{file}` cannot be imported")
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "program"):
        return _through_skillc(folder, paths)
    program: dspy.Module = module.program
    return program


def _through_skillc(folder: Path, paths: ArtifactPaths) -> dspy.Module:
    """Return the module of a skill whose rollouts run through skillc, by the program that its lock names."""
    from skillc.artifacts.owner import program_of
    from skillc.document.folder import read_skill

    lock = _lock(paths.lock) if paths.lock.exists() else None
    program = program_of(paths, lock) if lock is not None else None
    if program is None:
        raise SkillcError(
            f"the rollouts of `{folder}` run through skillc, and its program was not found",
            hint='load the program: `skillc.load("PROGRAM.skill")`',
        )
    loaded = load_program(program)
    text = paths.skill.read_text(encoding="utf-8-sig")
    skill = read_skill(paths.skill, text, whole=not loaded.plan.task.rollout.one_turn)
    return module_of(replace(loaded, skill=skill))
