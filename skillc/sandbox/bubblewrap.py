"""Commands in separate namespaces, by bubblewrap: no network, no other processes, no files but those mounted."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from skillc.processes.guard import MARK
from skillc.sandbox.policy import WORK, Limits, Policy

# Programs and libraries of the system; without them nothing starts.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# What programs read of /etc: the linker, certificates, the time zone, the names of users, services and this machine.
ETC = tuple(
    f"/etc/{name}"
    for name in (
        *("alternatives", "ca-certificates", "group", "hosts", "ld.so.cache", "localtime"),
        *("nsswitch.conf", "passwd", "pki", "ssl"),
    )
)
_TEMPORARY = 256 * 2**20


def is_installed() -> bool:
    """Return whether the programs that it needs are on `PATH`."""
    return sys.platform == "linux" and all(shutil.which(name) for name in ("bwrap", "prlimit"))


def command_line(policy: Policy, command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command under a policy.

    All its processes die with the first one, `bwrap`, whose environment is theirs: on a command line every user of the
    machine could read it.

    Args:
        policy: what it may do.
        command: the program, by a path inside or found on its `PATH`, and its arguments.
    """
    options = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    options += ["--cap-drop", "ALL", "--hostname", "sandbox", "--unsetenv", MARK]
    for path in _SYSTEM:
        options += _mounted(Path(path))
    for path in ETC:
        options += ["--ro-bind-try", path, path]
    options += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/tmp", "/dev/shm"):
        options += ["--size", str(min(_TEMPORARY, policy.limits.disk)), "--tmpfs", folder]
    for mount in policy.mounts:
        target = mount.target or str(mount.source)
        options += ["--bind" if mount.writable else "--ro-bind", str(mount.source), target]
    options += ["--bind", str(policy.folder), WORK, "--chdir", WORK]
    return [*_limited(policy.limits), "bwrap", *options, "--", *command]


def _mounted(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.is_dir() else []


def _limited(limits: Limits) -> list[str]:
    """Return the start of a command line that bounds each process by itself; `monitor` bounds all of them."""
    return [
        "prlimit",
        f"--cpu={math.ceil(limits.time) + 1}",
        f"--fsize={limits.file_size}",
        "--core=0",
        "--",
    ]
