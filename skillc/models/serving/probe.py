"""TCP ports of this machine, and direct requests to a server: no proxy, short timeouts."""

from __future__ import annotations

import errno
import http.client
import json
import os
import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from skillc.dataclass import dataclass

_LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class Listener:
    """A process that listens on a port."""

    pid: int
    group: int
    command: tuple[str, ...]

    @property
    def label(self) -> str:
        """Its program and number, without the arguments, which may contain secrets."""
        program = Path(self.command[0]).name if self.command else "a process"
        return f"`{program}` (process {self.pid})"


def free_port(host: str) -> int:
    """Return a port that no socket is bound to."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def is_free(host: str, port: int) -> bool:
    """Whether a server can bind the port.

    A plain bind also fails if a server is bound and does not listen yet, and if it would share the port by
    `SO_REUSEPORT`, as vLLM does. It also fails on remaining connections of an ended server, which do not count. Raises
    `OSError` if the port cannot be used for another reason, such as a missing permission.
    """
    if _binds(host, port, reuse=False):
        return True
    leftovers = any(state != _LISTENING for _, state in _sockets(port))
    return leftovers and _binds(host, port, reuse=True)


def listeners(port: int) -> list[Listener]:
    """List the processes that listen on a port, as far as this user may see them; none without `/proc`."""
    inodes = {f"socket:[{inode}]" for inode, state in _sockets(port) if state == _LISTENING}
    return [found for found in map(_listener, _owners(inodes)) if found is not None] if inodes else []


def is_shared(port: int, group: int) -> bool:
    """Whether a process outside of a process group listens on the port."""
    return any(each.group != group for each in listeners(port))


def _binds(host: str, port: int, *, reuse: bool) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
        try:
            probe.bind((host, port))
        except OSError as problem:
            if problem.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def _sockets(port: int) -> Iterator[tuple[str, str]]:
    """Yield inode and state of each TCP socket with this local port."""
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9], fields[3]


def _owners(links: set[str]) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            files = list((process / "fd").iterdir())
        except OSError:
            # It ended, or belongs to another user.
            continue
        if any(_link(file) in links for file in files):
            yield int(process.name)


def _link(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None


def _listener(pid: int) -> Listener | None:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
        return Listener(pid, os.getpgid(pid), tuple(command.removesuffix("\0").split("\0")))
    except OSError:
        return None


_SECONDS = 2.0
_COUNTER = re.compile(r"^vllm:prefix_cache_(queries|hits)(?:_total)?(?:\{[^}]*\})?\s+([0-9.eE+-]+)\s*$", re.MULTILINE)
_REFUSED = (401, 403)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server as litellm takes it, `http://127.0.0.1:8000/v1`, and its key."""

    url: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Prompt tokens that were looked up in a server's prefix cache, and those that were found."""

    queries: int = 0
    hits: int = 0

    def since(self, before: PrefixCache) -> PrefixCache:
        """Return the counts since an earlier reading; all of them if the server reset its counters."""
        if self.queries < before.queries:
            return self
        return PrefixCache(self.queries - before.queries, self.hits - before.hits)


def classify_server(address: Address, names: Iterable[str]) -> Literal["silent", "ours", "foreign"]:
    """Classify the server at an address: the one that was started with this key, another one, or none that is ready.

    Ours refuses callers without the key, and lists its models to callers with it.
    """
    without_key, _ = _get(Address(address.url, ""), "/models")
    status, known = served_names(address)
    if without_key is None or status is None or max(without_key, status) >= 500:
        return "silent"
    if without_key not in _REFUSED or status != 200:
        return "foreign"
    return "ours" if set(names) <= set(known) and _get(address, "/health", beside=True)[0] == 200 else "silent"


def served_names(address: Address) -> tuple[int | None, tuple[str, ...]]:
    """Return the status of `/v1/models`, None without an answer, and the names of its models."""
    status, cards = served_models(address)
    return status, tuple(cards)


def served_models(address: Address) -> tuple[int | None, dict[str, dict[str, Any]]]:
    """Return the status of `/v1/models`, None without an answer, and what it reports of each model, by name.

    vLLM reports the weights (`root`) and, of an adapter, the base model's name (`parent`).
    """
    status, body = _get(address, "/models")
    try:
        cards = {str(model["id"]): dict(model) for model in json.loads(body)["data"]} if status == 200 else {}
    except (ValueError, KeyError, TypeError):
        cards = {}
    return status, cards


def prefix_cache(address: Address) -> PrefixCache | None:
    """Return the counters of `/metrics` over all engines; None without them, as for a server other than vLLM."""
    status, body = _get(address, "/metrics", beside=True)
    if status != 200:
        return None
    totals = {"queries": 0.0, "hits": 0.0}
    counters = _COUNTER.findall(body.decode("utf-8", "replace"))
    for name, value in counters:
        totals[name] += float(value)
    return PrefixCache(int(totals["queries"]), int(totals["hits"])) if counters else None


def is_loopback(url: str) -> bool:
    """Whether an address is plain HTTP on this machine, so that a server can be started there."""
    parts = urlsplit(url)
    return parts.scheme == "http" and (parts.hostname or "") in _LOOPBACK


def port_of(url: str) -> int:
    """Return the port of a URL, by default that of its scheme."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _get(address: Address, path: str, *, beside: bool = False) -> tuple[int | None, bytes]:
    """Return status and body; `beside` requests a path beside `/v1`, not under it."""
    parts = urlsplit(address.url)
    base = parts.path.rstrip("/")
    base = base.removesuffix("/v1") if beside else base
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", port_of(address.url), timeout=_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
        connection.request("GET", f"{base}{path}", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return None, b""
    finally:
        connection.close()
