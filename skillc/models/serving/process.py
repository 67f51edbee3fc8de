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
from pathlib import Path
from typing import IO

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.models.failures import scrub
from skillc.processes.guard import SECRETS, guard_command, is_dead, stat_of
from skillc.redaction import NOTHING, Redactor

if sys.platform != "win32":
    import fcntl

GRACE = 15.0
"""Seconds between SIGTERM and SIGKILL."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process, even after its number is reused. `born` is its start time as the system reports it."""

    pid: int
    born: str

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return _start_time(self.pid) == self.born


class ServerProcess:
    """One server under its guard, which ends it with this process until it is released.

    `log`, the file with its output without the secrets of `hide`, is in the folder `home` and begins with `name`.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        home: Path,
        name: str,
        hide: Redactor = NOTHING,
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
                env={**environment, SECRETS: hide.as_text()},
                start_new_session=True,
            )
        assert self._guard.stdout is not None
        with self._guard.stdout as output_of_guard:
            pid = output_of_guard.readline().strip()
        if not pid:
            self._guard.wait()
            raise SkillcError(f"`{command[0]}` cannot be started", hint=f"its log is `{self.log}`")
        self.server = identify(int(pid))
        self.guard = identify(self._guard.pid)

    def ended(self) -> int | None:
        """Return its exit status; None while it runs."""
        return self._guard.poll()

    def release(self) -> None:
        """Let it survive this process."""
        assert self._guard.stdin is not None
        with contextlib.suppress(OSError):
            self._guard.stdin.write(b"\n")
            self._guard.stdin.close()

    def stop(self) -> None:
        """End it and wait until none of it runs."""
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
        _kill_group(self.server)


def stop_process(server: ProcessIdentity, guard: ProcessIdentity) -> None:
    """End a server that another process started, and wait until it is gone."""
    if guard.is_alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(guard.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE + 10
        while guard.is_alive and time.monotonic() < deadline:
            time.sleep(0.05)
    _kill_group(server)


def _kill_group(server: ProcessIdentity) -> None:
    if server.is_alive:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(server.pid, signal.SIGKILL)


def identify(pid: int) -> ProcessIdentity:
    """Return the identity of a running process; that of an ended one equals no other."""
    return ProcessIdentity(pid, _start_time(pid) or "gone")


def _start_time(pid: int) -> str | None:
    """Return the start time of a process as the system reports it; None for an ended one or a zombie."""
    fields = stat_of(pid)
    if fields is None:
        return None if Path("/proc/self/stat").exists() else _start_time_by_ps(pid)
    return None if is_dead(fields) else fields[19]


def _start_time_by_ps(pid: int) -> str | None:
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True)
    state, _, start = done.stdout.strip().partition(" ")
    return start.strip() or None if done.returncode == 0 and not state.startswith("Z") else None


_TAIL_LINES = 12
_LOGS_KEPT = 8
_TAIL_BYTES = 256 * 1024
_WIDTH = 160
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# `(EngineCore pid=7) INFO 11-21 11:15:16 [core.py:133] Initializing ...`
_HEAD = re.compile(
    r"^(?:\([^)]*pid=\d+\)\s*)?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):?\s+)?(?:[\d-]+ [\d:]+ \[[^\]]*\]\s*)?"
)
_CAUSE = re.compile(r"(?:^|\s)\w*(?:Error|Exception|error):\s+\S")


def new_log(home: Path, name: str) -> tuple[Path, IO[bytes]]:
    """Create the log of one server process, `NAME.1.log` or the next number, for this user alone; remove old logs.

    The file is locked while a process has it open, the server included, so that no log in use is removed. Raises
    `OSError` if it cannot be written.
    """
    home.mkdir(parents=True, exist_ok=True)
    logs = sorted((number, path) for path in home.glob(f"{name}.*.log") if (number := _number(path)) is not None)
    number = logs[-1][0] + 1 if logs else 1
    while True:
        path = home / f"{name}.{number}.log"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            break
        except FileExistsError:
            number += 1
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    for _, old in logs[:-_LOGS_KEPT]:
        # Not if a server still writes to it, or another process removed it.
        with contextlib.suppress(OSError), old.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            old.unlink()
    return path, os.fdopen(descriptor, "wb")


def _number(path: Path) -> int | None:
    digits = path.stem.rpartition(".")[2]
    return int(digits) if digits.isdecimal() else None


def tail(path: Path, hide: Redactor) -> str:
    """Return the end of a log, indented and redacted, after the last error if that is further up."""
    lines = _lines(path)
    end = lines[-_TAIL_LINES:]
    causes = [line for line in lines[:-_TAIL_LINES] if _CAUSE.search(line)]
    if causes and not any(_CAUSE.search(line) for line in end):
        end = [causes[-1], "...", *end]
    return "\n".join(f"    {scrub(line, hide)[:_WIDTH]}" for line in end) or "    (the log is empty)"


def last_line(path: Path, hide: Redactor) -> str:
    """Return the last line with words, for a progress line."""
    for line in reversed(_lines(path)):
        text = _HEAD.sub("", line).strip()
        if sum(letter.isalpha() for letter in text) > 3:
            return scrub(text, hide)[:80]
    return ""


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.rstrip() for line in re.split(r"[\r\n]+", _ANSI.sub("", text)) if line.strip()]
