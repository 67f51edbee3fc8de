"""The record of a running server under `.skillc/serve/`, the lock for starting one, and its reports.

A record is believed only after its server was checked.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from filelock import FileLock, Timeout
from pydantic import JsonValue

from skillc.models.failures import PermanentFailure
from skillc.models.serving.probe import Address, PrefixCache, classify_server, is_shared, port_of
from skillc.models.serving.process import ProcessIdentity, stop_process
from skillc.text import counted

_FORMAT = 1
_POLL = 0.2


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A running server as its record describes it.

    Attributes:
        server, guard: its processes.
        address: with the key, which is generated for this server; the record is readable by this user alone.
        names: models that it serves.
        log: its log.
        keeper: the `skillc serve` that restarts it; None if its users restart it.
    """

    server: ProcessIdentity
    guard: ProcessIdentity
    address: Address
    names: tuple[str, ...]
    log: Path
    keeper: ProcessIdentity | None = None


def publish(path: Path, running: ServerRecord, *, with_key: bool) -> None:
    """Write the record; `with_key` only if skillc generated the key: a user's key is in no file.

    Raises:
        OSError: it cannot be written.
    """
    record = {
        "format": _FORMAT,
        "server": asdict(running.server),
        "guard": asdict(running.guard),
        "url": running.address.url,
        "key": running.address.key if with_key else None,
        "names": list(running.names),
        "log": str(running.log),
        "keeper": asdict(running.keeper) if running.keeper is not None else None,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        # No moment at which another user could read the key.
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def withdraw(path: Path, server: ProcessIdentity) -> None:
    """Remove a server's record, unless another process has published its own in its place."""
    record = _read_record(path)
    if record is not None and record.server == server:
        path.unlink(missing_ok=True)


def find_server(home: Path, prefix: str, names: Sequence[str], key: str | None) -> ServerRecord | None:
    """Find a running server that is proven to be the recorded one and serves these models to this key.

    Args:
        home: the folder of the records.
        prefix: of the records' names.
        names: models that it must serve.
        key: the user's key; None if the server's key was generated.
    """
    for record in _records(home, prefix, names):
        address = Address(record.address.url, key or record.address.key)
        proven = record.server.is_alive and classify_server(address, names) == "ours"
        if proven and not is_shared(port_of(address.url), record.server.pid):
            return replace(record, address=address)
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
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != _FORMAT:
            return None
        return ServerRecord(
            server=_identity(data["server"]),
            guard=_identity(data["guard"]),
            address=Address(str(data["url"]), str(data["key"] or "")),
            names=tuple(str(name) for name in data["names"]),
            log=Path(str(data["log"])),
            keeper=_identity(data["keeper"]) if data.get("keeper") else None,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _identity(data: Mapping[str, Any]) -> ProcessIdentity:
    return ProcessIdentity(int(data["pid"]), str(data["born"]))


class StartCancelled(Exception):  # noqa: N818
    """The run ended while its server was starting."""


class StartLock:
    """A lock for starting servers of one kind: one process starts, and the others find the record that it publishes."""

    def __init__(self, path: Path, closed: threading.Event, seconds: float) -> None:
        self._lock = FileLock(path, thread_local=False)
        self._closed = closed
        self._seconds = seconds

    def __enter__(self) -> None:
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                self._lock.acquire(timeout=0)
                return
            except Timeout:
                if self._closed.wait(_POLL):
                    raise StartCancelled from None
                if time.monotonic() > deadline:
                    raise PermanentFailure(
                        "another skillc has been starting the same server for too long",
                        hint=f"check that process, or remove `{self._lock.lock_file}`",
                    ) from None

    def __exit__(self, *_: object) -> None:
        if self._lock.is_locked:
            self._lock.release()


class Watcher(Protocol):
    """Receives a server's reports, from any thread."""

    def note(self, message: str) -> None:
        """A message for the user."""

    def waiting(self, text: str | None) -> None:
        """What the server waits for now; None at the end of the wait."""


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
    """

    roles: tuple[str, ...]
    source: str
    how: Literal["started", "reused", "found"]
    seconds: float | None
    restarts: int
    cache: PrefixCache | None

    def to_json(self) -> dict[str, JsonValue]:
        """Return the summary as JSON; the prefix cache counts tokens of prompts."""
        return {
            "roles": list(self.roles),
            "model": self.source,
            "how": self.how,
            "start_seconds": None if self.seconds is None else round(self.seconds, 1),
            "restarts": self.restarts,
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
        return f"{self.source} by vLLM, {self.how}{duration}{restarts}{hits}"
