"""`skillc history`: the fate of each candidate and proposed edit, from the history of a compiled skill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.loading import paths_of_program, program_and_skill, program_in
from skillc.dataclass import dataclass
from skillc.diagnostics.render import printable
from skillc.errors import SkillcError
from skillc.items.record import RunItems, read_items
from skillc.json_values import objects_in
from skillc.run.folder import HOME, RunFolder
from skillc.run.history import read_history
from skillc.text import counted

Line = Mapping[str, JsonValue]

_SHORT = 8
_RESULTS = {"accept": "accepted", "reject": "rejected"}
_STYLES = {"accepted": "green", "rejected": "red", "screened out": "red", "free rider": "yellow"}


@dataclass(frozen=True, slots=True)
class EditFate:
    """A proposed edit, its fate, and the reason with its counts; an edit may have several fates."""

    edit: str
    fate: str
    why: str


@dataclass(frozen=True, slots=True)
class DecisionSummary:
    """One decision.

    Attributes:
        decision: its number in the run.
        place: such as `step 3/8`.
        maker: `draft` or `edits`; empty for neither.
        candidate: digest of the candidate, empty for none.
        result: `accepted`, `rejected`, `undecided`, `beaten` or `empty`.
        goal: the candidate's mean, or its two bounds after an early decision; None if it was not measured.
        edits: the proposed edits of the step, once per fate.
    """

    decision: int
    place: str
    maker: str
    candidate: str
    result: str
    reason: str
    goal: JsonValue
    edits: tuple[EditFate, ...]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The decisions of one compile, in order."""

    run: str
    decisions: tuple[DecisionSummary, ...]


def read_runs(path: Path) -> tuple[RunSummary, ...]:
    """Return the runs in the history of a program or of a skill's folder, including undelivered ones.

    Raises:
        SkillcError: the history is missing or cannot be read.
    """
    paths = ArtifactPaths.of_folder(path)
    if not paths.history.is_file():
        program = program_in(path)
        paths = paths_of_program(program)
    files = [each.history for each in (paths, paths.candidate) if each.history.is_file()]
    if not files:
        raise SkillcError(f"history `{paths.history}` does not exist", hint=f"`skillc compile {path}` writes it")
    lines = [line for file in files for line in read_history(file)]
    return tuple(
        RunSummary(name, tuple(map(_decided, group))) for name, group in groupby(lines, lambda e: str(e.get("run")))
    )


def items_of_last(path: Path) -> RunItems:
    """Return what the last run of a program, or of a skill's folder, measured on each item.

    Raises:
        SkillcError: the history is missing, or the run was not recorded on this machine.
    """
    program, _ = program_and_skill(path, "skillc history PROGRAM --items")
    last = read_runs(path)[-1].run
    found = read_items(RunFolder(program.parent / HOME, last).path)
    if found is None:
        raise SkillcError(
            f"the items of run `{last[:_SHORT]}` are not recorded here",
            hint=f"`skillc compile {program}` records them; what it has recorded or cached is not paid for again",
        )
    return found


def _decided(line: Line) -> DecisionSummary:
    number, goal = line.get("decision"), line.get("goal")
    result = str(line.get("result"))
    reached = goal.get("candidate") if isinstance(goal, dict) else None
    return DecisionSummary(
        decision=number if isinstance(number, int) else 0,
        place=str(line.get("place", "")),
        maker=str(line.get("maker", "edits" if line.get("edits") or line.get("fates") else "")),
        candidate=str(line.get("candidate", "")),
        result=_RESULTS.get(result, result),
        reason=str(line.get("reason", "")),
        goal=line.get("completed", reached),
        edits=tuple(_fates(line, _RESULTS.get(result, result))),
    )


def _fates(line: Line, result: str) -> Iterable[EditFate]:
    """Yield the recorded fate of each draft and edit; an edit without one shares that of its candidate."""
    trial = "cured {cured} of {of_failures} failures and broke {broke} of {of_rights} right cases in its trial"
    for row in objects_in(line.get("drafts")):
        fate = result if row.get("chosen") else "another draft was better"
        yield EditFate(f"a draft of {row.get('tokens')} tokens", fate, trial.format(**row))
    fates = objects_in(line.get("fates"))
    # A merge lists its edits as texts, which have no fate.
    for row in fates:
        yield EditFate(str(row.get("edit")), str(row.get("fate")), str(row.get("why", "")))
    for row in () if fates else objects_in(line.get("edits")):
        yield EditFate(f"{row.get('op')} {row.get('text') or row.get('rule')}", result, "")


def history_json(runs: Iterable[RunSummary]) -> dict[str, object]:
    """Return the object that `history --json` prints."""
    return {"format_version": 1, "runs": [asdict(run) for run in runs]}


def _safe(words: str) -> str:
    """Escape the characters of a text that would move the cursor, except line ends."""
    return "\n".join(map(printable, words.split("\n")))


def history_table(runs: Iterable[RunSummary]) -> RenderableType:
    """Return a block per decision, with a row per edit."""
    parts: list[RenderableType] = []
    for run in runs:
        count, accepted = counted(len(run.decisions), "decision"), sum(d.result == "accepted" for d in run.decisions)
        parts.append(Text(f"run {run.run[:_SHORT]}: {count}, {accepted} accepted", style="bold"))
        for each in run.decisions:
            parts += [Text(), _headline(each), *([Padding(_edits(each), (0, 0, 0, 2))] if each.edits else [])]
        parts.append(Text())
    return Group(*parts[:-1])


def _headline(each: DecisionSummary) -> Text:
    candidate = f"{each.maker} {each.candidate[:_SHORT]}  " if each.candidate else ""
    text = Text(f"{each.place}  {candidate}", style="bold")
    text.append(each.result, style=_STYLES.get(each.result, "yellow"))
    text.append(f": {_safe(each.reason)}", style="not bold")
    if isinstance(each.goal, str | int | float):
        text.append(f"; goal {each.goal}", style="not bold")
    return text


def _edits(each: DecisionSummary) -> Table:
    rows = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True)
    rows.add_column(ratio=1)
    for edit in each.edits:
        text = Text(_safe(edit.edit))
        if edit.why:
            text.append(f"\n{_safe(edit.why)}", style="dim")
        rows.add_row(Text(_safe(edit.fate), style=_STYLES.get(edit.fate, "")), text)
    return rows
