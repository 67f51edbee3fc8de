"""What one run has to remember: outcomes, decisions, and what was paid."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from skillc.errors import SkillcError
from skillc.store.writer import CommitWriter

T = TypeVar("T")

_FORMAT = 1
_TABLES = """
CREATE TABLE outcomes (id INTEGER PRIMARY KEY, key BLOB NOT NULL, value TEXT NOT NULL, charges TEXT NOT NULL);
CREATE TABLE decisions (number INTEGER PRIMARY KEY, decision TEXT NOT NULL);
CREATE TABLE attempts (number INTEGER PRIMARY KEY, role TEXT NOT NULL, stage TEXT NOT NULL, reserved TEXT NOT NULL,
                       state TEXT NOT NULL, used TEXT NOT NULL);
CREATE TABLE models (role TEXT PRIMARY KEY, model TEXT NOT NULL);
"""
_NAMES = ("outcomes", "decisions", "attempts", "models")


class RunInUseError(SkillcError):
    """Another process has the run open."""


class StoredOutcome(NamedTuple):
    """A recorded value, with what was charged for it."""

    value: Any
    charges: Any


class Attempt(NamedTuple):
    """An attempt at a call.

    Attributes:
        state: `sent`, `ended` or `refused`.
        used: what an ended one used.
    """

    number: int
    role: str
    stage: str
    reserved: Any
    state: str
    used: Any


class RunStore:
    """The file of one run, which one process at a time can open.

    The file is in WAL mode with full synchronisation: a commit is one sync, and a kill or a power cut leaves all
    commits before it. Its exclusive lock, which ends with the process, needs no shared memory. Values are JSON.

    Args:
        path: the file.

    Attributes:
        path: the file.
        outdated: whether the file was of another format, so that the run begins anew.

    Raises:
        InUse: another process has it open.
        SkillcError: it cannot be written, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.outdated = False
        try:
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
                self._known = self._keys()
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as problem:
            raise self._trouble(problem) from problem
        self._writer = CommitWriter(self._connection, self._lock, self._trouble)

    def recall(self, key: bytes) -> StoredOutcome | None:
        """The next value that earlier sessions recorded under a key; each is given once."""
        known = self._known.get(key)
        if not known:
            return None
        ((value, charges),) = self._rows("SELECT value, charges FROM outcomes WHERE id = ?", known.popleft())
        return self._read(lambda: StoredOutcome(json.loads(value), json.loads(charges)))

    def add_outcome(self, key: bytes, value: Any, charges: Any) -> None:
        """Record a value under a key."""
        self._writer.write(
            "INSERT INTO outcomes (key, value, charges) VALUES (?, ?, ?)", key, _json(value), _json(charges)
        )

    def decisions(self) -> list[Any]:
        """All decisions, in order."""
        rows = self._rows("SELECT decision FROM decisions ORDER BY number")
        return self._read(lambda: [json.loads(text) for (text,) in rows])

    def add_decision(self, decision: Mapping[str, Any]) -> None:
        """Record the next decision; all that was recorded before is on the disk when this returns, and so is it."""
        self._writer.write("INSERT INTO decisions (decision) VALUES (?)", _json(decision))
        self._writer.sync()

    def attempts(self) -> list[Attempt]:
        """All attempts, by number."""
        rows = self._rows("SELECT number, role, stage, reserved, state, used FROM attempts ORDER BY number")
        return self._read(
            lambda: [
                Attempt(number, role, stage, json.loads(reserved), state, json.loads(used))
                for number, role, stage, reserved, state, used in rows
            ]
        )

    async def add_attempt(self, number: int, role: str, stage: str, reserved: Sequence[int]) -> None:
        """Record an attempt that is about to be sent; it is on the disk when this returns."""
        self._writer.write(
            "INSERT INTO attempts (number, role, stage, reserved, state, used) VALUES (?, ?, ?, ?, 'sent', 'null')",
            *(number, role, stage, _json(reserved)),
        )
        await self._writer.synced()

    def end_attempt(self, number: int, used: Any) -> None:
        """Record what an attempt used."""
        self._writer.write("UPDATE attempts SET state = 'ended', used = ? WHERE number = ?", _json(used), number)

    def refuse_attempt(self, number: int) -> None:
        """Record that an attempt was refused and costs nothing."""
        self._writer.write("UPDATE attempts SET state = 'refused' WHERE number = ?", number)

    def models(self) -> dict[str, str]:
        """The model that answered for each role."""
        rows = self._rows("SELECT role, model FROM models")
        return self._read(lambda: {role: json.loads(model) for role, model in rows})

    def add_model(self, role: str, model: str) -> None:
        """Record the model that answers for a role."""
        self._writer.write("INSERT INTO models (role, model) VALUES (?, ?)", role, _json(model))

    def clear(self) -> None:
        """Forget everything."""
        for name in _NAMES:
            self._writer.write(f"DELETE FROM {name}")
        self._writer.sync()
        self._known.clear()

    def sync(self) -> None:
        """Wait until all that was recorded is on the disk."""
        self._writer.sync()

    def close(self) -> None:
        """Commit what is open and close the file."""
        try:
            self._writer.close()
        finally:
            self._connection.close()

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        # Takes the lock, which is kept from now on.
        run("BEGIN IMMEDIATE")
        ((found,),) = run("PRAGMA user_version")
        if found != _FORMAT:
            self.outdated = found != 0
            for (name,) in run(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ).fetchall():
                run(f'DROP TABLE "{name}"')
            for statement in _TABLES.split(";")[:-1]:
                run(statement)
            run(f"PRAGMA user_version = {_FORMAT}")
        run("COMMIT")
        ((state,),) = run("PRAGMA quick_check(1)")
        if state != "ok":
            raise sqlite3.DatabaseError(state)

    def _keys(self) -> dict[bytes, deque[int]]:
        known: dict[bytes, deque[int]] = defaultdict(deque)
        for row, key in self._connection.execute("SELECT id, key FROM outcomes ORDER BY id"):
            known[key].append(row)
        return known

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as problem:
            raise self._trouble(problem) from problem

    def _read(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except ValueError as problem:
            raise self._damaged(problem) from problem

    def _trouble(self, problem: sqlite3.Error) -> SkillcError:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return RunInUseError(
                "another process is compiling this very run",
                hint=f"wait for it, or stop it; its folder is `{self.path.parent}`",
            )
        if not isinstance(problem, sqlite3.OperationalError):
            return self._damaged(problem)
        return SkillcError(
            f"the record of the run `{self.path}` cannot be written: {problem}",
            hint="nothing that was written is lost; mend it and run the same command, which goes on",
        )

    def _damaged(self, problem: Exception) -> SkillcError:
        return SkillcError(
            f"the record of the run `{self.path}` is damaged: {problem}",
            hint="remove its folder to start anew; replies in the cache are not paid for again",
        )


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
