"""Servers that other runs may use: a file for each under `.skillc/serve/`, believed only after it was checked."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillc.models.serving.probe import Address, is_healthy, served_names
from skillc.models.serving.process import Identity, stop_by_identity

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Published:
    """A running server as its file tells of it.

    Attributes:
        server, guard: its processes.
        address: with the key, which is the server's own and opens nothing else; the file is for this user alone.
        names: models that it serves.
        log: its log.
    """

    server: Identity
    guard: Identity
    address: Address
    names: tuple[str, ...]
    log: Path


def publish(path: Path, running: Published, *, with_key: bool) -> None:
    """Writes the file; `with_key` only where the key is the server's own: one of the user's stands in no file.

    Raises:
        OSError: it cannot be written.
    """
    told = {
        "format": _FORMAT,
        "server": {"pid": running.server.pid, "born": running.server.born},
        "guard": {"pid": running.guard.pid, "born": running.guard.born},
        "url": running.address.url,
        "key": running.address.key if with_key else None,
        "names": list(running.names),
        "log": str(running.log),
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
    """What a file tells, None where there is none or it is not whole."""
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != _FORMAT:
            return None
        return Published(
            server=Identity(int(told["server"]["pid"]), str(told["server"]["born"])),
            guard=Identity(int(told["guard"]["pid"]), str(told["guard"]["born"])),
            address=Address(str(told["url"]), str(told["key"] or "")),
            names=tuple(str(name) for name in told["names"]),
            log=Path(str(told["log"])),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_running(home: Path, alike: str, names: Sequence[str], key: str | None) -> Published | None:
    """A server whose file's name begins so, if its process runs, is well, and serves these models to this key."""
    for path in sorted(home.glob(f"{alike}-*.json")):
        told = _checked(path, names, key)
        if told is not None:
            return told
    return None


def _checked(path: Path, names: Sequence[str], key: str | None) -> Published | None:
    told = read_published(path)
    if told is None:
        return None
    told = replace(told, address=Address(told.address.url, key or told.address.key))
    if not told.server.lives or not is_healthy(told.address):
        return None
    _, served = served_names(told.address)
    return told if set(names) <= set(served) else None


def all_published(home: Path) -> list[tuple[Path, Published]]:
    """All servers that a folder tells of and that still run."""
    read = [(path, read_published(path)) for path in sorted(home.glob("*.json"))]
    return [(path, told) for path, told in read if told is not None and told.server.lives]


def stop_published(state: Path, running: Published) -> None:
    """Ends a server that its file tells of, and removes the file, first: so its owner knows that it was meant."""
    state.unlink(missing_ok=True)
    stop_by_identity(running.server, running.guard)
