"""Group commits: one thread writes what all others queue, in order, in as few transactions as possible."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

_Row: TypeAlias = tuple[str, tuple[Any, ...]]

# Seconds that a row waits for others to share its commit, unless somebody waits for it.
_LINGER = 0.05


class _Commit:
    """Rows of one transaction."""

    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self.awaited = False
        self.done: Future[None] = Future()


class CommitWriter:
    """Writes queued rows in transactions; what was committed survives a power cut.

    The first failure is final: it is raised by every later call.

    Args:
        connection: in autocommit mode; `lock` is held while it is used.
        failed: turns an error of SQLite into the one to raise.
    """

    def __init__(
        self, connection: sqlite3.Connection, lock: threading.Lock, failed: Callable[[sqlite3.Error], Exception]
    ) -> None:
        self._connection = connection
        self._lock = lock
        self._failed = failed
        self._problem: Exception | None = None
        self._changed = threading.Condition()
        self._group = _Commit()
        self._last: Future[None] = Future()
        self._last.set_result(None)
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="skillc store", daemon=True)
        self._thread.start()

    def write(self, statement: str, *values: Any) -> None:
        """Queue a row."""
        with self._changed:
            if self._problem is not None:
                raise self._problem
            self._group.rows.append((statement, values))
            if len(self._group.rows) == 1:
                self._changed.notify()

    def sync(self) -> None:
        """Wait until all queued rows are on the disk."""
        self._awaited().result()

    async def synced(self) -> None:
        """Wait for the same, beside a running event loop."""
        done = self._awaited()
        if not done.done():
            # A shield: who stops waiting must not cancel the commit for all others.
            await asyncio.shield(asyncio.wrap_future(done))
        done.result()

    def close(self) -> None:
        """Commit what is queued and end the thread."""
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
            if not self._group.rows:
                return self._last
            if not self._group.awaited:
                self._group.awaited = True
                self._changed.notify()
            return self._group.done

    def _work(self) -> None:
        while (group := self._next()) is not None:
            try:
                # What was queued behind a failed group may depend on it.
                if self._problem is None:
                    with self._lock:
                        self._commit(group.rows)
            except Exception as problem:
                # Of any kind: callers that wait for a commit must be woken.
                with self._changed:
                    self._problem = self._failed(problem) if isinstance(problem, sqlite3.Error) else problem
            if self._problem is None:
                group.done.set_result(None)
            else:
                group.done.set_exception(self._problem)

    def _next(self) -> _Commit | None:
        """Wait for rows to commit; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._group.rows or self._closing)
            if not self._group.rows:
                return None
            self._changed.wait_for(lambda: self._group.awaited or self._closing, _LINGER)
            group, self._group = self._group, _Commit()
            self._last = group.done
            return group

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
