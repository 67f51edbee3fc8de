"""Bounds on all processes of a command together, which the limits of the system set for one process only."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

from skillc.processes.command import End, Monitor
from skillc.processes.guard import stat_of
from skillc.sandbox.policy import Policy

_POLL = 0.1
"""Seconds between two looks at the processes; all monitors share them."""

_DISK_POLL = 3
"""Looks at the processes between two at the folders."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


def monitor_of(policy: Policy, *, processes: bool = True) -> Monitor:
    """Return a monitor that ends a command of this policy when it passes a limit.

    `processes`: whether memory and processes are counted too, or something else bounds them.
    """
    limits = policy.limits

    async def watch(pid: int) -> End:
        before = used_disk(policy.writable)
        tree = ProcessTree(pid) if processes else None
        for look in itertools.count():
            await asyncio.sleep(_POLL)
            number, memory = tree.usage() if tree is not None else (0, 0)
            if number > limits.processes:
                return "processes"
            if memory > limits.memory:
                return "memory"
            if look % _DISK_POLL == 0 and await asyncio.to_thread(used_disk, policy.writable) > before + limits.disk:
                return "disk"
        raise AssertionError

    return watch


class ProcessTree:
    """A process with its descendants, and whatever is in a namespace that one of them made."""

    def __init__(self, pid: int) -> None:
        self._known = {pid}
        self._namespaces: set[str] = set()
        self._own = _namespace(os.getpid())

    def usage(self) -> tuple[int, int]:
        """Return the number of the processes, and the bytes of memory that they hold together."""
        parents = _SNAPSHOT.parents()
        self._known &= parents.keys()
        while found := {
            pid for pid, parent in parents.items() if pid not in self._known and self._belongs(pid, parent)
        }:
            self._known |= found
            self._namespaces |= {_namespace(pid) for pid in found} - {self._own, ""}
        return len(self._known), sum(map(_memory, self._known))

    def _belongs(self, pid: int, parent: int) -> bool:
        # An orphan's parent is the first process of its namespace, or one that adopts orphans.
        return parent in self._known or (parent <= 1 and _namespace(pid) in self._namespaces)


class _Snapshot:
    """The parent of each process, read at most once in each half of `_POLL`, however many monitors ask."""

    def __init__(self) -> None:
        self._read_at = -math.inf
        self._parents: dict[int, int] = {}

    def parents(self) -> dict[int, int]:
        if time.monotonic() - self._read_at > _POLL / 2:
            pids = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
            self._parents = {pid: int(fields[1]) for pid in pids if (fields := stat_of(pid))}
            self._read_at = time.monotonic()
        return self._parents


_SNAPSHOT = _Snapshot()
_LEAST_FILE = 4096
"""Bytes that a file counts at least: empty ones without end would use up the disk's entries."""


def used_disk(folders: Sequence[Path]) -> int:
    """Return the bytes of the files and folders below folders; links are not followed."""
    total, waiting = 0, [str(folder) for folder in folders]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    total += max(_LEAST_FILE, entry.stat(follow_symlinks=False).st_blocks * 512)
        except OSError:
            # It was removed meanwhile, or its owner closed it to us.
            continue
    return total


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115
    except OSError:
        return ""


def _memory(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0
