"""TCP ports of this machine, and direct requests to a server: no proxy, short timeouts."""

from __future__ import annotations

import errno
import http.client
import json
import os
import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

_LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class Listener:
    """A process that listens on a port.

    Attributes:
        pid: its number.
        group: its process group.
        command: its command line.
    """

    pid: int
    group: int
    command: tuple[str, ...]

    @property
    def shown(self) -> str:
        """Its program and number; the arguments may hold secrets."""
        program = Path(self.command[0]).name if self.command else "a process"
        return f"`{program}` (process {self.pid})"


def free_port(host: str) -> int:
    """A port that no socket is bound to."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def is_free(host: str, port: int) -> bool:
    """Whether a server can bind the port.

    A plain bind also fails where a server is bound and does not listen yet, and where it would share the port by
    `SO_REUSEPORT`, as vLLM does. Connections of a server that has ended make it fail too, and don't count.

    Raises:
        OSError: the port cannot be used for another reason, such as missing permission.
    """
    if _binds(host, port, reuse=False):
        return True
    leftovers = any(state != _LISTENING for _, state in _sockets(port))
    return leftovers and _binds(host, port, reuse=True)


def listeners(port: int) -> list[Listener]:
    """The processes that listen on a port, as far as this user may see them; none where there is no `/proc`."""
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
    """Inode and state of each TCP socket with this local port."""
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
            # It has ended, or belongs to another user.
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
    """Tokens of prompts that were looked up in a server's prefix cache, and those that were found."""

    queries: int = 0
    hits: int = 0

    def since(self, before: PrefixCache) -> PrefixCache:
        """The counts since an earlier reading; all of them if the server has restarted its counters."""
        if self.queries < before.queries:
            return self
        return PrefixCache(self.queries - before.queries, self.hits - before.hits)

    def plus(self, other: PrefixCache) -> PrefixCache:
        """Both together."""
        return PrefixCache(self.queries + other.queries, self.hits + other.hits)


def is_healthy(address: Address) -> bool:
    """Whether `/health` answers with status 200."""
    status, _ = _get(address, "/health", beside=True)
    return status == 200


def verdict(address: Address, names: Iterable[str]) -> Literal["silent", "ours", "foreign"]:
    """Whether the server that answers is the one that was started with this key.

    Ours refuses a caller without the key and shows the models to one with it. A server that is not ready is `silent`.
    """
    refused, _ = _get(Address(address.url, ""), "/models")
    status, known = served_names(address)
    if refused is None or status is None or max(refused, status) >= 500:
        return "silent"
    if refused not in _REFUSED or status != 200:
        return "foreign"
    return "ours" if set(names) <= set(known) and is_healthy(address) else "silent"


def served_names(address: Address) -> tuple[int | None, tuple[str, ...]]:
    """The status of `/v1/models`, None without an answer, and the names of the models there."""
    status, body = _get(address, "/models")
    try:
        names = tuple(str(model["id"]) for model in json.loads(body)["data"]) if status == 200 else ()
    except (ValueError, KeyError, TypeError):
        names = ()
    return status, names


def prefix_cache(address: Address) -> PrefixCache | None:
    """The counters of `/metrics` over all engines; None where it has none, as for a server other than vLLM."""
    status, body = _get(address, "/metrics", beside=True)
    if status != 200:
        return None
    found = {"queries": 0.0, "hits": 0.0}
    counters = _COUNTER.findall(body.decode("utf-8", "replace"))
    for name, value in counters:
        found[name] += float(value)
    return PrefixCache(int(found["queries"]), int(found["hits"])) if counters else None


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine, and plain HTTP, so that a server can be started there."""
    parts = urlsplit(url)
    return parts.scheme == "http" and (parts.hostname or "") in _LOOPBACK


def port_of(url: str) -> int:
    """The port of an address."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _get(address: Address, path: str, *, beside: bool = False) -> tuple[int | None, bytes]:
    """Status and body; `beside` asks for a path beside `/v1`, not under it."""
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
