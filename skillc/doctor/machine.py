"""The machine: its GPUs, its memory, the room on its disks."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_MIB = 1024**2
_QUERY = ("--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits")
_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU; bytes."""

    name: str
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class Memory:
    """The machine's own memory, or what of it this process may use; bytes."""

    total: int
    free: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What a server may use; `memory` is None where nobody says it."""

    gpus: tuple[Gpu, ...]
    memory: Memory | None


def machine_here() -> Machine:
    """This machine."""
    return Machine(gpus(), memory())


def gpus() -> tuple[Gpu, ...]:
    """The GPUs that `nvidia-smi` lists; none where there is no such command."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ()
    try:
        done = subprocess.run([command, *_QUERY], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return read_gpus(done.stdout)


def read_gpus(text: str) -> tuple[Gpu, ...]:
    """The GPUs in what `nvidia-smi` printed; a line that cannot be read is left out."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.rsplit(",", 2)]
        if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
            found.append(Gpu(parts[0], int(parts[1]) * _MIB, int(parts[2]) * _MIB))
    return tuple(found)


def memory(meminfo: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> Memory | None:
    """The memory of the machine, or of the container where that has less; None where nobody says it."""
    whole = _meminfo(meminfo) or _sysconf()
    if whole is None:
        return None
    most, used = _number(group / "memory.max"), _number(group / "memory.current")
    if most is None or most >= whole.total:
        return whole
    return Memory(most, min(whole.free, max(0, most - (used or 0))))


def free_disk(folder: Path) -> int | None:
    """Bytes free where a folder is, or where it would be made; None where nobody says it."""
    for here in (folder, *folder.absolute().parents):
        try:
            return shutil.disk_usage(here).free
        except OSError:
            continue
    return None


def _meminfo(path: Path) -> Memory | None:
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    kilobytes = {name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines) if rest.split()}
    total, free = kilobytes.get("MemTotal", ""), kilobytes.get("MemAvailable", "")
    return Memory(int(total) * 1024, int(free) * 1024) if total.isdigit() and free.isdigit() else None


def _sysconf() -> Memory | None:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return Memory(total, total)


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdigit() else None
