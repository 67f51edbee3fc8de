"""The skills that a user names: programs, folders of skills, or plain names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from skillc.errors import SkillcError


def known_skills(given: Iterable[str]) -> Mapping[str, str]:
    """Return name and `about` of each skill; a plain name has an empty `about`, so that only its name can match.

    Raises:
        SkillcError: a path does not exist, or is neither a program nor a skill.
    """
    return dict(_known(each) for each in given)


def _known(given: str) -> tuple[str, str]:
    from skillc.artifact_paths import SKILL_FILE
    from skillc.artifacts.loading import program_in
    from skillc.document.folder import read_skill
    from skillc.frontend import plan_file

    path = Path(given)
    if not path.exists():
        if re.fullmatch(r"[A-Za-z][\w-]*", given):
            return given, ""
        raise SkillcError(f"skill `{given}` does not exist", hint="name a program, the folder of a skill, or a name")
    file = path / SKILL_FILE if path.is_dir() else path
    if file.name == SKILL_FILE and file.exists():
        try:
            document = read_skill(file, file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as problem:
            raise SkillcError(f"`{file}` cannot be read: {problem}") from problem
        return document.name, document.about
    skill = plan_file(program_in(path), complete=False).plan.skill
    return skill.artifact, skill.about
