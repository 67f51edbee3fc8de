"""From a program or a skill folder to a DSPy module with the best skill inside."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc.errors import SkillcError

if TYPE_CHECKING:
    import dspy

    from skillc.document.skill import Document
    from skillc.plan.lock import Lock
    from skillc.plan.schema import Plan

SUFFIX = ".skill"


@dataclass(frozen=True, slots=True)
class LoadedProgram:
    """A program with its skill as it stands.

    Attributes:
        plan: the resolved program.
        root: its folder.
        skill: the compiled skill, or the initial one.
        compiled: whether a compiled one was found.
    """

    plan: Plan
    root: Path
    skill: Document
    compiled: bool


def load(path: str | Path) -> dspy.Module:
    """The module of a program (`tickets.skill`, or a folder with one program) or of a folder with a SKILL.md.

    A program answers with its own target model where DSPy has no LM configured. Before a first compile it holds the
    initial skill, with a warning. A skill folder is imported: its module runs, and takes DSPy's configured LM.

    Raises:
        SkillcError: there is no such program, or it has errors.
    """
    from skillc.artifact_paths import ArtifactPaths

    place = Path(path)
    if place.is_dir() and (place / "SKILL.md").exists():
        return _from_folder(place)
    found = load_program(program_in(place))
    if not found.compiled:
        candidate = ArtifactPaths.beside(found.root, found.plan.skill.artifact).candidate.skill
        what = f"the skill of `{place}` was not delivered" if candidate.exists() else f"`{place}` is not compiled yet"
        warnings.warn(f"{what}; the module holds the initial skill", stacklevel=2)
    return module_of(found)


def program_in(place: Path) -> Path:
    """The program that a path means: itself, or the one in a folder.

    Raises:
        SkillcError: there is none, or more than one.
    """
    if not place.is_dir():
        if not place.exists():
            raise SkillcError(f"there is no program `{place}`")
        return place
    found = sorted(file for file in place.glob(f"*{SUFFIX}") if file.is_file())
    if len(found) != 1:
        count = "no program" if not found else "more than one program"
        raise SkillcError(f"`{place}` holds {count}", hint="name the file: `tickets.skill`")
    return found[0]


def load_program(path: Path) -> LoadedProgram:
    """A program's plan, and its compiled skill in `skills` beside it.

    Raises:
        SkillcError: the program or the skill cannot be read, has errors, or was left open by a merge.
    """
    from skillc.artifact_paths import ArtifactPaths
    from skillc.artifacts.owner import check_owner
    from skillc.conflict import check_merged
    from skillc.document.skill_md import from_skill_md
    from skillc.frontend import plan_file
    from skillc.plan.initial import initial_document

    plan = plan_file(path, complete=False).plan
    paths = ArtifactPaths.beside(path.parent, plan.skill.artifact)
    try:
        text = paths.skill.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return LoadedProgram(plan, path.parent, initial_document(plan), compiled=False)
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"the skill `{paths.skill}` cannot be read: {problem}") from problem
    check_merged(paths)
    check_owner(path, paths, _lock(paths.lock))
    return LoadedProgram(plan, path.parent, from_skill_md(text), compiled=True)


def _lock(place: Path) -> Lock | None:
    """The lock of a compiled skill; a skill may be shipped without one, and runs with a damaged one."""
    from skillc.plan.lock import read_lock

    try:
        return read_lock(place)
    except SkillcError:
        return None


def module_of(loaded: LoadedProgram) -> dspy.Module:
    """The module of a loaded program."""
    from skillc.document.skill import for_target
    from skillc.program.module import FallbackTarget, build_module
    from skillc.program.names import instructions

    plan = loaded.plan
    told = instructions(plan.task, for_target(loaded.skill))
    return build_module(plan.task, plan.skill.name, told, fallback=FallbackTarget(plan, loaded.root))


def _from_folder(folder: Path) -> dspy.Module:
    from skillc.artifact_paths import ArtifactPaths
    from skillc.conflict import check_merged

    paths = ArtifactPaths.of_folder(folder)
    check_merged(paths)
    file = paths.module
    if not file.exists():
        raise SkillcError(f"there is no module `{file}` beside `{folder}`", hint="give the program instead")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise SkillcError(f"`{file}` cannot be imported")
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    program: dspy.Module = module.program
    return program
