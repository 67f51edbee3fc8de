"""Run the examples of a skill with fresh rollouts, and count what each of them read of its folder."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from skillc.artifact_paths import SKILL_FILE, ArtifactPaths
from skillc.artifacts.loading import program_and_skill
from skillc.artifacts.owner import check_owner
from skillc.audit.reading import Reading, SkillParts
from skillc.conflict import check_merged
from skillc.data.dataset import load_data
from skillc.document.folder import read_skill
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.frontend import Planned
from skillc.models.client import Client
from skillc.models.failures import BudgetReached
from skillc.outcomes import Example
from skillc.plan.initial import initial_document, with_files
from skillc.plan.lock import read_lock
from skillc.syntax.files import read_source
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout, RolloutRunner
from skillc.tokens import count_tokens

Split = Literal["train", "validation", "test"]
STAGE = "audit"


@dataclass(frozen=True, slots=True)
class FileUse:
    """How a file of the skill was used.

    Attributes:
        tokens: None for a file that is no text.
        opened: rollouts that opened it, or read it from the start; None if that is unknown.
    """

    path: str
    size: int
    tokens: int | None
    opened: int | None


@dataclass(frozen=True, slots=True)
class SectionUse:
    """How a section was used: rollouts that read its file, None if that is unknown, and those that quoted it."""

    name: str
    file: str
    tokens: int
    opened: int | None
    quoted: int


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit.

    Attributes:
        kind: of the rollouts.
        whole: whether every rollout reads all sections from the start, because it has no folder to open.
        rollouts: those that ran; the failed ones say nothing.
        failures: kinds of failures with their numbers.
        known: whether rollouts reported calls of tools, without which nothing shows what was opened.
        stopped: the cap that ended it early, or None.
    """

    skill: str
    program: Path
    kind: str
    whole: bool
    rollouts: int
    failures: dict[str, int]
    known: bool
    files: tuple[FileUse, ...]
    sections: tuple[SectionUse, ...]
    stopped: str | None
    spent: dict[str, JsonValue]

    @property
    def never_opened(self) -> tuple[str, ...]:
        """The files that no rollout opened."""
        return tuple(each.path for each in self.files if each.opened == 0)

    @property
    def never_quoted(self) -> tuple[str, ...]:
        """The sections that no rollout quoted."""
        return tuple(each.name for each in self.sections if each.quoted == 0)


def audited(path: Path) -> tuple[Path, Path | None]:
    """Return the program of a path, and the skill's folder if the path is one.

    Raises:
        SkillcError: it is a skill whose program is unknown, or contains no program.
    """
    return program_and_skill(path, "name the program and the folder: `skillc audit PROGRAM --skill {}`")


def skill_of(planned: Planned, folder: Path | None) -> Document:
    """Return the skill in a folder, by default the compiled one or, before the first compile, the initial one.

    Raises:
        SkillcError: it cannot be read.
    """
    paths = ArtifactPaths.beside(planned.root, planned.plan.skill.artifact)
    if folder is None and not paths.skill.exists():
        return with_files(initial_document(planned.plan), planned.plan, planned.root)
    if folder is None:
        check_merged(paths)
        check_owner(planned.path, paths, read_lock(paths.lock) if paths.lock.exists() else None)
    file = (folder or paths.folder) / SKILL_FILE
    return read_skill(file, read_source(file).text, whole=True)


def audit(planned: Planned, document: Document, client: Client, *, split: Split, count: int) -> Audit:
    """Run a number of examples of a split with a skill, spread over the split; caps of the budget end it early.

    Raises:
        SkillcError: data, models or the rollout cannot be used, or the split is empty.
    """
    plan = planned.plan
    dataset = load_data(plan, planned.root)
    every = {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}[split]
    if not every:
        raise SkillcError(f"the split `{split}` has no examples", hint="name another with `--split`")
    examples = [every[i * len(every) // min(count, len(every))] for i in range(min(count, len(every)))]
    runner = RolloutRunner(plan, client, root=planned.root)
    done, stopped = asyncio.run(_run(runner, Skill.of(document), client, examples))
    parts = SkillParts.of(document)
    whole = not runner.folders
    ran = [each for each in done if each.failure is None]
    readings = [parts.read_in(each.trajectory) for each in ran]
    known = whole or any(each.trajectory.calls() for each in ran)
    always = plan.skill.load == "always"
    opened = _opened(parts, readings, whole=whole and always, always=always)
    files = tuple(_file(parts, name, opened[name] if known or opened[name] else None) for name in parts.files)
    by_path = {each.path: each for each in files}
    quoted = Counter(name for reading in readings for name in reading.quoted)
    sections = tuple(
        SectionUse(each.name, place, each.tokens, by_path[place].opened, quoted[each.name])
        for each in parts.sections
        for place in [each.file or SKILL_FILE]
    )
    return Audit(
        skill=document.name,
        program=planned.path,
        kind=plan.task.rollout.kind,
        whole=whole,
        rollouts=len(ran),
        failures=dict(Counter(str(each.failure) for each in done if each.failure is not None)),
        known=known,
        files=files,
        sections=sections,
        stopped=stopped,
        spent=client.ledger.snapshot(),
    )


async def _run(
    runner: RolloutRunner, skill: Skill, client: Client, examples: Sequence[Example]
) -> tuple[list[Rollout], str | None]:
    """Run examples side by side; return the rollouts that ended, and the cap that stopped the others."""
    try:
        async with client.connected():
            jobs = (runner(skill, example, 0, STAGE) for example in examples)
            found = await asyncio.gather(*jobs, return_exceptions=True)
    finally:
        await runner.close()
    stopped = next((each for each in found if isinstance(each, BudgetReached)), None)
    other = next((e for e in found if isinstance(e, BaseException) and not isinstance(e, BudgetReached)), None)
    if other is not None:
        raise other
    return [each for each in found if isinstance(each, Rollout)], stopped.cap if stopped is not None else None


def _opened(parts: SkillParts, readings: Sequence[Reading], *, whole: bool, always: bool) -> dict[str, int]:
    """Count the rollouts that read each file; those that are read from the start count in every rollout."""
    placed = {each.file or SKILL_FILE for each in parts.sections}
    given = {SKILL_FILE, *placed} if whole else {SKILL_FILE} if always else set[str]()
    return {
        name: len(readings) if name in given else sum(name in reading.opened for reading in readings)
        for name in parts.files
    }


def _file(parts: SkillParts, name: str, opened: int | None) -> FileUse:
    content = parts.files[name]
    try:
        tokens: int | None = count_tokens(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        tokens = None
    return FileUse(name, len(content), tokens, opened)
