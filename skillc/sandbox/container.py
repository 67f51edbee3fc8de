"""Commands in a container, by the command line of Docker or Podman, rootless where the engine is.

The engine starts the processes, so its limits bound them, and a container is removed by its name. An image is never
downloaded: the user decides what comes onto the machine.
"""

from __future__ import annotations

import asyncio
import csv
import io
import math
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from skillc.processes.command import CommandResult, End, last_line
from skillc.processes.command import run as run_command
from skillc.processes.guard import GUARD
from skillc.sandbox.monitor import monitor_of
from skillc.sandbox.policy import WORK, Mount, Policy

Engine = Literal["docker", "podman"]
ENGINES: tuple[Engine, ...] = get_args(Engine)

_KILLED = 137
# What Podman lowers its own limit to. Of a container the engine counts the processes.
_PROCESSES = 2**15
_CLIENT_SECONDS = 60.0
# Start and end of a container, beside the time of its command.
_AROUND_SECONDS = 30.0
# Clocks of this machine and of the engine's may differ.
_STALE_SECONDS = 300.0
# Variables by which a client finds its engine, its configuration and its images.
_OF_CLIENT = (
    *("PATH", "HOME", "USER", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"),
    *("CONTAINER_HOST", "CONTAINER_CONNECTION", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"),
)
ENGINE_FAILED = 125
"""The status of a client whose engine started nothing; a command may have it too."""

LABEL = "skillc"
"""The label of containers; their names contain when they are certainly of no use any more."""

# Ends the command when its time is over, and reports on standard error, after the name of the container, whether memory
# was the cause: some engines do not know. `timeout` itself cannot be the first process: it would leave zombies, and in
# images with BusyBox the command would be the first one, which no signal of the container ends.
_TIMED = """timeout -s KILL "$@"; status=$?
if [ $status = 137 ]; then
  echo "$0" >&2; cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control >&2 2>/dev/null
fi
exit $status"""
_OUT_OF_MEMORY = re.compile(rb"^oom_kill [1-9]", re.M)
_PROBE = """
echo written > probe || exit
{ cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max ||
  cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max; } 2>/dev/null
exit 0
"""


def command_line(
    engine: Engine, policy: Policy, command: Sequence[str], *, name: str, variables: Mapping[str, str], stdin: bool
) -> list[str]:
    """Return the command line that runs a command in a new container, which remains after its end.

    The client must have the variables of the command that are not its own. `stdin`: whether the command has a standard
    input.
    """
    limits = policy.limits
    options = ["--name", name, "--label", LABEL, "--pull", "never", "--network", "none", "--read-only"]
    options += ["--log-driver", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    # Where there are labels of SELinux, the files of this machine have none that a container may read.
    options += ["--security-opt", "label=disable", "--hostname", "sandbox", "--user", _user(engine)]
    # Without swap, or it would be added to the memory.
    options += ["--memory", str(limits.memory), "--memory-swap", str(limits.memory)]
    options += ["--pids-limit", str(limits.processes)]
    options += ["--ulimit", f"fsize={limits.file_size}:{limits.file_size}", "--ulimit", "core=0:0"]
    options += [word for each in _inherited(engine) for word in ("--ulimit", each)]
    options += ["--tmpfs", f"/tmp:rw,exec,size={limits.temporary},mode=1777"]
    options += [word for mount in policy.mapped for word in ("--mount", _mounted(mount))]
    options += ["--workdir", WORK]
    for variable, value in variables.items():
        # Users of the machine can read a command line; a name alone takes the value from the client's environment.
        options += ["--env", variable if variable not in _OF_CLIENT else f"{variable}={value}"]
    options += ["--interactive"] if stdin else []
    # A container outlives a client that is killed, at most by this time.
    timed = ["-c", _TIMED, name, str(math.ceil(limits.time))]
    return [engine, "run", *options, "--entrypoint", "sh", policy.image, *timed, *command]


def _inherited(engine: Engine) -> Iterator[str]:
    """Yield limits of this process: Podman may ask for more, which it does not get inside another container."""
    if engine == "podman" and sys.platform != "win32":
        import resource

        most = {"nofile": (resource.RLIMIT_NOFILE, 2**20), "nproc": (resource.RLIMIT_NPROC, _PROCESSES)}
        for name, (number, ceiling) in most.items():
            soft, hard = (
                ceiling if each == resource.RLIM_INFINITY else min(each, ceiling) for each in resource.getrlimit(number)
            )
            yield f"{name}={soft}:{hard}"


def _mounted(mount: Mount) -> str:
    fields = ["type=bind", f"source={mount.source}", f"target={mount.path}"]
    fields += [] if mount.writable else ["readonly"]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def _user(engine: Engine) -> str:
    """Return the user inside. Root of a rootless engine is the user outside, without any further right."""
    return "0:0" if is_rootless(engine) else f"{os.getuid()}:{os.getgid()}"


@cache
def is_rootless(engine: Engine) -> bool:
    """Return whether the engine runs with the rights of its user; else its users have those of root."""
    asked = "{{.SecurityOptions}}" if engine == "docker" else "{{.Host.Security.Rootless}}"
    done = ask_engine(engine, "info", "--format", asked)
    return "name=rootless" in done.stdout or done.stdout.strip() == "true"


def problem_of_engine(engine: Engine, policy: Policy) -> str | None:
    """Run a program in a container and return why the engine does not work here, None if it does.

    It must write into the work folder, and have the limits of the policy: an engine that may not set them ignores them.
    """
    if shutil.which(engine) is None:
        return f"`{engine}` is not installed"
    info = ask_engine(engine, "info")
    if info.returncode:
        return failure_of(info)
    if ask_engine(engine, "image", "inspect", policy.image).returncode:
        return f"the image `{policy.image}` is not on this machine; run `{engine} pull {policy.image}`"
    remove_stale(engine)
    done = ask_in_container(engine, policy, ["sh", "-c", _PROBE])
    if done.returncode:
        return failure_of(done)
    if not (policy.folder / "probe").is_file():
        return "what a container writes into its work folder does not arrive"
    if done.stdout.split() != [str(policy.limits.memory), str(policy.limits.processes)]:
        return "it ignores limits on memory and processes; it needs control groups of version 2"
    return None


def ask_in_container(
    engine: Engine, policy: Policy, command: Sequence[str], variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a short command in a container, and return what it printed; its variables must be known to clients."""
    name = _new_name(policy)
    try:
        return ask_engine(*command_line(engine, policy, command, name=name, variables=variables or {}, stdin=False))
    finally:
        ask_engine(*_removal(engine, name))


def remove_stale(engine: Engine) -> None:
    """Remove containers that a killed skillc left; those whose time is not over may belong to another one."""
    listed = ask_engine(engine, "ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}")
    for name in listed.stdout.split():
        prefix, _, rest = name.partition("-")
        until = rest.partition("-")[0]
        if prefix == LABEL and until.isdigit() and int(until) < time.time():
            ask_engine(*_removal(engine, name))


async def run_in_container(
    engine: Engine, policy: Policy, command: Sequence[str], *, environment: Mapping[str, str], stdin: bytes | None
) -> CommandResult:
    """Run a command in a container, and remove it, however it ends.

    Raises:
        OSError: it cannot be started.
    """
    name, begun = _new_name(policy), time.monotonic()
    removal = _removal(engine, name)
    GUARD.at_end(name, removal)
    passed_on = {variable: value for variable, value in environment.items() if variable not in _OF_CLIENT}
    try:
        result = await run_command(
            command_line(engine, policy, command, name=name, variables=environment, stdin=stdin is not None),
            folder=policy.folder,
            environment={**passed_on, **client_environment()},
            stdin=stdin,
            timeout=policy.limits.time + _AROUND_SECONDS,
            most=policy.limits.output,
            grace=0.0,
            monitor=monitor_of(policy, processes=False),
        )
        if result.why != "ended" or result.status == 0:
            return result
        return await _explained(engine, name, result, time.monotonic() - begun >= policy.limits.time)
    finally:
        await asyncio.shield(_removed(name, removal))


async def _explained(engine: Engine, name: str, result: CommandResult, late: bool) -> CommandResult:
    """Return a failed result with its cause; an engine's own errors have the status of a command's."""
    asked = "{{.State.Status}} {{.State.OOMKilled}}"
    state = await _client(engine, "inspect", "--type", "container", "--format", asked, name)
    status, _, out_of_memory = state.stdout.decode(errors="replace").strip().partition(" ")
    if state.status or status not in ("exited", "stopped"):
        raise OSError(last_line(result.stderr) or f"`{engine} run` ended with status {result.status}")
    stderr, _, events = result.stderr.partition(name.encode() + b"\n")
    why: End = "ended"
    if result.status == _KILLED and (out_of_memory == "true" or _OUT_OF_MEMORY.search(events)):
        why = "memory"
    elif result.status == _KILLED and late:
        why = "timeout"
    return CommandResult(why, result.status, result.stdout, stderr)


async def _removed(name: str, removal: Sequence[str]) -> None:
    await _client(*removal)
    GUARD.not_at_end(name)


async def _client(*words: str) -> CommandResult:
    folder, environment = Path("/"), client_environment()
    return await run_command(
        words, folder=folder, environment=environment, stdin=None, timeout=_CLIENT_SECONDS, grace=0.0
    )


def ask_engine(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a short command of an engine's client; one that cannot be run has status 1."""
    try:
        return subprocess.run(
            words,
            capture_output=True,
            timeout=_CLIENT_SECONDS,
            check=False,
            text=True,
            errors="replace",
            env=client_environment(),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return subprocess.CompletedProcess(words, 1, "", str(problem))


def _removal(engine: Engine, name: str) -> list[str]:
    # Podman waits ten seconds for a container that runs.
    return [engine, "rm", "--force", "--volumes", *(["--time", "0"] if engine == "podman" else []), name]


def client_environment() -> dict[str, str]:
    """Return the variables by which a client finds its engine."""
    return {name: os.environ[name] for name in _OF_CLIENT if name in os.environ}


def _new_name(policy: Policy) -> str:
    until = time.time() + policy.limits.time + _AROUND_SECONDS + _STALE_SECONDS
    return f"{LABEL}-{math.ceil(until)}-{uuid.uuid4().hex}"


def failure_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return why a client failed: what it reported last, or its status."""
    lines = [line for line in done.stderr.strip().splitlines() if line.strip() and "--help" not in line]
    return lines[-1].removeprefix(f"{done.args[0]}: ") if lines else f"status {done.returncode}"
