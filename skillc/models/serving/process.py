"""A server's process under its guard, and its log."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from skillc.errors import SkillcError
from skillc.models.failures import scrub
from skillc.models.guard import guard_command, is_dead, stat_of

GRACE = 15.0
"""Seconds between SIGTERM and SIGKILL."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A process as no other is, its number used again or not. `born` is the system's own word for when it began."""

    pid: int
    born: str

    @property
    def lives(self) -> bool:
        """Whether this very process is still there."""
        return born(self.pid) == self.born


class ServerProcess:
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
        guard = guard_command("run", str(GRACE), *command)
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
        """End it and wait until nothing of it runs."""
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
    """End a server that another process started, and wait until it is gone."""
    if guard.lives:
        with contextlib.suppress(ProcessLookupError):
            os.kill(guard.pid, signal.SIGTERM)
        last = time.monotonic() + GRACE + 10
        while guard.lives and time.monotonic() < last:
            time.sleep(0.05)
    kill_group(server)


def kill_group(server: Identity) -> None:
    """Kill a server and its children, if it is still there."""
    if server.lives:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(server.pid, signal.SIGKILL)


def identify(pid: int) -> Identity:
    """A running process; one that is gone already is like no other."""
    return Identity(pid, born(pid) or "gone")


def born(pid: int) -> str | None:
    """The start time of a process as the system counts; None for one that is gone or a zombie."""
    fields = stat_of(pid)
    if fields is None:
        return None if Path("/proc/self/stat").exists() else _born_by_ps(pid)
    return None if is_dead(fields) else fields[19]


def _born_by_ps(pid: int) -> str | None:
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True)
    state, _, began = done.stdout.strip().partition(" ")
    return began.strip() or None if done.returncode == 0 and not state.startswith("Z") else None


if sys.platform != "win32":
    import fcntl

_SHOWN = 12
_KEPT = 8
_READ = 256 * 1024
_WIDTH = 160
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# `(EngineCore pid=7) INFO 11-21 11:15:16 [core.py:133] Initializing ...`
_HEAD = re.compile(
    r"^(?:\([^)]*pid=\d+\)\s*)?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):?\s+)?(?:[\d-]+ [\d:]+ \[[^\]]*\]\s*)?"
)
_CAUSE = re.compile(r"(?:^|\s)\w*(?:Error|Exception|error):\s+\S")


def new_log(home: Path, name: str) -> tuple[Path, IO[bytes]]:
    """Create the log of one server process, readable by this user alone, and remove old ones.

    The file is locked while a process holds it open, the server included, so that no log in use is removed.

    Args:
        home: the folder of logs.
        name: the server's name; the log is `NAME.1.log`, or the next number that is free.

    Raises:
        OSError: it cannot be written.
    """
    home.mkdir(parents=True, exist_ok=True)
    logs = sorted((number, path) for path in home.glob(f"{name}.*.log") if (number := _number(path)) is not None)
    number = logs[-1][0] + 1 if logs else 1
    while True:
        path = home / f"{name}.{number}.log"
        try:
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            break
        except FileExistsError:
            number += 1
    fcntl.flock(made, fcntl.LOCK_SH)
    for _, old in logs[:-_KEPT]:
        _remove_unused(old)
    return path, os.fdopen(made, "wb")


def _number(path: Path) -> int | None:
    digits = path.stem.rpartition(".")[2]
    return int(digits) if digits.isdecimal() else None


def _remove_unused(path: Path) -> None:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    except OSError:
        # A server writes to it, or another process has removed it.
        return


def tail(path: Path, secrets: Sequence[str]) -> str:
    """The end of a log, indented, without secrets; in front of it the last named error, where that is further up."""
    lines = _lines(path)
    shown = lines[-_SHOWN:]
    causes = [line for line in lines[:-_SHOWN] if _CAUSE.search(line)]
    if causes and not any(_CAUSE.search(line) for line in shown):
        shown = [causes[-1], "...", *shown]
    return "\n".join(f"    {scrub(line, secrets)[:_WIDTH]}" for line in shown) or "    (the log is empty)"


def latest(path: Path) -> str:
    """The last line with words, for a line of progress."""
    for line in reversed(_lines(path)):
        told = _HEAD.sub("", line).strip()
        if sum(letter.isalpha() for letter in told) > 3:
            return scrub(told, [])[:80]
    return ""


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _READ))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.rstrip() for line in re.split(r"[\r\n]+", _ANSI.sub("", text)) if line.strip()]
