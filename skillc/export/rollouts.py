"""Every recorded rollout of a run as a row, one at a time: memory does not grow with the texts of the rollouts."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.edits import apply_edits
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.models.roles import declared_secrets
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Scored, Unmeasured
from skillc.redaction import Redactor
from skillc.review.run_view import PlacedExample, RunView, read_run
from skillc.review.stored import NO_SKILL, copied_store, key_of
from skillc.run.folder import HOME, RunFolder
from skillc.tasks.kind import Skill
from skillc.trajectories.trajectory import FileChange, Message, Observation, Step, ToolCall

SCHEMA = 1
"""The version of the rows: a column that is added leaves it, one that changes or goes raises it."""
_NANO = 1_000_000_000
# A metric with a flip rate is judged again once or twice, with a few attempts each.
_REPEATS, _ATTEMPTS = 4, 4

Row: TypeAlias = dict[str, JsonValue]
Kind = Literal["rollout", "judged again", "unidentified"]


@dataclass(frozen=True, slots=True)
class _Version:
    """A skill that rollouts were made with.

    Attributes:
        text: digest of what the target reads; None for no skill.
        document: digest of the whole skill.
        decision: the number of the decision that proposed it; None for a trial of one edit.
        trial: the edit that was tried alone, in words.
    """

    text: str | None
    document: str | None
    place: str
    decision: int | None = None
    result: str | None = None
    trial: str | None = None


class Rollouts:
    """The recorded rollouts of a run.

    Args:
        program: the program, or the folder of its skill.
        run: the beginning of the id of another run than the last.
        environ: has the values of the secrets that are redacted.

    Attributes:
        view: the run, without its rollouts.

    Raises:
        SkillcError: as `read_run`, or the run was not recorded on this machine.
    """

    def __init__(self, program: Path, run: str | None = None, environ: Mapping[str, str] | None = None) -> None:
        self.view = view = read_run(program, run, rollouts=False)
        self._folder = RunFolder(view.program.parent / HOME, view.run).path
        if not (self._folder / "run.db").is_file():
            raise SkillcError(
                f"the rollouts of run `{view.run[:8]}` are not on this machine",
                hint="they are in `.skillc`, on the machine that compiled",
            )
        self._hide = Redactor(declared_secrets(view.plan, os.environ if environ is None else environ))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the program's metrics."""
        return tuple(metric.name for metric in self.view.plan.metrics)

    def __iter__(self) -> Iterator[Row]:
        """Yield a row for each rollout: by skill in the order of the decisions, by split, example and sample.

        Raises:
            SkillcError: the store cannot be read.
        """
        with copied_store(self._folder) as store:
            if store is None:
                return
            # A copy, so the run's own file stays as it is.
            store.execute("CREATE INDEX by_key ON outcomes (key)")
            store.execute("CREATE TEMP TABLE written (id INTEGER PRIMARY KEY)")
            for version in _versions(self.view):
                for name, kind, example, sample in self._names(version):
                    yield from self._rows(store, kind, _found(store, key_of(name)), version, example, sample)
            rest = store.execute(
                "SELECT id, value, charges FROM outcomes WHERE id NOT IN (SELECT id FROM written) "
                "AND value LIKE '{\"cells\"%' ORDER BY key, id"
            )
            yield from self._rows(store, "unidentified", rest, None, None, None)

    def _names(self, version: _Version) -> Iterator[tuple[Sequence[JsonValue], Kind, PlacedExample | None, int]]:
        judged = [(repeat, attempt) for repeat in range(1, _REPEATS) for attempt in range(_ATTEMPTS)]
        judged = judged if self.view.plan.requires else []
        for placed in self.view.examples.values():
            name = placed.example.id
            for sample in range(self.view.plan.optimize.samples):
                yield ["rollout", version.text, name, sample], "rollout", placed, sample
                for again in judged:
                    yield ["judged", version.text, name, sample, *again], "judged again", placed, sample

    def _rows(
        self,
        store: sqlite3.Connection,
        kind: Kind,
        found: Iterable[tuple[int, str, str]],
        version: _Version | None,
        placed: PlacedExample | None,
        sample: int | None,
    ) -> Iterator[Row]:
        for attempt, (number, value, charges) in enumerate(found):
            # Two skills with the same text share their rollouts.
            if version is not None and not _first_time(store, number):
                continue
            outcome = Outcome.from_json(json.loads(value))
            row: Row = {
                "format_version": SCHEMA,
                "run": self.view.run,
                "kind": kind,
                **_place(version),
                **_example(placed),
                "sample": sample,
                "attempt": attempt if version is not None else None,
                **_measured(outcome),
                **_charged(json.loads(charges)),
                "seconds": outcome.trajectory.seconds,
                "turns": outcome.trajectory.turns,
                "messages": list[JsonValue](_message(step) for step in outcome.trajectory.steps),
            }
            yield self._hide.value(row)


def _first_time(store: sqlite3.Connection, number: int) -> bool:
    """Note that a row was written, and return whether it was not before."""
    return store.execute("INSERT OR IGNORE INTO written VALUES (?)", (number,)).rowcount > 0


def _found(store: sqlite3.Connection, key: bytes) -> list[tuple[int, str, str]]:
    return store.execute("SELECT id, value, charges FROM outcomes WHERE key = ? ORDER BY id", (key,)).fetchall()


def _versions(view: RunView) -> Iterator[_Version]:
    """Yield no skill, the initial skill, each candidate in order, then each edit that was tried alone."""
    load = view.plan.skill.load

    def read(document: Document) -> str:
        return Skill.of(document).digest(load)

    yield _Version(None, None, NO_SKILL)
    if view.initial in view.skills:
        yield _Version(read(view.skills[view.initial]), view.initial, "start", 0)
    for each in view.decisions:
        if each.candidate in view.skills:
            document = view.skills[each.candidate]
            yield _Version(read(document), each.candidate, each.place, each.number, each.result)
    for each in view.decisions:
        incumbent = view.skills.get(each.incumbent)
        for proposed in (*each.edits, *each.others) if incumbent is not None else ():
            if incumbent is not None and proposed.edit is not None:
                alone = apply_edits(incumbent, [proposed.edit]).document
                yield _Version(read(alone), None, each.place, None, proposed.fate or None, proposed.words)


def _place(version: _Version | None) -> Row:
    return {
        "place": version.place if version is not None else None,
        "decision": version.decision if version is not None else None,
        "result": version.result if version is not None else None,
        "candidate": version.document if version is not None else None,
        "skill": version.text if version is not None else None,
        "trial": version.trial if version is not None else None,
    }


def _example(placed: PlacedExample | None) -> Row:
    if placed is None:
        return dict.fromkeys(("split", "example", "group", "inputs", "right", "fields"))
    example = placed.example
    return {
        "split": placed.split,
        "example": example.id,
        "group": example.group,
        "inputs": dict(example.inputs),
        "right": dict(example.gold),
        "fields": dict(example.fields),
    }


def _measured(outcome: Outcome) -> Row:
    """Return what was measured: the score of a metric, or the kind of failure for which it has none."""
    scores = {name: cell.value / MICRO for name, cell in outcome.cells.items() if isinstance(cell, Scored)}
    failed = {name: cell.kind for name, cell in outcome.cells.items() if isinstance(cell, Unmeasured)}
    # A rollout that failed as a whole has its cause in place of feedback.
    reason = outcome.failure or (outcome.feedback if failed else "")
    trajectory = outcome.trajectory
    return {
        "output": dict(trajectory.answer) if trajectory.answer is not None else None,
        "problem": trajectory.problem,
        "ending": trajectory.outcome,
        "scores": dict(scores),
        "unmeasured": dict(failed),
        "reason": reason or None,
        "feedback": "" if failed and not outcome.failure else outcome.feedback,
        "reward": trajectory.reward,
    }


def _charged(charges: Sequence[Any]) -> Row:
    """Return the calls of a rollout and of its judges; the cost in dollars, None if a price is unknown."""
    totals = [0, 0, 0, 0]
    cost: int | None = 0
    for _, _, _, usage, _, paid in charges:
        totals = [total + count for total, count in zip(totals, usage, strict=True)]
        cost = None if cost is None or paid is None else cost + paid
    return {
        "stage": charges[0][1] if charges else None,
        "calls": len(charges),
        "prompt_tokens": totals[0],
        "cached_tokens": totals[1],
        "completion_tokens": totals[2],
        "reasoning_tokens": totals[3],
        "cost": None if cost is None else cost / _NANO,
    }


def _message(step: Step) -> Row:
    row: Row = {"kind": "", "role": None, "text": None, "tool": None, "arguments": None, "failed": None, "path": None}
    match step:
        case Message(text, role):
            return {**row, "kind": "message", "role": role, "text": text}
        case ToolCall(_, arguments):
            return {**row, "kind": "call", "role": "assistant", "tool": step.shown, "arguments": dict(arguments)}
        case Observation(text, failed):
            return {**row, "kind": "observation", "role": "tool", "text": text, "failed": failed}
        case FileChange(path, change, text):
            return {**row, "kind": f"file {change}", "text": text, "path": path}
