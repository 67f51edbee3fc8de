"""The tests of a program's scripts: their files, and a digest of them, which belongs to a run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from skillc.errors import SkillcError
from skillc.json_values import canonical
from skillc.plan.schema import Plan, TestsPlan
from skillc.skill_files import FILE_LIMIT, list_folder


def read_tests(plan: TestsPlan, root: Path) -> dict[str, bytes]:
    """Return the files of some tests by their paths beside the program.

    Raises:
        SkillcError: they are missing, cannot be read or are too large.
    """
    place = root / plan.path
    try:
        if place.is_dir():
            return {f"{plan.path}/{name}": file.read_bytes() for name, file in list_folder(place).items()}
        if place.stat().st_size > FILE_LIMIT:
            raise SkillcError(f"`{place}` is too large for a test")
        return {plan.path: place.read_bytes()}
    except OSError as problem:
        raise SkillcError(
            f"the tests `{plan.path}` cannot be read: {problem.strerror}", hint="write them, or change `tests`"
        ) from None


def digest_of_tests(plan: Plan, root: Path) -> str:
    """Return the digest of the tests of a program's scripts; empty without any.

    Raises:
        SkillcError: as `read_tests`.
    """
    found = {each.name: read_tests(each.tests, root) for each in plan.skill.sections if each.tests is not None}
    if not found:
        return ""
    digests = {name: digest_of_files(files) for name, files in found.items()}
    return hashlib.sha256(canonical(digests).encode()).hexdigest()


def digest_of_files(files: Mapping[str, bytes]) -> str:
    """Return a digest of the paths and contents of files."""
    lines = (f"{name}\0{hashlib.sha256(content).hexdigest()}\n" for name, content in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
