"""The store of one run: a SQLite file with its outcomes, decisions and receipts, written in group commits."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from skillc.errors import SkillcError

T = TypeVar("T")
_Row: TypeAlias = tuple[str, tuple[Any, ...]]

FORMAT = 1
"""Of the file, in its `user_version`."""
# Seconds that a row waits for others to share its commit, unless it is awaited.
_LINGER = 0.05
_TABLES = """
CREATE TABLE outcomes (id INTEGER PRIMARY KEY, key BLOB NOT NULL, value TEXT NOT NULL, charges TEXT NOT NULL);
CREATE TABLE decisions (number INTEGER PRIMARY KEY, decision TEXT NOT NULL);
CREATE TABLE attempts (number INTEGER PRIMARY KEY, role TEXT NOT NULL, stage TEXT NOT NULL, reserved TEXT NOT NULL,
                       state TEXT NOT NULL, used TEXT NOT NULL);
CREATE TABLE models (role TEXT PRIMARY KEY, model TEXT NOT NULL);
"""
# The last outcome that was recorded before each decision, for the spend by step. Earlier versions have no such table.
_MARKS = "CREATE TABLE IF NOT EXISTS marks (decision INTEGER PRIMARY KEY, outcome INTEGER NOT NULL)"
_MARK = "INSERT INTO marks SELECT (SELECT max(number) FROM decisions), (SELECT coalesce(max(id), 0) FROM outcomes)"


class RunInUseError(SkillcError):
    """Another process has the run open."""


class StoredOutcome(NamedTuple):
    """A recorded value and its charges."""

    value: Any
    charges: Any


class Attempt(NamedTuple):
    """An attempt at a call.

    Attributes:
        state: `sent`, `ended` or `refused`.
        used: usage of an ended attempt.
    """

    number: int
    role: str
    stage: str
    reserved: Any
    state: str
    used: Any


class RunStore:
    """The file of one run, open in one process at a time.

    WAL mode with full synchronisation: a commit is one sync, and survives a kill or a power cut. The exclusive lock
    ends with the process and needs no shared memory. Values are JSON.

    Attributes:
        outdated: whether the file had another format and was cleared.

    Raises:
        RunInUseError: another process has it open.
        SkillcError: it cannot be written, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.outdated = False
        self._known: dict[bytes, deque[int]] = defaultdict(deque)
        try:
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
                for row, key in self._connection.execute("SELECT id, key FROM outcomes ORDER BY id"):
                    self._known[key].append(row)
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as problem:
            raise self._trouble(problem) from problem
        self._writer = _CommitWriter(self._connection, self._lock, self._trouble)

    def recall(self, key: bytes) -> StoredOutcome | None:
        """Return the next value that earlier sessions recorded under a key, each once."""
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
        """Return all decisions, in order."""
        rows = self._rows("SELECT decision FROM decisions ORDER BY number")
        return self._read(lambda: [json.loads(text) for (text,) in rows])

    def add_decision(self, decision: Mapping[str, Any]) -> None:
        """Record the next decision, and wait until it and everything before it is on disk."""
        self._writer.write("INSERT INTO decisions (decision) VALUES (?)", _json(decision))
        self._writer.write(_MARK)
        self._writer.sync()

    def attempts(self) -> list[Attempt]:
        """Return all attempts, by number."""
        rows = self._rows("SELECT number, role, stage, reserved, state, used FROM attempts ORDER BY number")
        return self._read(
            lambda: [
                Attempt(number, role, stage, json.loads(reserved), state, json.loads(used))
                for number, role, stage, reserved, state, used in rows
            ]
        )

    async def add_attempt(self, number: int, role: str, stage: str, reserved: Sequence[int]) -> None:
        """Record an attempt before it is sent, and wait until it is on disk."""
        self._writer.write(
            "INSERT INTO attempts (number, role, stage, reserved, state, used) VALUES (?, ?, ?, ?, 'sent', 'null')",
            *(number, role, stage, _json(reserved)),
        )
        await self._writer.synced()

    def end_attempt(self, number: int, used: Any) -> None:
        """Record the usage of an attempt."""
        self._writer.write("UPDATE attempts SET state = 'ended', used = ? WHERE number = ?", _json(used), number)

    def refuse_attempt(self, number: int) -> None:
        """Record that an attempt was refused and costs nothing."""
        self._writer.write("UPDATE attempts SET state = 'refused' WHERE number = ?", number)

    def models(self) -> dict[str, str]:
        """Return the model that answered for each role."""
        rows = self._rows("SELECT role, model FROM models")
        return self._read(lambda: {role: json.loads(model) for role, model in rows})

    def add_model(self, role: str, model: str) -> None:
        """Record the model that answers for a role."""
        self._writer.write("INSERT INTO models (role, model) VALUES (?, ?)", role, _json(model))

    def clear(self) -> None:
        """Delete everything."""
        for name in ("outcomes", "decisions", "attempts", "models", "marks"):
            self._writer.write(f"DELETE FROM {name}")
        self._writer.sync()
        self._known.clear()

    def sync(self) -> None:
        """Wait until everything recorded is on disk."""
        self._writer.sync()

    def close(self) -> None:
        """Commit queued rows and close the file."""
        try:
            self._writer.close()
        finally:
            self._connection.close()

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        # Takes the exclusive lock and keeps it.
        run("BEGIN IMMEDIATE")
        ((found,),) = run("PRAGMA user_version")
        if found != FORMAT:
            self.outdated = found != 0
            for (name,) in run(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ).fetchall():
                run(f'DROP TABLE "{name}"')
            for statement in _TABLES.split(";")[:-1]:
                run(statement)
            run(f"PRAGMA user_version = {FORMAT}")
        run(_MARKS)
        run("COMMIT")
        ((state,),) = run("PRAGMA quick_check(1)")
        if state != "ok":
            raise sqlite3.DatabaseError(state)

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
                "another process is compiling this run",
                hint=f"wait for it or stop it; the run's folder is `{self.path.parent}`",
            )
        if not isinstance(problem, sqlite3.OperationalError):
            return self._damaged(problem)
        return SkillcError(
            f"the record of the run `{self.path}` cannot be written: {problem}",
            hint="nothing written is lost: fix the cause and run the same command, which resumes",
        )

    def _damaged(self, problem: Exception) -> SkillcError:
        return SkillcError(
            f"the record of the run `{self.path}` is damaged: {problem}",
            hint="remove its folder to start anew; cached replies are not paid for again",
        )


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


# ---- group commits --------------------------------------------------------------------------------


class _Batch:
    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self.awaited = False
        self.done: Future[None] = Future()


class _CommitWriter:
    """Commits queued rows in order on one thread, in as few transactions as possible.

    The first failure is final: every later call raises it, an error of SQLite as `failed` converts it.
    """

    def __init__(
        self, connection: sqlite3.Connection, lock: threading.Lock, failed: Callable[[sqlite3.Error], Exception]
    ) -> None:
        self._connection = connection
        self._lock = lock
        self._failed = failed
        self._problem: Exception | None = None
        self._changed = threading.Condition()
        self._batch = _Batch()
        self._last: Future[None] = Future()
        self._last.set_result(None)
        self._closing = False
        self._wrapped: tuple[asyncio.AbstractEventLoop, Future[None], asyncio.Future[None]] | None = None
        self._thread = threading.Thread(target=self._work, name="skillc store", daemon=True)
        self._thread.start()

    def write(self, statement: str, *values: Any) -> None:
        """Queue a row."""
        with self._changed:
            if self._problem is not None:
                raise self._problem
            self._batch.rows.append((statement, values))
            if len(self._batch.rows) == 1:
                self._changed.notify()

    def sync(self) -> None:
        """Wait until all queued rows are on disk."""
        self._awaited().result()

    async def synced(self) -> None:
        """As `sync`, in an event loop."""
        done = self._awaited()
        if not done.done():
            # One for all waiters of a commit: each that is wrapped would wake the loop.
            loop = asyncio.get_running_loop()
            if self._wrapped is None or self._wrapped[:2] != (loop, done):
                self._wrapped = loop, done, asyncio.wrap_future(done)
            # Cancelling one waiter must not cancel the commit for the others.
            await asyncio.shield(self._wrapped[2])
        done.result()

    def close(self) -> None:
        """Commit queued rows and end the thread."""
        try:
            self.sync()
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify()
            self._thread.join()

    def _awaited(self) -> Future[None]:
        with self._changed:
            if self._problem is not None:
                raise self._problem
            if not self._batch.rows:
                return self._last
            if not self._batch.awaited:
                self._batch.awaited = True
                self._changed.notify()
            return self._batch.done

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            try:
                # Rows queued after a failed commit may depend on it.
                if self._problem is None:
                    with self._lock:
                        self._commit(batch.rows)
            except Exception as problem:
                # Any error: callers that wait for the commit must be woken.
                with self._changed:
                    self._problem = self._failed(problem) if isinstance(problem, sqlite3.Error) else problem
            if self._problem is None:
                batch.done.set_result(None)
            else:
                batch.done.set_exception(self._problem)

    def _next(self) -> _Batch | None:
        """Wait for rows to commit; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._batch.rows or self._closing)
            if not self._batch.rows:
                return None
            self._changed.wait_for(lambda: self._batch.awaited or self._closing, _LINGER)
            batch, self._batch = self._batch, _Batch()
            self._last = batch.done
            return batch

    def _commit(self, rows: list[_Row]) -> None:
        self._connection.execute("BEGIN")
        try:
            for statement, values in rows:
                self._connection.execute(statement, values)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
