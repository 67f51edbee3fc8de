"""A server's process, behind the guard that ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillc.errors import SkillcError
from skillc.models.serving.log import new_log

GRACE = 15.0
"""Seconds between SIGTERM and SIGKILL."""
_GUARD = Path(__file__).with_name("guard.py")


@dataclass(frozen=True, slots=True)
class Identity:
    """A process as no other is, its number used again or not. `born` is the system's own word for when it began."""

    pid: int
    born: str

    @property
    def lives(self) -> bool:
        """Whether this very process is still there."""
        return born(self.pid) == self.born


class Process:
    """One server under its guard. It ends with this process until it is released.

    Args:
        command: its command line.
        environment: all of its variables.
        folder: its working directory.
        home: the folder of logs.
        name: the beginning of its log's name.

    Attributes:
        log: the file that takes its output.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, home: Path, name: str
    ) -> None:
        guard = [sys.executable, "-I", "-S", str(_GUARD), str(GRACE), *command]
        self.log, output = new_log(home, name)
        with output:
            self._guard = subprocess.Popen(
                guard,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
        assert self._guard.stdout is not None
        with self._guard.stdout as told:
            first = told.readline().strip()
        if not first:
            self._guard.wait()
            raise SkillcError(f"`{command[0]}` cannot be started", hint=f"its log is `{self.log}`")
        self.server = identify(int(first))
        self.guard = identify(self._guard.pid)

    def ended(self) -> int | None:
        """The status it ended with, None while it runs."""
        return self._guard.poll()

    def release(self) -> None:
        """Let it survive this process."""
        assert self._guard.stdin is not None
        with contextlib.suppress(OSError):
            self._guard.stdin.write(b"\n")
            self._guard.stdin.close()

    def stop(self) -> None:
        """Ends it and waits until nothing of it runs."""
        assert self._guard.stdin is not None
        with contextlib.suppress(OSError):
            self._guard.stdin.close()
        self._guard.terminate()
        try:
            self._guard.wait(GRACE + 10)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()
        # A guard that was killed could not end its server.
        kill_group(self.server)


def stop_by_identity(server: Identity, guard: Identity) -> None:
    """Ends a server that another process started, and waits until it is gone."""
    if guard.lives:
        with contextlib.suppress(ProcessLookupError):
            os.kill(guard.pid, signal.SIGTERM)
        last = time.monotonic() + GRACE + 10
        while guard.lives and time.monotonic() < last:
            time.sleep(0.05)
    kill_group(server)


def kill_group(server: Identity) -> None:
    """Kills a server and its children, if it is still there."""
    if server.lives:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(server.pid, signal.SIGKILL)


def identify(pid: int) -> Identity:
    """A running process; one that is gone already is like no other."""
    return Identity(pid, born(pid) or "gone")


def born(pid: int) -> str | None:
    """When a process began, as the system counts; None where there is none, or where only its status is left."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None if Path("/proc/self/stat").exists() else _born_by_ps(pid)
    # The name of the program stands in brackets and may hold anything.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _born_by_ps(pid: int) -> str | None:
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True)
    state, _, began = done.stdout.strip().partition(" ")
    return began.strip() or None if done.returncode == 0 and not state.startswith("Z") else None
