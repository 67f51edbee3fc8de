"""TCP ports of this machine: whether one is free, and which process listens on it."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
