"""The compared skills, and their looks at the test split."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from skillc.artifact_paths import SKILL_FILE, ArtifactPaths
from skillc.artifacts.owner import check_owner
from skillc.conflict import refuse_unmerged
from skillc.data.dataset import Dataset
from skillc.data.split import check_unused
from skillc.dataclass import dataclass
from skillc.document.folder import read_skill
from skillc.document.skill import Document, digest, for_target
from skillc.errors import SkillcError
from skillc.frontend import Planned
from skillc.plan.initial import initial_skill
from skillc.plan.lock import Lock, LookLock, add_look, has_digest, read_lock, write_lock
from skillc.plan.schema import Plan
from skillc.syntax.files import read_source

NONE, INITIAL, ONE_SHOT, COMPILED = "none", "initial", "one_shot", "compiled"
ARMS = (NONE, INITIAL, ONE_SHOT, COMPILED)
"""The program's skills, in the order of a table; the one-shot skill only if it is asked for."""
DEFAULT_ARMS = (NONE, INITIAL, COMPILED)
ALIASES = {"base": NONE, "skill": COMPILED}
"""Other names of arms: beside an adapter, which is no skill either, `none` would name two arms."""
_LABELS = {NONE: "no skill", INITIAL: "initial skill", ONE_SHOT: "one-shot skill", COMPILED: "compiled skill"}
# Digest of no skill in the lock.
_NO_SKILL = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class SkillArm:
    """One of the compared skills.

    Attributes:
        name: `none`, `initial`, `one_shot`, `compiled`, or the file as the user named it.
        skill: None for no skill.
    """

    name: str
    skill: Document | None
    file: Path | None = None

    @property
    def label(self) -> str:
        """The name in a table, without unprintable characters."""
        return _LABELS.get(self.name) or "".join(c if c.isprintable() else "?" for c in self.name)

    @property
    def digest(self) -> str:
        """The hex sha256 of the skill."""
        return _NO_SKILL if self.skill is None else digest(self.skill)


@dataclass(frozen=True, slots=True)
class SkillArms:
    """The skills in the order of the table.

    Attributes:
        lock: of the compiled skill, None if the program was never compiled.
        reference: the skill that the others are compared with; None if only `none` is left.
    """

    each: tuple[SkillArm, ...]
    lock: Lock | None
    notes: tuple[str, ...]
    reference: SkillArm | None

    @property
    def compiled(self) -> SkillArm | None:
        """The compiled skill, if it is among them."""
        return self.named(COMPILED)

    def with_one_shot(self, skill: Document) -> SkillArms:
        """Return the skills with the one-shot skill, before the compiled one and those of files."""
        before = [arm for arm in self.each if arm.name in (NONE, INITIAL)]
        after = [arm for arm in self.each if arm.name not in (NONE, INITIAL)]
        return replace(self, each=(*before, SkillArm(ONE_SHOT, skill), *after))

    def named(self, name: str) -> SkillArm | None:
        """Return the arm with a name, or None."""
        return next((arm for arm in self.each if arm.name == name), None)


def own_paths(planned: Planned) -> ArtifactPaths:
    """Return the paths of a program's compiled skill, whether it exists or not.

    Raises:
        SkillcError: they belong to another program.
    """
    paths = ArtifactPaths.beside(planned.root, planned.plan.skill.artifact)
    check_owner(planned.path, paths, read_lock(paths.lock) if paths.lock.exists() else None)
    return paths


def one_arm(planned: Planned, file: Path | None) -> SkillArm:
    """Return the skill of a file, else the compiled one or, before the first compile, the initial one.

    Raises:
        SkillcError: the skill cannot be read, or belongs to another program.
    """
    if file is not None:
        return _from_file(planned.plan, file)
    arms = arms_of(planned.plan, own_paths(planned), (), (), root=planned.root)
    return next(arm for arm in reversed(arms.each) if arm.skill is not None)


def arms_of(
    plan: Plan,
    paths: ArtifactPaths,
    files: Sequence[Path],
    without: Collection[str],
    against: str | None = None,
    root: Path = Path(),
    *,
    names: Collection[str] = (),
    reader: Plan | None = None,
) -> SkillArms:
    """Collect the skills to compare.

    Args:
        plan: the program.
        paths: of its compiled skill, whether it exists or not.
        files: further skills: a SKILL.md, any markdown, or a folder with a SKILL.md.
        without: names of arms to leave out.
        against: the reference: `none`, `initial`, `compiled` or a file, which is scored too; None for the initial
            skill or, if that is left out, the first one.
        root: the program's folder.
        names: the arms of the program; empty for `DEFAULT_ARMS`. The one-shot skill joins when it is written.
        reader: the program whose rollouts read the skills; None for this one.

    Raises:
        SkillcError: a file is no skill, the lock is damaged, or nothing is left.
    """
    initial, notes = initial_skill(plan, root), list[str]()
    reader = reader or plan
    wanted = [name for name in ARMS if name in (names or DEFAULT_ARMS) and name not in without]
    lock = read_lock(paths.lock) if paths.lock.exists() else None
    found = [SkillArm(NONE, None)] if NONE in wanted else []
    found += [SkillArm(INITIAL, initial)] if INITIAL in wanted else []
    if COMPILED in wanted:
        compiled = _compiled(reader, paths, lock, initial, notes)
        found += [compiled] if compiled is not None else []
    more = [Path(against)] if against is not None and against not in ARMS else []
    found += [_from_file(reader, file) for file in dict.fromkeys([*files, *more])]
    if not found and ONE_SHOT not in wanted:
        raise SkillcError(
            "no skill is left to evaluate", hint="remove a `--without`, or add a skill with `--skill FILE`"
        )
    return SkillArms(tuple(found), lock, tuple(notes), _reference(found, against, notes))


def _reference(arms: Sequence[SkillArm], against: str | None, notes: Sequence[str]) -> SkillArm | None:
    """Return the arm that the others are compared with."""
    if against is None:
        skills = [arm for arm in arms if arm.skill is not None]
        return next((arm for arm in skills if arm.name == INITIAL), skills[0] if skills else None)
    name = against if against in ARMS else _file_name(Path(against))
    found = next((arm for arm in arms if arm.name == name), None)
    if against == ONE_SHOT:
        raise SkillcError("`--against one_shot`: the other skills cannot be compared with the one-shot skill")
    if found is None:
        missing = against == COMPILED and notes
        hint = "compile the program first" if missing else f"remove `--without {against}`"
        raise SkillcError(f"`--against {against}`: the {_LABELS[against]} is not scored", hint=hint)
    return found


def _compiled(
    plan: Plan, paths: ArtifactPaths, lock: Lock | None, initial: Document, notes: list[str]
) -> SkillArm | None:
    path = paths.skill
    if lock is None:
        if path.exists():
            notes.append(f"`{path}` was not written by skillc, and is left out; add it with `--skill {path}`")
        elif paths.candidate.skill.exists():
            candidate = paths.candidate.skill
            notes.append(f"the compiled skill was not delivered, and is left out; add it with `--skill {candidate}`")
        else:
            notes.append("the program is not compiled yet, so no compiled skill is scored")
        return None
    if not path.exists():
        notes.append(f"`{path}` is missing, so no compiled skill is scored: compile again, or restore it from git")
        return None
    if not has_digest(path.read_bytes(), lock.files.get(paths.key(path))):
        notes.append(f"`{path}` was edited since the compile; the edited skill is scored")
    if digest(initial) != lock.skill.initial:
        notes.append("the program's initial skill changed since the compile; the compiled skill began with another one")
    return SkillArm(COMPILED, _read(plan, path), path)


def read_arm(plan: Plan, file: Path, *, name: str) -> SkillArm:
    """Return the skill of a file under a name.

    Raises:
        SkillcError: it is no skill.
    """
    return SkillArm(name if name not in ARMS else f"./{name}", _read(plan, file), file)


def _from_file(plan: Plan, file: Path) -> SkillArm:
    path = file / SKILL_FILE if file.is_dir() and (file / SKILL_FILE).exists() else file
    return SkillArm(_file_name(file), _read(plan, path), path)


def _file_name(file: Path) -> str:
    """Return the name of a file's arm, distinct from those of `ARMS`."""
    return str(file) if str(file) not in ARMS else f"./{file}"


def _read(plan: Plan, path: Path) -> Document:
    text = read_source(path).text
    refuse_unmerged(path, text, ArtifactPaths.of_folder(path.parent))
    try:
        skill = read_skill(path, text, whole=not plan.task.rollout.one_turn)
    except SkillcError as problem:
        raise SkillcError(f"`{path}` is not a skill: {problem.message}", hint=problem.hint) from problem
    if not for_target(skill).strip():
        raise SkillcError(f"`{path}` is not a skill: it has no text", hint="the arm `none` needs no file")
    return skill


def check_test(arms: SkillArms, dataset: Dataset, paths: ArtifactPaths, *, elsewhere: bool = False) -> None:
    """Refuse the test split if there is no lock to count looks, or if a skill was trained on it.

    `elsewhere` is whether the examples are those of another program than the compiled skill's: ids that both use are no
    sign of the same example.

    Raises:
        SkillcError: the test split is missing, uncounted, or was trained on.
    """
    if not dataset.test:
        raise SkillcError("the program has no test split", hint="give it one: `split = 2 : 1 : 2`")
    if not paths.lock.exists():
        raise SkillcError(
            f"cannot count looks at the test split: `{paths.lock}` is missing",
            hint="compile the program first, or remove `--split test`",
        )
    for arm in arms.each:
        beside = ArtifactPaths.of_skill_file(arm.file) if arm.file is not None else None
        if beside is not None and beside.lock.exists() and not (elsewhere and arm.name == COMPILED):
            check_unused(read_lock(beside.lock).data.used, dataset.test, skill=str(arm.file))


def unknown_looks(known: tuple[LookLock, ...], looks: Sequence[LookLock]) -> int:
    """Return the number of looks that are not in the lock yet."""
    return len(_numbered(known, looks)[0]) - len(known)


def _numbered(known: tuple[LookLock, ...], looks: Sequence[LookLock]) -> tuple[tuple[LookLock, ...], list[int]]:
    """Add looks to the known ones; return all, and the number of each added one."""
    numbers = []
    for look in looks:
        known, number = add_look(known, look)
        numbers.append(number)
    return known, numbers


def count_looks(paths: ArtifactPaths, looks: Sequence[LookLock]) -> list[int]:
    """Write looks into the lock of a skill and return the number of each; an identical look keeps its number.

    Raises:
        SkillcError: the lock cannot be read or written.
    """
    lock = read_lock(paths.lock)
    every, numbers = _numbered(lock.looks, looks)
    if every != lock.looks:
        write_lock(paths.lock, lock.model_copy(update={"looks": every}))
    return numbers
