"""Looks at the test split: each pair that is tested there is one, and the lock counts them all."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.artifact_paths import ArtifactPaths
from skillc.data.dataset import Dataset
from skillc.data.examples import check_unused
from skillc.errors import SkillcError
from skillc.evaluate.skills import Arm, Arms
from skillc.plan.lock import LookLock, look_of, read_lock, write_lock


def check_test(arms: Arms, dataset: Dataset, paths: ArtifactPaths) -> None:
    """Refuses to look at a test split where no lock counts it, or where a skill was made from it.

    Raises:
        SkillcError: as it says.
    """
    if not dataset.test:
        raise SkillcError("the program has no test split", hint="give it one: `split = 2 : 1 : 2`")
    if arms.lock is None:
        raise SkillcError(
            f"a look at the test split is counted in `{paths.lock}`, and there is none",
            hint="compile the program first, or leave `--split test` out",
        )
    for arm in arms.each:
        beside = ArtifactPaths.of_skill_file(arm.file) if arm.file is not None else None
        if beside is not None and beside.lock.exists():
            check_unused(read_lock(beside.lock).data.used, dataset.test, skill=str(arm.file))


def look_at(run: str, reference: Arm, arm: Arm, test: str) -> LookLock:
    """One pair on the test split.

    Args:
        run: names what else the scores depend on: the run that a compile with this model is.
        reference: the skill that the other one is compared with.
        arm: the other one.
        test: digest of the split.
    """
    return LookLock(run=run, initial=reference.digest, best=arm.digest, test=test)


def unknown_looks(known: tuple[LookLock, ...], looks: Sequence[LookLock]) -> int:
    """How many of the looks are not in the lock yet."""
    return len(_numbered(known, looks)[0]) - len(known)


def _numbered(known: tuple[LookLock, ...], looks: Sequence[LookLock]) -> tuple[tuple[LookLock, ...], list[int]]:
    """All looks with these among them, and the number of each of these."""
    numbers = []
    for look in looks:
        known, number = look_of(known, look)
        numbers.append(number)
    return known, numbers


def count_looks(paths: ArtifactPaths, looks: Sequence[LookLock]) -> list[int]:
    """Writes looks into the lock of a skill, and gives the number of each, which an identical one keeps.

    Raises:
        SkillcError: the lock cannot be read or written.
    """
    lock = read_lock(paths.lock)
    every, numbers = _numbered(lock.looks, looks)
    if every != lock.looks:
        write_lock(paths.lock, lock.model_copy(update={"looks": every}))
    return numbers
