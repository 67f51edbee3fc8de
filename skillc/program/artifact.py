"""Writing the skill to disk: SKILL.md, which any agent can load, and the module beside it."""

from __future__ import annotations

from pathlib import Path

from skillc.conflict import check_merged
from skillc.document.skill import Document
from skillc.document.skill_md import to_skill_md
from skillc.errors import SkillcError
from skillc.files import write_whole
from skillc.plan.schema import Plan
from skillc.program.emit import module_source
from skillc.program.names import module_name

SKILL_FILE = "SKILL.md"
LOCK_FILE = "skill.lock"
HISTORY_FILE = "history.jsonl"
ATTRIBUTES_FILE = ".gitattributes"

# `-merge` keeps git from putting two skills together line by line, which no gate has seen; a lock with marks says that
# a merge is open. Line ends stay as they were written, so that digests hold on every system.
_ATTRIBUTES = """/SKILL.md text eol=lf -merge
/*.py text eol=lf -merge
/skill.lock text eol=lf
/history.jsonl text eol=lf merge=union
"""


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Refuses a folder with a skill that skillc did not write: a SKILL.md without a `skill.lock` beside it.

    Raises:
        SkillcError: it would be overwritten, the folder is a file, or a merge left it open.
    """
    check_merged(folder)
    if folder.exists() and not folder.is_dir():
        raise SkillcError(f"`{folder}` is a file; the skill needs a folder", hint="choose another one with `--output`")
    if not force and (folder / SKILL_FILE).exists() and not (folder / LOCK_FILE).exists():
        raise SkillcError(
            f"`{folder / SKILL_FILE}` was not written by skillc, and would be overwritten",
            hint="write elsewhere with `--output`, or overwrite it with `--force`",
        )


def write_attributes(folder: Path) -> None:
    """Tells git how to merge a compiled skill, unless the folder has a `.gitattributes` already.

    Raises:
        SkillcError: it cannot be written.
    """
    place = folder / ATTRIBUTES_FILE
    try:
        if not place.exists():
            write_whole(place, _ATTRIBUTES)
    except OSError as problem:
        raise SkillcError(f"`{place}` cannot be written: {problem.strerror}") from problem


def write_artifact(folder: Path, plan: Plan, document: Document, *, force: bool = False) -> tuple[Path, ...]:
    """Writes SKILL.md and the module; each file is there whole or not at all.

    Returns:
        The files, SKILL.md first.

    Raises:
        SkillcError: as `check_folder`, or the folder cannot be written.
    """
    check_folder(folder, force=force)
    texts = {SKILL_FILE: to_skill_md(document), f"{module_name(plan.skill.name)}.py": module_source(plan, document)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_whole(folder / name, text)
    except OSError as problem:
        raise SkillcError(f"`{folder}` cannot be written: {problem.strerror}") from problem
    return tuple(folder / name for name in texts)
