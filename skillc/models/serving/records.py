"""The record of a running server under `.skillc/serve/`, the lock for starting one, and its reports.

A record is believed only after its server was checked.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Literal, Protocol

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from skillc.dataclass import dataclass
from skillc.files import write_atomically
from skillc.models.failures import PermanentFailure
from skillc.models.serving.probe import Address, PrefixCache, classify_server, is_shared, port_of
from skillc.models.serving.process import ProcessIdentity, stop_process
from skillc.text import counted

_POLL = 0.2


class ServerRecord(BaseModel):
    """A running server as its record describes it.

    Attributes:
        server, guard: its processes.
        url, key: its address. The key is generated for this server, and the record readable by this user alone; a
            user's key is in no record.
        names: models that it serves.
        log: its log.
        keeper: the `skillc serve` that restarts it; None if its users restart it.
    """

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    server: ProcessIdentity
    guard: ProcessIdentity
    url: str
    key: str | None = Field(repr=False)
    names: tuple[str, ...]
    log: Path
    keeper: ProcessIdentity | None = None

    @property
    def address(self) -> Address:
        """Its address with its key."""
        return Address(self.url, self.key or "")


def publish(path: Path, record: ServerRecord) -> None:
    """Write a record; raise `OSError` if that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # No other user may read the key.
    write_atomically(path, record.model_dump_json(indent=1), mode=0o600)


def withdraw(path: Path, server: ProcessIdentity) -> None:
    """Remove a server's record, unless another process has published its own in its place."""
    record = _read_record(path)
    if record is not None and record.server == server:
        path.unlink(missing_ok=True)


def find_server(home: Path, prefix: str, names: Sequence[str], key: str | None) -> ServerRecord | None:
    """Find a running server that is proven to be the recorded one and serves these models to the user's key, if any."""
    for record in _records(home, prefix, names):
        known = record if key is None else record.model_copy(update={"key": key})
        proven = record.server.is_alive and classify_server(known.address, names) == "ours"
        if proven and not is_shared(port_of(record.url), record.server.pid):
            return known
    return None


def find_keeper(home: Path, prefix: str, names: Sequence[str]) -> ProcessIdentity | None:
    """Find another process that runs `skillc serve` for these models, and so restarts their server."""
    keepers = [record.keeper for record in _records(home, prefix, names) if record.keeper is not None]
    return next((each for each in keepers if each.pid != os.getpid() and each.is_alive), None)


def running_servers(home: Path) -> list[tuple[Path, ServerRecord]]:
    """List the servers that have a record in a folder and run."""
    read = [(path, _read_record(path)) for path in sorted(home.glob("*.json"))]
    return [(path, record) for path, record in read if record is not None and record.server.is_alive]


def stop_server(path: Path, running: ServerRecord) -> None:
    """Stop a recorded server; remove its record first, so that its owner does not restart it."""
    path.unlink(missing_ok=True)
    stop_process(running.server, running.guard)


def _records(home: Path, prefix: str, names: Sequence[str]) -> list[ServerRecord]:
    read = [_read_record(path) for path in sorted(home.glob(f"{prefix}-*.json"))]
    return [record for record in read if record is not None and set(names) <= set(record.names)]


def _read_record(path: Path) -> ServerRecord | None:
    """Read a record; None if it is missing or incomplete."""
    try:
        return ServerRecord.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


class StartCancelled(Exception):  # noqa: N818
    """The run ended while its server was starting."""


@contextmanager
def start_lock(path: Path, closed: threading.Event, seconds: float) -> Iterator[None]:
    """Hold the lock for starting servers of one kind: one process starts, and the others find its record.

    Raises `StartCancelled` if `closed` is set meanwhile, `PermanentFailure` if another process holds it too long.
    """
    lock = FileLock(path, thread_local=False)
    deadline = time.monotonic() + seconds
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if closed.wait(_POLL):
                raise StartCancelled from None
            if time.monotonic() > deadline:
                raise PermanentFailure(
                    "another skillc has been starting the same server for too long",
                    hint=f"check that process, or remove `{lock.lock_file}`",
                ) from None
    try:
        yield
    finally:
        lock.release()


class Watcher(Protocol):
    """Receives a server's reports, from any thread."""

    def note(self, message: str) -> None:
        """Show a message to the user."""

    def waiting(self, text: str | None) -> None:
        """Show what the server waits for now; None ends the wait."""


class NullWatcher:
    """Drops all reports."""

    def note(self, message: str) -> None:
        """Do nothing."""

    def waiting(self, text: str | None) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class ServerSummary:
    """Summary of a server at the end of a run.

    Attributes:
        roles: whose models it served.
        source: the folder or the name on the hub, as written.
        how: whether skillc `started` it, `reused` one that kept running, or `found` one at the declared address.
        seconds: duration of the last start; None without one.
        restarts: number of restarts.
        cache: the prefix cache during the run; None if it has no counters.
        batch_invariant: whether its replies do not depend on the other calls.
    """

    roles: tuple[str, ...]
    source: str
    how: Literal["started", "reused", "found"]
    seconds: float | None
    restarts: int
    cache: PrefixCache | None
    batch_invariant: bool = False

    def to_json(self) -> dict[str, JsonValue]:
        """Return the summary as JSON; the prefix cache counts tokens of prompts."""
        return {
            "roles": list(self.roles),
            "model": self.source,
            "how": self.how,
            "start_seconds": None if self.seconds is None else round(self.seconds, 1),
            "restarts": self.restarts,
            "batch_invariant": self.batch_invariant,
            "prefix_cache": None if self.cache is None else asdict(self.cache),
        }

    @property
    def line(self) -> str:
        """The summary in one line."""
        duration = "" if self.seconds is None else f" after {self.seconds:.0f} s"
        restarts = f", restarted {counted(self.restarts, 'time')}" if self.restarts else ""
        hits = ""
        if self.cache is not None and self.cache.queries:
            share = 100 * self.cache.hits / self.cache.queries
            hits = f"; prefix cache hits: {share:.0f} % of {self.cache.queries:,} prompt tokens"
        kernels = ", batch-invariant" if self.batch_invariant else ""
        return f"{self.source} by vLLM, {self.how}{duration}{restarts}{kernels}{hits}"
