"""The machine: its GPUs, its memory, the free space on its disks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.models.serving.installed import ask_gpus

_MIB = 1024**2


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU; memory in bytes."""

    name: str
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class Memory:
    """The machine's memory, or the part that this process may use; in bytes."""

    total: int
    free: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What a server may use; `memory` is None if it is unknown."""

    gpus: tuple[Gpu, ...]
    memory: Memory | None


def machine_here() -> Machine:
    """Describe this machine."""
    return Machine(gpus(), memory())


def gpus() -> tuple[Gpu, ...]:
    """Return the GPUs that `nvidia-smi` lists; none without that command."""
    return read_gpus(ask_gpus("name,memory.total,memory.free"))


def read_gpus(text: str) -> tuple[Gpu, ...]:
    """Return the GPUs in the output of `nvidia-smi`; a line that cannot be read is skipped."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.rsplit(",", 2)]
        if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
            found.append(Gpu(parts[0], int(parts[1]) * _MIB, int(parts[2]) * _MIB))
    return tuple(found)


def memory(meminfo: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> Memory | None:
    """Return the memory of the machine, or of the container if that has less; None if unknown."""
    whole = _meminfo(meminfo) or _sysconf()
    if whole is None:
        return None
    most, used = _number(group / "memory.max"), _number(group / "memory.current")
    if most is None or most >= whole.total:
        return whole
    return Memory(most, min(whole.free, max(0, most - (used or 0))))


def free_disk(folder: Path) -> int | None:
    """Return the free bytes on the disk of a folder, which need not exist; None if unknown."""
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
