"""The two compared skills: a program, a lock, or a SKILL.md, and the program that each belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from skillc.artifact_paths import LOCK_SUFFIX, SKILL_FILE, ArtifactPaths
from skillc.artifacts.loading import SUFFIX, program_in
from skillc.artifacts.owner import program_of
from skillc.data.dataset import Dataset
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.frontend import Planned, plan_file
from skillc.json_values import canonical
from skillc.metrics.meter import metric_sources
from skillc.plan.lock import Lock, read_lock


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two skills.

    Attributes:
        name: as the user named it.
        file: the skill's SKILL.md, or a markdown file.
        program: that it belongs to; None if no lock names one.
        paths: of the compiled skill; None for a skill without a lock.
        lock: of the compiled skill; None without one.
    """

    name: str
    file: Path
    program: Path | None = None
    paths: ArtifactPaths | None = None
    lock: Lock | None = None


def side_of(place: Path) -> Side:
    """Return the skill that a path names.

    Args:
        place: a program, or a folder with one program: its compiled skill; a lock; a SKILL.md or its folder; or any
            markdown file.

    Raises:
        SkillcError: there is no skill, or its lock is damaged.
    """
    if place.name.endswith(LOCK_SUFFIX):
        return _compiled(str(place), ArtifactPaths.of_lock(place))
    folder = place.parent if place.name == SKILL_FILE else place
    if (folder / SKILL_FILE).is_file():
        return _compiled(str(place), ArtifactPaths.of_folder(folder))
    if place.is_dir() or place.name.endswith(SUFFIX):
        program = program_in(place)
        plan = plan_file(program, complete=False).plan
        paths = ArtifactPaths.beside(program.parent, plan.skill.artifact)
        if not paths.skill.is_file():
            candidate = paths.candidate.skill
            fix = f"name the candidate: `{candidate}`" if candidate.is_file() else f"run `skillc compile {program}`"
            raise SkillcError(f"`{place}` has no compiled skill", hint=fix)
        return _compiled(str(place), paths, program)
    if not place.is_file():
        raise SkillcError(f"`{place}` does not exist", hint="name a program, a lock, or a SKILL.md")
    return Side(str(place), place)


def _compiled(name: str, paths: ArtifactPaths, program: Path | None = None) -> Side:
    if not paths.skill.is_file():
        raise SkillcError(f"the skill `{paths.skill}` does not exist", hint="compile again, or restore it from git")
    lock = read_lock(paths.lock) if paths.lock.is_file() else None
    if lock is None:
        return Side(name, paths.skill, program)
    return Side(name, paths.skill, program or program_of(paths, lock), paths, lock)


def program_for(sides: tuple[Side, Side], named: Path | None) -> Path:
    """Return the program with the examples of the comparison: the named one, else that of the first skill with one.

    Raises:
        SkillcError: none is known.
    """
    found = named or next((side.program for side in sides if side.program is not None), None)
    if found is None:
        raise SkillcError(
            "neither skill names a program, which has the examples", hint="name it: `--program PROGRAM.skill`"
        )
    return found


def check_one_task(one: tuple[Planned, Dataset], other: tuple[Planned, Dataset]) -> None:
    """Refuse to compare skills of different tasks.

    Raises:
        SkillcError: with the first difference.
    """
    found = next(_differences(one, other), None)
    if found is None:
        return
    here, there = one[0].path, other[0].path
    raise SkillcError(
        f"the skills are for different tasks: `{here}` and `{there}` have {found}",
        hint=f"`skillc eval {here} --on {there}` measures how far a skill helps on a related program",
    )


def _differences(one: tuple[Planned, Dataset], other: tuple[Planned, Dataset]) -> Iterator[str]:
    (here, data), (there, others) = one, other
    plan, second = here.plan, there.plan
    for name, fields in (("inputs", "inputs"), ("outputs", "outputs")):
        if canonical(getattr(plan.task, fields)) != canonical(getattr(second.task, fields)):
            yield f"other {name}"
    if plan.task.rollout != second.task.rollout:
        yield f"other rollouts: `{plan.task.rollout.kind}` and `{second.task.rollout.kind}`"
    if canonical(plan.goal.term) != canonical(second.goal.term) or plan.goal.name != second.goal.name:
        yield f"other goals: `{plan.goal.name}` and `{second.goal.name}`"
    if metric_sources(plan, here.root) != metric_sources(second, there.root):
        yield "other functions for their metrics"
    if data.digest != others.digest:
        yield "other examples, or other splits of them"
