"""What a command in a sandbox may read, write, reach and use."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["bubblewrap", "landlock", "docker", "podman", "unsafe"]

MAPPED: frozenset[Kind] = frozenset({"bubblewrap", "docker", "podman"})
"""Sandboxes in which the work folder and mounts are at paths other than those outside."""

IMAGE = "python:3.13-slim"
"""The image of a container, unless another one is declared."""

WORK = "/sandbox"
"""Where a command sees its work folder, so that no path of this machine is in what it prints.

No machine has a folder of this name, which would hide what is mounted from it.
"""


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
    def writable(self) -> tuple[Path, ...]:
        """The folders that it may write."""
        return (self.folder, *(mount.source for mount in self.mounts if mount.writable))
