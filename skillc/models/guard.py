"""Ends the processes of commands: at once when asked, and also when skillc itself is gone, however it was ended.

For the second there is the guard, a small process that holds one end of a pipe and is told of each command: when the
pipe closes, it ends what still runs. It is this file, run as a script, so nothing but the standard library is
imported here.

The processes of a command are those of its session, and on Linux those that carry its mark in their environment, since
agents start sessions of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

MARK = "SKILLC_COMMAND"
GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""

_STUBBORN = 5.0
_DEAD = frozenset(b"ZXx")


def alive(groups: set[int], mark: str) -> list[int]:
    """The processes of sessions or groups, and those with a mark. Without a `/proc` it is `-group` for each group."""
    try:
        names = os.listdir("/proc") if sys.platform == "linux" else []  # noqa: PTH208
    except OSError:
        names = []
    if names:
        return [int(name) for name in names if name.isdigit() and _belongs(name, groups, mark.encode())]
    return [-group for group in groups if is_there(group)]


def ending(groups: set[int], mark: str, grace: float = GRACE) -> Iterator[float]:
    """Ends them all: SIGTERM first, SIGKILL for what is left after the grace. Gives the seconds until the next look."""
    waited, told = 0.0, set[int]()
    while left := alive(groups, mark):
        if waited > grace + _STUBBORN:
            return
        for each in left:
            if waited >= grace or each not in told:
                told.add(each)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, signal.SIGKILL if waited >= grace else signal.SIGTERM)
        step = 0.01 if waited < 0.1 else 0.05
        waited += step
        yield step


def _belongs(name: str, groups: set[int], mark: bytes) -> bool:
    try:
        with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
            # Behind the last bracket: state, parent, group, session.
            state, _, group, session = file.read().rpartition(b")")[2].split()[:4]
        if state[0] in _DEAD:
            return False
        if int(group) in groups or int(session) in groups:
            return True
        with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
            return bool(mark) and mark in file.read()
    except (OSError, ValueError, IndexError):
        return False


def is_there(group: int) -> bool:
    """Whether a group has a process, be it one that nobody has waited for."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Guard:
    """The guard of this process, started with its first command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._token = secrets.token_hex(8)
        self._count = 0
        self._owner = os.getpid()
        self._watched: dict[int, str] = {}

    def mark(self) -> str:
        """A mark for one command, behind that of a skillc that this one runs under. The guard stands from here on."""
        with self._lock:
            if self._owner != os.getpid():
                # A fork: what runs under the parent is not ours.
                self._owner, self._process, self._token, self._watched = os.getpid(), None, secrets.token_hex(8), {}
            self._count += 1
            self._tell([])
            return f"{os.environ.get(MARK, '')}{self._token}.{self._count};"

    def watch(self, group: int, mark: str) -> None:
        """From here on a command is ended when this process is gone."""
        with self._lock:
            self._watched[group] = mark
            self._tell([f"+{group}"])

    def forget(self, group: int) -> None:
        """The command has ended."""
        with self._lock:
            if self._watched.pop(group, None) is not None:
                self._tell([f"-{group}"])

    def _tell(self, lines: list[str]) -> None:
        if self._process is None or self._process.poll() is not None:
            self._process, lines = self._started(), [f"+{group}" for group in self._watched]
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, f"{self._token}."],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=os.path.abspath(os.sep),  # noqa: PTH100
            start_new_session=True,
        )
        atexit.register(_close, process, os.getpid())
        return process


def _close(process: subprocess.Popen[bytes], owner: int) -> None:
    if process.stdin is not None and owner == os.getpid():
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE + 1)


GUARD = Guard()


def _stand_guard(mark: str) -> None:
    """What the guard does: listens until the pipe closes, then ends what it was told of and what carries the mark."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent, groups, rest = os.getppid(), set[int](), b""
    while True:
        # A fork of the parent may hold the pipe open after it.
        if not select.select([0], [], [], 1.0)[0]:
            if os.getppid() != parent:
                break
            continue
        said = os.read(0, 65536)
        if not said:
            break
        *lines, rest = (rest + said).split(b"\n")
        for line in lines:
            (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
    for step in ending(groups, mark):
        time.sleep(step)


if __name__ == "__main__":
    _stand_guard(sys.argv[1])
