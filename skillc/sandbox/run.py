"""Finds out which sandbox works on this machine, and runs commands in it."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from skillc.errors import SkillcError
from skillc.processes.command import CommandResult, last_line
from skillc.processes.command import run as run_command
from skillc.sandbox import bubblewrap
from skillc.sandbox.container import ENGINES, Engine, ask_in_container, failure_of, problem_of_engine, run_in_container
from skillc.sandbox.hosts import gateway, loopback_ports, proxy_environment, proxy_port
from skillc.sandbox.interpreter import Interpreter, interpreter_at
from skillc.sandbox.monitor import monitor_of
from skillc.sandbox.policy import IMAGE, MAPPED, WORK, Kind, Mount, Policy

CHOSEN: tuple[Kind, ...] = ("bubblewrap", "landlock")
"""Sandboxes that are chosen without being declared, in the order of preference."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", *bubblewrap.ETC)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/proc/self")
_PROBE_SECONDS = 20
_INSIDE = "/run/skillc"


def choose(declared: Kind | None = None, image: str = IMAGE, *, hosts: bool = False) -> Kind:
    """Return the declared sandbox, or the best one that works on this machine. A declared one is never replaced.

    Args:
        declared: None for any that needs no engine.
        image: that of a container.
        hosts: whether commands must reach named hosts.

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

    Args:
        kind: a sandbox.
        image: that of a container.
        hosts: whether a container must reach named hosts; the other sandboxes do.
    """
    if kind == "bubblewrap" and not bubblewrap.is_installed():
        return "`bwrap` or `prlimit` is not installed"
    if kind == "landlock" and importlib.util.find_spec("sandlock") is None:
        return "`sandlock` is not installed"
    with tempfile.TemporaryDirectory(prefix="skillc-") as folder:
        policy = Policy(Path(folder).resolve(), image=image)
        if kind in ENGINES:
            return problem_of_engine(kind, policy) or (_problem_of_hosts(kind, policy) if hosts else None)
        line = _command_line(kind, policy, ["/usr/bin/env", "true"])
        try:
            done = subprocess.run(line, cwd=folder, capture_output=True, timeout=_PROBE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return str(problem)
    return (last_line(done.stderr) or f"status {done.returncode}") if done.returncode else None


def _problem_of_hosts(engine: Engine, policy: Policy) -> str | None:
    """Connect a container to a socket of this machine, and return why that fails, None if it does not."""
    why = "a container does not reach named hosts here"
    try:
        interpreter = interpreter_at(_INSIDE)
    except (OSError, subprocess.SubprocessError) as problem:
        return f"{why}: {problem}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(policy.folder / "hosts"))
        server.listen()
        code = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        done = ask_in_container(
            engine, replace(policy, mounts=interpreter.mounts), [*interpreter.command, "-c", code, f"{WORK}/hosts"]
        )
    return f"{why}: {failure_of(done)}" if done.returncode else None


def work_folder(kind: Kind, policy: Policy) -> str:
    """Return the path at which a command sees its work folder."""
    return WORK if kind in MAPPED else str(policy.folder)


async def run(
    kind: Kind, policy: Policy, command: Sequence[str], *, environment: Mapping[str, str], stdin: bytes | None = None
) -> CommandResult:
    """Run a command under a policy; however it ends, none of its processes is left.

    Args:
        kind: a sandbox that `choose` returned.
        policy: what the command may do.
        command: the program and its arguments.
        environment: all variables of the command.
        stdin: its standard input, None for none.

    Returns:
        The result, in whose output the work folder is `WORK`.

    Raises:
        OSError: it cannot be started.
    """
    async with _reaching_hosts(kind, policy, command, environment) as (policy, command, environment):
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


@asynccontextmanager
async def _reaching_hosts(
    kind: Kind, policy: Policy, command: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[tuple[Policy, Sequence[str], Mapping[str, str]]]:
    """Give a command in a namespace without a network the addresses of its policy."""
    if kind not in MAPPED or not policy.hosts:
        yield policy, command, environment
        return
    interpreter = interpreter_at(_INSIDE) if kind in ENGINES else _interpreter()
    async with gateway(policy.hosts) as path:
        mounts = (
            *interpreter.mounts,
            Mount(Path(__file__).with_name("forward.py"), f"{_INSIDE}/forward.py"),
            Mount(path, f"{_INSIDE}/hosts", writable=True),
        )
        start = [*interpreter.command, f"{_INSIDE}/forward.py", f"{_INSIDE}/hosts"]
        ports = ",".join(map(str, loopback_ports(policy.hosts)))
        yield (
            replace(policy, mounts=(*policy.mounts, *mounts)),
            [*start, str(proxy_port(policy.hosts)), ports, *command],
            {**environment, **proxy_environment(policy.hosts)},
        )


def _interpreter() -> Interpreter:
    """Return skillc's own Python for a sandbox with the programs of this machine."""
    program = Path(sys.executable).resolve()
    mounts = () if program.is_relative_to("/usr") else (Mount(Path(sys.base_prefix).resolve()),)
    return Interpreter(mounts, (str(program), "-I", "-S"))


def _command_line(kind: Kind, policy: Policy, command: Sequence[str]) -> list[str]:
    if kind == "bubblewrap":
        return bubblewrap.command_line(policy, command)
    if kind == "landlock":
        rights = {
            "folder": str(policy.folder),
            "writable": [*map(str, policy.writable), "/dev/null"],
            "readable": [
                *(path for path in (*_SYSTEM, *_DEVICES) if Path(path).exists()),
                *(str(mount.source) for mount in policy.mounts),
            ],
            "memory": policy.limits.memory,
            "processes": policy.limits.processes,
            "hosts": list(policy.hosts),
        }
        script = str(Path(__file__).with_name("confined.py"))
        return [sys.executable, "-I", script, json.dumps(rights), *command]
    return list(command)
