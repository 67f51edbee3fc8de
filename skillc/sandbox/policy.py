"""What a command in a sandbox may read, write, reach and use, and what a program declares of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.processes.command import End

Kind = Literal["bubblewrap", "landlock", "docker", "podman", "unsafe"]

MAPPED: frozenset[Kind] = frozenset({"bubblewrap", "docker", "podman"})
"""Sandboxes in which the work folder and mounts are at paths other than those outside."""

IMAGE = "python:3.13-slim"
"""The image of a container, unless another one is declared."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders with the programs and libraries of the system; without them nothing starts."""

WORK = "/sandbox"
"""Where a command sees its work folder, so that no path of this machine is in what it prints.

No machine has a folder of this name, which would hide what is mounted from it.
"""


_EXCEEDED: Mapping[End, str] = {
    "timeout": "it ran longer than {time:g} s",
    "output": "it printed too much",
    "memory": "it used more memory than {memory:,} bytes",
    "processes": "it ran more than {processes} processes",
    "disk": "it wrote more than {disk:,} bytes",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one command.

    Attributes:
        time: seconds.
        memory: bytes, of all its processes together.
        processes: at any moment.
        file_size: bytes of one file.
        disk: bytes by which the folders that it may write can grow.
        output: bytes on standard output.
    """

    time: float = 60.0
    memory: int = 2 * 2**30
    processes: int = 64
    file_size: int = 256 * 2**20
    disk: int = 2**30
    output: int = 16 * 2**20

    def exceeded(self, why: End) -> str:
        """Return which limit stopped a command, and its value; empty if it ended by itself."""
        sentence = _EXCEEDED.get(why, "")
        return sentence.format(time=self.time, memory=self.memory, processes=self.processes, disk=self.disk)

    @property
    def temporary(self) -> int:
        """Bytes of a folder in memory, such as `/tmp`."""
        return min(256 * 2**20, self.disk)


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of this machine inside a sandbox.

    Attributes:
        source: its path here.
        target: its path in the sandbox; None is the same path.
    """

    source: Path
    target: str | None = None
    writable: bool = False

    @property
    def path(self) -> str:
        """Its path in the sandbox."""
        return self.target or str(self.source)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a command may do. Everything else of this machine is out of its reach.

    Attributes:
        folder: the work folder, which it may write.
        mounts: further folders, such as an interpreter or a home.
        hosts: addresses `host:port` that it may connect to.
        image: what a container contains besides; other sandboxes have the programs of this machine.
    """

    folder: Path
    mounts: tuple[Mount, ...] = ()
    hosts: tuple[str, ...] = ()
    limits: Limits = field(default=Limits())
    image: str = IMAGE

    @property
    def mapped(self) -> tuple[Mount, ...]:
        """The mounts, with that of the work folder."""
        return (*self.mounts, Mount(self.folder, WORK, writable=True))

    @property
    def writable(self) -> tuple[Path, ...]:
        """The folders that it may write."""
        return (self.folder, *(mount.source for mount in self.mounts if mount.writable))


@dataclass(frozen=True, slots=True)
class DeclaredSandbox:
    """The setting `sandbox` of a program: `sandbox = docker { image = "python:3.13-slim"; memory = 1 GB }`.

    Attributes:
        kind: None is the best that works here.
        image: that of a container.
    """

    kind: Kind | None
    image: str
    limits: Limits

    def policy(self, folder: Path, mounts: Sequence[Mount] = (), hosts: Sequence[str] = ()) -> Policy:
        """Return the policy of a command with the declared image and limits."""
        return Policy(folder, tuple(mounts), tuple(hosts), self.limits, self.image)


def declared_sandbox(setting: JsonValue, limits: Limits | None = None) -> DeclaredSandbox:
    """Read the checked setting of a plan.

    Args:
        setting: a word, a mapping of the word `kind` and the settings of its block, or None without the setting.
        limits: those that the setting does not name.
    """
    own: Mapping[str, Any] = setting if isinstance(setting, dict) else {"kind": setting}
    limits = limits or Limits()
    disk = int(own.get("disk", limits.disk))
    return DeclaredSandbox(
        kind=cast(Kind | None, own.get("kind")),
        image=str(own.get("image", IMAGE)),
        limits=replace(
            limits,
            time=float(own.get("time", limits.time)),
            memory=int(own.get("memory", limits.memory)),
            processes=int(own.get("processes", limits.processes)),
            # One file may use all of it.
            file_size=disk,
            disk=disk,
        ),
    )
