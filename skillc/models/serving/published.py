"""What others see of a server: its file under `.skillc/serve/`, the lock for starting one, and its reports.

A file is believed only after its server was checked.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from filelock import FileLock, Timeout
from pydantic import JsonValue

from skillc.models.failures import PermanentFailure
from skillc.models.serving.probe import Address, PrefixCache, is_shared, port_of, verdict
from skillc.models.serving.process import Identity, stop_by_identity

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Published:
    """A running server as its file describes it.

    Attributes:
        server, guard: its processes.
        address: with the key, which is the server's own and opens nothing else; the file is for this user alone.
        names: models that it serves.
        log: its log.
        keeper: the `skillc serve` that restarts it; None where its users restart it.
    """

    server: Identity
    guard: Identity
    address: Address
    names: tuple[str, ...]
    log: Path
    keeper: Identity | None = None


def publish(path: Path, running: Published, *, with_key: bool) -> None:
    """Write the file; `with_key` only where the key is the server's own: a user's key is in no file.

    Raises:
        OSError: it cannot be written.
    """
    told = {
        "format": _FORMAT,
        "server": _to_json(running.server),
        "guard": _to_json(running.guard),
        "url": running.address.url,
        "key": running.address.key if with_key else None,
        "names": list(running.names),
        "log": str(running.log),
        "keeper": _to_json(running.keeper) if running.keeper is not None else None,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_published(path: Path) -> Published | None:
    """Read a file; None where there is none or it is incomplete."""
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != _FORMAT:
            return None
        return Published(
            server=_identity(told["server"]),
            guard=_identity(told["guard"]),
            address=Address(str(told["url"]), str(told["key"] or "")),
            names=tuple(str(name) for name in told["names"]),
            log=Path(str(told["log"])),
            keeper=_identity(told["keeper"]) if told.get("keeper") else None,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_running(home: Path, alike: str, names: Sequence[str], key: str | None) -> Published | None:
    """A published server that runs, is proven to be the one that was published, and serves these models to this key.

    Args:
        home: the folder of the files.
        alike: how the names of the files begin.
        names: models that it has to serve.
        key: the user's own key; None where the server has its own.
    """
    for told in _published(home, alike, names):
        address = Address(told.address.url, key or told.address.key)
        proven = told.server.lives and verdict(address, names) == "ours"
        if proven and not is_shared(port_of(address.url), told.server.pid):
            return replace(told, address=address)
    return None


def find_keeper(home: Path, alike: str, names: Sequence[str]) -> Identity | None:
    """Another process that runs `skillc serve` for these models, and so restarts their server."""
    keepers = [told.keeper for told in _published(home, alike, names) if told.keeper is not None]
    return next((each for each in keepers if each.pid != os.getpid() and each.lives), None)


def withdraw(path: Path, server: Identity) -> None:
    """Remove the file of a server, unless another process has published one in its place."""
    told = read_published(path)
    if told is not None and told.server == server:
        path.unlink(missing_ok=True)


def _published(home: Path, alike: str, names: Sequence[str]) -> list[Published]:
    read = [read_published(path) for path in sorted(home.glob(f"{alike}-*.json"))]
    return [told for told in read if told is not None and set(names) <= set(told.names)]


def _identity(told: Mapping[str, Any]) -> Identity:
    return Identity(int(told["pid"]), str(told["born"]))


def _to_json(identity: Identity) -> dict[str, int | str]:
    return {"pid": identity.pid, "born": identity.born}


def all_published(home: Path) -> list[tuple[Path, Published]]:
    """All servers that a folder lists and that still run."""
    read = [(path, read_published(path)) for path in sorted(home.glob("*.json"))]
    return [(path, told) for path, told in read if told is not None and told.server.lives]


def stop_published(state: Path, running: Published) -> None:
    """End a published server; remove its file first, so that its owner does not restart it."""
    state.unlink(missing_ok=True)
    stop_by_identity(running.server, running.guard)


_POLL = 0.2


class Stopped(Exception):  # noqa: N818
    """The run ended while its server was starting."""


class StartLock:
    """A lock for starting servers of one kind, so that one process starts and the others find what it published."""

    def __init__(self, path: Path, closed: threading.Event, seconds: float) -> None:
        self._lock = FileLock(path, thread_local=False)
        self._closed = closed
        self._seconds = seconds

    def __enter__(self) -> None:
        last = time.monotonic() + self._seconds
        while True:
            try:
                self._lock.acquire(timeout=0)
                return
            except Timeout:
                if self._closed.wait(_POLL):
                    raise Stopped from None
                if time.monotonic() > last:
                    raise PermanentFailure(
                        "another skillc has been starting the same server for too long",
                        hint=f"see what it does, or remove `{self._lock.lock_file}`",
                    ) from None

    def __exit__(self, *_: object) -> None:
        if self._lock.is_locked:
            self._lock.release()


class Watcher(Protocol):
    """Receives a server's reports, from any thread."""

    def note(self, message: str) -> None:
        """Something that the user should know."""

    def waiting(self, text: str | None) -> None:
        """What the server is waiting for now; None when that is over."""


class Silent:
    """Drops all reports."""

    def note(self, message: str) -> None:
        """Nothing."""

    def waiting(self, text: str | None) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Served:
    """Summary of a server at the end of a run.

    Attributes:
        roles: whose models it served.
        source: the folder or the name on the hub, as written.
        how: whether skillc `started` it, `reused` one that ran on, or `found` one at the declared address.
        seconds: that the last start took; None where there was none.
        restarts: how often it was started again.
        cache: the prefix cache over the run; None where it counts nothing.
    """

    roles: tuple[str, ...]
    source: str
    how: Literal["started", "reused", "found"]
    seconds: float | None
    restarts: int
    cache: PrefixCache | None

    def to_json(self) -> dict[str, JsonValue]:
        """By name; tokens of prompts for the prefix cache."""
        cache = self.cache
        return {
            "roles": list(self.roles),
            "model": self.source,
            "how": self.how,
            "start_seconds": None if self.seconds is None else round(self.seconds, 1),
            "restarts": self.restarts,
            "prefix_cache": None if cache is None else {"queries": cache.queries, "hits": cache.hits},
        }

    @property
    def line(self) -> str:
        """One line for people."""
        began = "" if self.seconds is None else f" after {self.seconds:.0f} s"
        again = f", started again {self.restarts} times" if self.restarts else ""
        cache = self.cache
        hits = ""
        if cache is not None and cache.queries:
            share = 100 * cache.hits / cache.queries
            hits = f"; its prefix cache held {share:.0f} % of {cache.queries:,} prompt tokens"
        return f"{self.source} by vLLM, {self.how}{began}{again}{hits}"
