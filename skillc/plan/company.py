"""The skills beside the one that is trained: others of the program, and folders that it names. None of them changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from skillc.artifact_paths import SKILL_FILE, ArtifactPaths
from skillc.dataclass import dataclass
from skillc.document.skill import Document, digest
from skillc.document.skill_md import from_skill_md, validate
from skillc.errors import SkillcError
from skillc.plan.initial import initial_document
from skillc.plan.schema import Plan, SkillPlan


@dataclass(frozen=True, slots=True)
class Company:
    """The skills that a target has besides the one in training.

    Attributes:
        offered: those that it may open, by name.
        read: those that it always reads, in the order of the program.
    """

    offered: tuple[Document, ...] = ()
    read: tuple[Document, ...] = ()

    @property
    def digests(self) -> tuple[str, ...]:
        """A digest of each, which belongs to the run; empty without company."""
        return tuple(digest(document) for document in (*self.offered, *self.read))


NOBODY = Company()


def company_of(plan: Plan, root: Path) -> Company:
    """Return the other skills of a program, and those in the folders that it names.

    Another skill of the program is read as it was compiled, `skills/NAME/SKILL.md`, else as it is declared.

    Raises:
        SkillcError: a folder has no skills, a file cannot be read or is no skill, or two skills have one name.
    """
    if not plan.others and not plan.skill.beside:
        return NOBODY
    own = [(other, _other(plan, other, root)) for other in plan.others]
    offered = [document for other, document in own if other.load == "on_demand"]
    offered += [document for pattern in plan.skill.beside for document in _beside(pattern, root)]
    read = tuple(document for other, document in own if other.load == "always")
    seen = {plan.skill.artifact}
    for document in (*offered, *read):
        if document.name in seen:
            raise SkillcError(f"two skills are named `{document.name}`", hint="a target opens a skill by its name")
        seen.add(document.name)
    return Company(tuple(sorted(offered, key=lambda document: document.name)), read)


def _other(plan: Plan, other: SkillPlan, root: Path) -> Document:
    compiled = ArtifactPaths.beside(root, other.artifact).skill
    if compiled.exists():
        return _read(compiled)
    return initial_document(plan.model_copy(update={"skill": other, "others": ()}))


def _beside(pattern: str, root: Path) -> Iterator[Document]:
    """Yield the skills of the folders that a pattern names, as `../skills/*`; one folder may also have several."""
    base = Path(pattern)
    anchor = Path(base.anchor) if base.is_absolute() else root
    parts = base.relative_to(base.anchor) if base.is_absolute() else base
    found = sorted(anchor.glob(str(parts))) if str(parts) != "." else [anchor]
    files = [folder / SKILL_FILE for folder in found if (folder / SKILL_FILE).is_file()]
    if not files:
        raise SkillcError(f"`{pattern}` names no folder with a `{SKILL_FILE}`", hint='write `beside = ["../skills/*"]`')
    for file in files:
        yield _read(file)


def _read(file: Path) -> Document:
    try:
        document = from_skill_md(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"the skill `{file}` cannot be read: {problem}") from problem
    problems = validate(document.name, document.about)
    if problems:
        raise SkillcError(f"no agent loads the skill `{file}`: {problems[0]}")
    return document
