"""The store of a run, read from a copy: outcomes by skill, example and sample, and charges by role and stage."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.optimize.rollouts import Outcome
from skillc.plan.schema import Plan
from skillc.run.history import with_completion
from skillc.store import FORMAT
from skillc.tasks.kind import Skill

NO_SKILL = "none"
BEFORE, AFTER = 0, -1
"""Instead of the number of a decision: what was spent before the first step, and after the last decision."""
AROUND = frozenset({"baseline", "second measurement", "test", "final test", "no skill", "always read"})
"""Stages outside of the steps."""
Key: TypeAlias = tuple[str, str, int]
"""Digest of the skill (`none` for no skill), id of the example, sample."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What the calls of one role in one stage came to.

    Attributes:
        calls: logical calls, each once, also if the reply was cached.
        cost: nano-dollars; None if a price is unknown.
        sent: attempts at a call that a model received; the others were cached or refused.
        seconds: wall time of the rollouts of this stage, added up over those in flight at once.
    """

    role: str
    stage: str
    calls: int = 0
    prompt: int = 0
    completion: int = 0
    cost: int | None = 0
    sent: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class StoredRun:
    """The rows of a store.

    Attributes:
        values: the last recorded value of each key, as JSON.
        spent: by role and stage, in the order of their first call.
        decisions: the lines of the history so far.
        steps: what was spent until each decision by its number, `BEFORE` and `AFTER`; prefetched rollouts count for the
            step in which they ran. None in a store of an earlier version.
    """

    values: Mapping[bytes, str] = field(repr=False)
    spent: tuple[Spent, ...]
    decisions: tuple[Mapping[str, Any], ...] = field(repr=False)
    steps: Mapping[int, tuple[Spent, ...]] | None = None


class Outcomes:
    """The recorded rollouts of the skills that are known, parsed when they are asked for."""

    def __init__(self, values: Mapping[Key, str]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._values)

    def examples(self) -> frozenset[str]:
        """Return the ids of the examples that any skill was run on."""
        return frozenset(example for _, example, _ in self._values)

    def outcome(self, skill: str, example: str, sample: int = 0) -> Outcome | None:
        """Return a rollout, None if it was not run."""
        text = self._values.get((skill, example, sample))
        return None if text is None else Outcome.from_json(json.loads(text))


def read_store(folder: Path, *, rollouts: bool = True) -> StoredRun | None:
    """Read the store in the folder of a run, also while the run is open; None if there is none.

    Without `rollouts` only decisions and attempts are read, in little memory.

    Raises:
        SkillcError: it cannot be read, or another version of skillc wrote it.
    """
    with copied_store(folder) as connection:
        return None if connection is None else _read(connection, rollouts=rollouts)


@contextmanager
def copied_store(folder: Path) -> Iterator[sqlite3.Connection | None]:
    """Open a copy of the store in the folder of a run, which may be running; None if there is none.

    Raises:
        SkillcError: it cannot be read, or another version of skillc wrote it.
    """
    path = folder / "run.db"
    if not path.is_file():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="skillc-review-") as copies:
        connection = _copied(folder, Path(copies))
        if connection is None:
            yield None
            return
        try:
            with closing(connection):
                yield connection
        except (sqlite3.Error, ValueError) as problem:
            raise _unreadable(path, problem) from problem


def _copied(folder: Path, copies: Path) -> sqlite3.Connection | None:
    """Return a connection to a whole copy, None if the file is gone."""
    path = folder / "run.db"
    # The run holds its file exclusively, so a copy is read. A copy made during a checkpoint can be torn: copy again.
    for last in (False, True):
        try:
            for name in ("run.db", "run.db-wal"):
                (copies / name).unlink(missing_ok=True)
                if (folder / name).exists():
                    shutil.copyfile(folder / name, copies / name)
            connection = sqlite3.connect(copies / "run.db")
            try:
                ((version,),) = connection.execute("PRAGMA user_version")
                ((state,),) = connection.execute("PRAGMA quick_check(1)")
                if state != "ok":
                    raise sqlite3.DatabaseError(state)
            except BaseException:
                connection.close()
                raise
        except FileNotFoundError:
            # The last connection has just removed the write-ahead log.
            continue
        except (sqlite3.Error, OSError, ValueError) as problem:
            if last:
                raise _unreadable(path, problem) from problem
            continue
        if version != FORMAT:
            connection.close()
            raise SkillcError(
                f"the record of the run `{path}` has format {version}, and this skillc reads format {FORMAT}",
                hint="read it with the skillc that compiled it",
            )
        return connection
    return None


def _unreadable(path: Path, problem: Exception) -> SkillcError:
    return SkillcError(
        f"the record of the run `{path}` cannot be read: {problem}",
        hint="remove its folder to report from the lock and the history alone",
    )


def _read(connection: sqlite3.Connection, *, rollouts: bool) -> StoredRun:
    spending = _Spending()
    values: dict[bytes, str] = {}
    lines = [json.loads(text) for (text,) in connection.execute("SELECT decision FROM decisions ORDER BY number")]
    steps = _Steps(lines, _marks(connection))
    if rollouts:
        for row, key, value, charges in connection.execute("SELECT id, key, value, charges FROM outcomes ORDER BY id"):
            values[key] = value
            charged = json.loads(charges)
            spending.charge(charged, value)
            steps.charge(row, charged, value)
    query = "SELECT role, stage, count(*) FROM attempts WHERE state != 'refused' GROUP BY role, stage"
    for role, stage, count in connection.execute(query):
        spending.sent[role, stage] = count
    decisions: list[Mapping[str, Any]] = []
    for line in lines:
        decisions = with_completion(decisions, line) if "decision" not in line else [*decisions, line]
    return StoredRun(values, spending.rows(), tuple(decisions), steps.rows())


def _marks(connection: sqlite3.Connection) -> list[int]:
    """Return the last outcome before each recorded decision; none in a store of an earlier version."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'marks'").fetchall():
        return []
    return [outcome for (outcome,) in connection.execute("SELECT outcome FROM marks ORDER BY decision")]


class _Spending:
    def __init__(self) -> None:
        self.calls: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        self.unpriced: set[tuple[str, str]] = set()
        self.seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.sent: dict[tuple[str, str], int] = {}

    def charge(self, charges: Iterable[Any], value: str) -> None:
        """Add the charges of an outcome; a rollout's wall time counts for its first call."""
        places = []
        for role, stage, _, usage, _, cost in charges:
            counts = self.calls[role, stage]
            for i, amount in enumerate((1, usage[0], usage[2], cost or 0)):
                counts[i] += amount
            if cost is None:
                self.unpriced.add((role, stage))
            places.append((role, stage))
        if places and value.startswith('{"cells"'):
            self.seconds[places[0]] += json.loads(value)["trajectory"].get("seconds", 0.0)

    def rows(self) -> tuple[Spent, ...]:
        """Return the sums."""
        places = dict.fromkeys([*self.calls, *self.sent])
        return tuple(
            Spent(
                *place,
                calls=self.calls[place][0],
                prompt=self.calls[place][1],
                completion=self.calls[place][2],
                cost=None if place in self.unpriced else self.calls[place][3],
                sent=self.sent.get(place, 0),
                seconds=self.seconds[place],
            )
            for place in places
        )


class _Steps:
    """The spending by decision. A line of the store is a decision, or the completed validation of an earlier one."""

    def __init__(self, lines: list[Any], marks: list[int]) -> None:
        self._marks = marks if len(marks) == len(lines) else None
        self._numbers = [line.get("decision", line.get("completed")) for line in lines]
        self._spent: defaultdict[int, _Spending] = defaultdict(_Spending)

    def charge(self, row: int, charges: list[Any], value: str) -> None:
        """Add the charges of the outcome in a row."""
        if self._marks is None:
            return
        at = bisect_left(self._marks, row)
        number = self._numbers[at] if at < len(self._numbers) else AFTER
        # All calls of an outcome are of one stage.
        around = bool(charges) and charges[0][1] in AROUND
        if (around and number != AFTER) or (number == AFTER and not self._numbers):
            number = BEFORE
        self._spent[number].charge(charges, value)

    def rows(self) -> Mapping[int, tuple[Spent, ...]] | None:
        """Return the sums by decision."""
        return None if self._marks is None else {number: each.rows() for number, each in self._spent.items()}


def outcomes_of(stored: StoredRun, plan: Plan, skills: Mapping[str, Document], examples: Iterable[str]) -> Outcomes:
    """Return the rollouts of known skills, and of no skill, on examples.

    Rollouts of other texts, such as those of single edits that were tried alone, are not among them.
    """
    texts: dict[str, str | None] = {name: Skill.of(skill).digest(plan.skill.load) for name, skill in skills.items()}
    found: dict[Key, str] = {}
    ids = tuple(examples)
    for name, text in {NO_SKILL: None, **texts}.items():
        for example in ids:
            for sample in range(plan.optimize.samples):
                value = stored.values.get(key_of(["rollout", text, example, sample]))
                if value is not None:
                    found[name, example, sample] = value
    return Outcomes(found)


def key_of(name: Sequence[JsonValue]) -> bytes:
    """Return the key under which a store has the value of a name."""
    return hashlib.sha256(json.dumps(name, separators=(",", ":")).encode()).digest()
