"""`skillc audit`: run the examples of a skill with fresh rollouts, and count what each of them read of its folder."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.artifact_paths import SKILL_FILE, ArtifactPaths
from skillc.conflict import check_merged
from skillc.data.dataset import load_data
from skillc.data.split import Side
from skillc.dataclass import dataclass
from skillc.document.folder import files_of, read_skill
from skillc.document.skill import Document, Section
from skillc.evaluate.measuring import spread_examples
from skillc.evaluate.skills import own_paths
from skillc.frontend import Planned
from skillc.models.client import Client
from skillc.models.failures import BudgetReached
from skillc.outcomes import Example
from skillc.pipeline.report import spent_lines
from skillc.plan.initial import initial_document, with_files
from skillc.syntax.files import read_source
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout, RolloutRunner
from skillc.text import counted, in_bytes, listed
from skillc.tokens import count_tokens
from skillc.trajectories.signals import opened_skills
from skillc.trajectories.trajectory import Message, Observation, ToolCall, Trajectory

_STAGE = "audit"
_SIGN_CHARACTERS = 16
_QUOTE_WORDS = 5
_WORD = re.compile(r"[^\W_]+")


# ---- what a trajectory shows ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """What one rollout has read of a skill: paths of opened files, and names of quoted sections."""

    opened: frozenset[str]
    quoted: frozenset[str]


@dataclass(frozen=True, slots=True)
class SkillParts:
    """What is looked for in trajectories.

    Attributes:
        files: content by path in the skill's folder.
        sections: the sections with a text.
        signs: for each text file, a line that tells it from the others; a file without such a line has none.
    """

    name: str
    files: Mapping[str, bytes]
    sections: tuple[Section, ...]
    signs: Mapping[str, str]

    @classmethod
    def of(cls, document: Document) -> SkillParts:
        """Return the parts of a skill."""
        files = files_of(document)
        texts = {name: _text(content) or "" for name, content in files.items()}
        signs = {name: sign for name in texts if (sign := _sign(name, texts))}
        sections = tuple(section for section in document.sections if section.body.strip())
        return cls(document.name, files, sections, signs)

    def read_in(self, trajectory: Trajectory) -> Reading:
        """Return what a trajectory shows of the skill.

        A file is opened by a call with its path that did not fail, or if its text is in what a tool returned. A section
        is quoted if five words in a row of one of its lines are in a message, or in the arguments of a call.
        """
        seen = "\n".join(each.text for each in trajectory.steps if isinstance(each, Observation) and not each.failed)
        calls = "\n".join(_arguments(trajectory, at) for at in range(len(trajectory.steps)))
        opened = {name for name, sign in self.signs.items() if sign in seen}
        opened |= {name for name in self.files if self._is_named(name, calls)}
        if self.name in opened_skills(trajectory):
            opened.add(SKILL_FILE)
        said = [each.text for each in trajectory.steps if isinstance(each, Message) and each.role == "assistant"]
        words = _words("\n".join([*said, *(json.dumps(call.arguments) for call in trajectory.calls())]))
        quoted = {section.name for section in self.sections if _is_quoted(section.body, words)}
        return Reading(frozenset(opened), frozenset(quoted))

    def _is_named(self, name: str, calls: str) -> bool:
        # A name without a folder may be that of a file of the task.
        path = name if "/" in name else f"{self.name}/{name}"
        return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w-]|\.\w)", calls) is not None


def _arguments(trajectory: Trajectory, at: int) -> str:
    """Return the arguments of a call as text, empty for other steps and for calls that failed."""
    call = trajectory.steps[at]
    if not isinstance(call, ToolCall):
        return ""
    for step in trajectory.steps[at + 1 :]:
        if isinstance(step, ToolCall):
            break
        if isinstance(step, Observation):
            if step.failed:
                return ""
            break
    return json.dumps(call.arguments, ensure_ascii=False).replace("\\\\", "/")


def _text(content: bytes) -> str | None:
    """Return the text of a file, None for another file."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _sign(name: str, texts: Mapping[str, str]) -> str | None:
    """Return the longest line of a file that no other file has."""
    lines = sorted({line.strip() for line in texts[name].splitlines()}, key=lambda line: (-len(line), line))
    others = [text for other, text in texts.items() if other != name]
    found = (line for line in lines if len(line) >= _SIGN_CHARACTERS and not any(line in text for text in others))
    return next(found, None)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _is_quoted(body: str, said: str) -> bool:
    for line in body.splitlines():
        words = _words(line).split()
        runs = (words[i : i + _QUOTE_WORDS] for i in range(len(words) - _QUOTE_WORDS + 1))
        if any(f" {' '.join(run)} " in f" {said} " for run in runs):
            return True
    return False


# ---- run ------------------------------------------------------------------------------------------


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
        own_paths(planned)
    file = (folder or paths.folder) / SKILL_FILE
    return read_skill(file, read_source(file).text, whole=True)


def audit(planned: Planned, document: Document, client: Client, *, split: Side, count: int) -> Audit:
    """Run a number of examples of a split with a skill, spread over the split; caps of the budget end it early.

    Raises:
        SkillcError: data, models or the rollout cannot be used, or the split is empty.
    """
    plan = planned.plan
    dataset = load_data(plan, planned.root)
    examples = spread_examples(dataset, split, count)
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
            jobs = (runner(skill, example, 0, _STAGE) for example in examples)
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
    text = _text(content)
    return FileUse(name, len(content), None if text is None else count_tokens(text), opened)


# ---- report ---------------------------------------------------------------------------------------


def audit_json(found: Audit) -> dict[str, object]:
    """Return the object that `audit --json` prints."""
    return {
        "format_version": 1,
        "skill": found.skill,
        "program": str(found.program),
        "rollout": found.kind,
        "reads_whole_skill": found.whole,
        "openings_known": found.known,
        "rollouts": found.rollouts,
        "failures": found.failures,
        "files": [asdict(each) for each in found.files],
        "sections": [asdict(each) for each in found.sections],
        "never_opened": list(found.never_opened),
        "never_quoted": list(found.never_quoted),
        "stopped": found.stopped,
        "spent": found.spent,
    }


def audit_table(found: Audit) -> RenderableType:
    """Return a row per file with its sections, and what was never opened or quoted."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(f"{found.skill}")
    for name in ("tokens", "opened", "quoted"):
        table.add_column(name, justify="right")
    of = f" of {found.rollouts}"
    for file in found.files:
        size = f"{file.tokens:,}" if file.tokens is not None else in_bytes(file.size)
        opened = "unknown" if file.opened is None else f"{file.opened}{of}"
        table.add_row(file.path, size, opened, "")
        for section in found.sections:
            if section.file == file.path:
                table.add_row(f"  {section.name}", f"{section.tokens:,}", "", f"{section.quoted}{of}")
    return Group(table, Text(), Text("\n".join([*_notes(found), *spent_lines(found.spent)])))


def _notes(found: Audit) -> list[str]:
    lines = []
    if found.whole and found.kind == "code":
        lines.append("`code` has the skill's scripts and kept files in its workspace, and reads all sections")
    elif found.whole:
        lines.append(f"`{found.kind}` has no folder to open: the target reads all sections, and no other file")
    elif not found.known:
        lines.append(f"no rollout reported a call of a tool, so what `{found.kind}` opens is unknown")
    if found.known:
        never = found.never_opened
        lines.append(f"never opened: {listed(never)}" if never else "every file was opened")
    if found.never_quoted:
        lines.append(f"never quoted: {listed(found.never_quoted)}")
    for kind, number in sorted(found.failures.items()):
        lines.append(f"{counted(number, 'rollout')} failed ({kind}) and say nothing")
    if found.stopped is not None:
        lines.append(f"stopped by the budget's `{found.stopped}` after {counted(found.rollouts, 'rollout')}")
    return lines
