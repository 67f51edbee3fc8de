"""Finds out which sandbox works on this machine, and runs commands in it.

Bubblewrap puts a command into separate namespaces: no network, no other processes, no files but those mounted. Where
these are refused, `confined` runs it under Landlock and seccomp.
"""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path

from skillc.errors import SkillcError
from skillc.processes.command import CommandResult, last_line
from skillc.processes.command import run as run_command
from skillc.processes.guard import MARK
from skillc.sandbox.container import ENGINES, problem_of_engine, run_in_container
from skillc.sandbox.hosts import problem_of_hosts, reaching_hosts
from skillc.sandbox.monitor import monitor_of
from skillc.sandbox.policy import IMAGE, MAPPED, SYSTEM, WORK, Kind, Policy

CHOSEN: tuple[Kind, ...] = ("bubblewrap", "landlock")
"""Sandboxes that are chosen without being declared, in the order of preference."""

# What programs read of /etc: the linker, certificates, the time zone, types of files, the names of users, services and
# this machine.
_ETC = tuple(
    f"/etc/{name}"
    for name in (
        *("alternatives", "ca-certificates", "group", "hosts", "ld.so.cache", "localtime"),
        *("mime.types", "nsswitch.conf", "passwd", "pki", "ssl"),
    )
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/proc/self")
_PROBE_SECONDS = 20


def choose(declared: Kind | None = None, image: str = IMAGE, *, hosts: bool = False) -> Kind:
    """Return the declared sandbox, or the best one that works on this machine and needs no engine of containers.

    A declared one is never replaced. `hosts`: whether commands must reach named hosts.

    Raises:
        SkillcError: it does not work here, or none does.
    """
    if declared == "unsafe":
        return declared
    problems = {kind: problem_of(kind, image, hosts) for kind in ([declared] if declared else CHOSEN)}
    found = next((kind for kind, problem in problems.items() if problem is None), None)
    if found is None:
        if declared is not None:
            raise SkillcError(f"the sandbox `{declared}` does not work here: {problems[declared]}", hint=_fix(declared))
        why = "; ".join(f"{kind}: {problem}" for kind, problem in problems.items())
        raise SkillcError(f"no sandbox works on this machine ({why})", hint=_fix("bubblewrap"))
    return found


def _fix(kind: Kind) -> str:
    needs = {"landlock": "sandlock", "docker": "Docker and its image", "podman": "Podman and its image"}
    return (
        f"install {needs.get(kind, kind)}, declare another sandbox, "
        "or declare `sandbox = unsafe` to run commands with your own rights"
    )


@cache
def problem_of(kind: Kind, image: str = IMAGE, hosts: bool = False) -> str | None:
    """Run a program in a sandbox and return why it does not work here, None if it does.

    `hosts`: whether a container must reach named hosts; the other sandboxes do.
    """
    tools = sys.platform == "linux" and all(shutil.which(name) for name in ("bwrap", "prlimit"))
    if kind == "bubblewrap" and not tools:
        return "`bwrap` or `prlimit` is not installed"
    if kind == "landlock" and importlib.util.find_spec("sandlock") is None:
        return "`sandlock` is not installed"
    with tempfile.TemporaryDirectory(prefix="skillc-") as folder:
        policy = Policy(Path(folder).resolve(), image=image)
        if kind in ENGINES:
            return problem_of_engine(kind, policy) or (problem_of_hosts(kind, policy) if hosts else None)
        line = _command_line(kind, policy, ["/usr/bin/env", "true"])
        try:
            done = subprocess.run(line, cwd=folder, capture_output=True, timeout=_PROBE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return str(problem)
    return (last_line(done.stderr) or f"status {done.returncode}") if done.returncode else None


async def run(
    kind: Kind, policy: Policy, command: Sequence[str], *, environment: Mapping[str, str], stdin: bytes | None = None
) -> CommandResult:
    """Run a command under a policy, in a sandbox that `choose` returned, with these variables only.

    However it ends, none of its processes is left. In its output, the work folder is `WORK`.

    Raises:
        OSError: it cannot be started.
    """
    needs_proxy = kind in MAPPED and policy.hosts
    given = (policy, command, environment)
    async with reaching_hosts(kind, *given) if needs_proxy else nullcontext(given) as (policy, command, environment):
        if kind in ENGINES:
            return await run_in_container(kind, policy, command, environment=environment, stdin=stdin)
        result = await run_command(
            _command_line(kind, policy, command),
            folder=policy.folder,
            environment=environment,
            stdin=stdin,
            timeout=policy.limits.time,
            most=policy.limits.output,
            grace=0.0,
            monitor=monitor_of(policy),
        )
    if kind == "bubblewrap":
        return result
    own, shown = str(policy.folder).encode(), WORK.encode()
    stdout, stderr = (output.replace(own, shown) for output in (result.stdout, result.stderr))
    return CommandResult(result.why, result.status, stdout, stderr)


def _command_line(kind: Kind, policy: Policy, command: Sequence[str]) -> list[str]:
    if kind == "bubblewrap":
        return _bubblewrap_line(policy, command)
    if kind == "landlock":
        rights = {
            "folder": str(policy.folder),
            "writable": [*map(str, policy.writable), "/dev/null"],
            "readable": [
                *(path for path in (*SYSTEM, *_ETC, *_DEVICES) if Path(path).exists()),
                *(str(mount.source) for mount in policy.mounts),
            ],
            "memory": policy.limits.memory,
            "processes": policy.limits.processes,
            "hosts": list(policy.hosts),
        }
        script = str(Path(__file__).with_name("confined.py"))
        return [sys.executable, "-I", script, json.dumps(rights), *command]
    return list(command)


def _bubblewrap_line(policy: Policy, command: Sequence[str]) -> list[str]:
    """Return the command line of bubblewrap.

    All processes die with the first one, `bwrap`, whose environment is theirs: on a command line every user of the
    machine could read it. `prlimit` bounds each process by itself; the monitor bounds all of them.
    """
    limits = policy.limits
    options = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    options += ["--cap-drop", "ALL", "--hostname", "sandbox", "--unsetenv", MARK]
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    options += [word for path in _ETC for word in ("--ro-bind-try", path, path)]
    options += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/tmp", "/dev/shm"):
        options += ["--size", str(limits.temporary), "--tmpfs", folder]
    for mount in policy.mapped:
        options += ["--bind" if mount.writable else "--ro-bind", str(mount.source), mount.path]
    bounds = [f"--cpu={math.ceil(limits.time) + 1}", f"--fsize={limits.file_size}", "--core=0"]
    return ["prlimit", *bounds, "--", "bwrap", *options, "--chdir", WORK, "--", *command]
