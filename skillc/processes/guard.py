"""Ends the processes that skillc starts: on request, and when skillc itself has ended in any way.

Guards do the latter: small processes that hold one end of a pipe from skillc. They run this file as a script, so it
imports only the standard library.

    python -I -S guard.py watch MARK            ends the registered commands when the pipe closes, and runs others
    python -I -S guard.py run GRACE COMMAND...  runs one server, and ends it on request or when the pipe closes

The processes of a command are those of its session and group, and on Linux those with its mark in their environment,
since agents start sessions themselves.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

MARK = "SKILLC_COMMAND"
SECRETS = "SKILLC_SECRETS"
"""The variable with what the guard of a server redacts in its output; the server does not get it."""

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""

_STUBBORN = 5.0
_COMMAND_SECONDS = 60.0
_LONGEST_LINE = 2**20
_DEAD = frozenset("ZXx")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stat_of(pid: int | str) -> list[str] | None:
    """Return the fields of `/proc/PID/stat` from the state on; None without such a process or `/proc`."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            # The program's name in brackets may contain anything.
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def is_dead(fields: list[str]) -> bool:
    """Whether a process has ended and only its status is left."""
    return fields[0] in _DEAD


def alive(groups: set[int], mark: str) -> list[int]:
    """Return the processes of sessions or groups, and those with a mark; `-group` for each group without `/proc`."""
    try:
        names = os.listdir("/proc") if sys.platform == "linux" else []  # noqa: PTH208
    except OSError:
        names = []
    if names:
        return [int(name) for name in names if name.isdigit() and _belongs(name, groups, mark.encode())]
    return [-group for group in groups if is_there(group)]


def ending(groups: set[int], mark: str, grace: float = GRACE) -> Iterator[float]:
    """End all: SIGTERM first, SIGKILL after the grace. Yield the seconds until the next step."""
    waited, asked = 0.0, set[int]()
    while left := alive(groups, mark):
        if waited > grace + _STUBBORN:
            return
        for each in left:
            if waited >= grace or each not in asked:
                asked.add(each)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, signal.SIGKILL if waited >= grace else signal.SIGTERM)
        step = 0.01 if waited < 0.1 else 0.05
        waited += step
        yield step


def _belongs(name: str, groups: set[int], mark: bytes) -> bool:
    fields = stat_of(name)
    try:
        if fields is None or is_dead(fields):
            return False
        # State, parent, group, session.
        if int(fields[2]) in groups or int(fields[3]) in groups:
            return True
        with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
            return bool(mark) and mark in file.read()
    except (OSError, ValueError, IndexError):
        return False


def is_there(group: int) -> bool:
    """Whether a group has a process, a zombie included."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def guard_command(mode: str, *arguments: str) -> list[str]:
    """Return the command line of a guard."""
    return [sys.executable, "-I", "-S", __file__, mode, *arguments]


class Guard:
    """The guard of this process's commands, started with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._token = secrets.token_hex(8)
        self._count = 0
        self._owner = os.getpid()
        self._watched: dict[int, str] = {}
        self._at_end: dict[str, str] = {}

    def mark(self) -> str:
        """Return a mark for one command, after that of a skillc that runs this one; start the guard if needed."""
        with self._lock:
            if self._owner != os.getpid():
                # After a fork the commands are the parent's.
                self._owner, self._process, self._token = os.getpid(), None, secrets.token_hex(8)
                self._watched, self._at_end = {}, {}
            self._count += 1
            self._send([])
            return f"{os.environ.get(MARK, '')}{self._token}.{self._count};"

    def watch(self, group: int, mark: str) -> None:
        """End a command when this process has ended."""
        with self._lock:
            self._watched[group] = mark
            self._send([f"+{group}"])

    def forget(self, group: int) -> None:
        """Stop watching a command that has ended."""
        with self._lock:
            if self._watched.pop(group, None) is not None:
                self._send([f"-{group}"])

    def at_end(self, key: str, words: Sequence[str]) -> None:
        """Run a command when this process has ended: it ends what no signal from here reaches, such as a container."""
        with self._lock:
            self._at_end[key] = json.dumps([key, *words])
            self._send([f"!{self._at_end[key]}"])

    def not_at_end(self, key: str) -> None:
        """Take back `at_end`."""
        with self._lock:
            if self._at_end.pop(key, None) is not None:
                self._send([f"~{key}"])

    def _send(self, lines: list[str]) -> None:
        if self._process is None or self._process.poll() is not None:
            lines = [*(f"+{group}" for group in self._watched), *(f"!{each}" for each in self._at_end.values())]
            self._process = self._start()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            guard_command("watch", f"{self._token}."),
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


# ---- the guards themselves ----


def _watch_commands(mark: str) -> None:
    """Read `+GROUP`, `-GROUP`, `![KEY, COMMAND...]` and `~KEY` until the pipe closes.

    Then run the commands that are left, and end the groups that are left and what carries the mark.
    """
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    parent, groups, rest = os.getppid(), set[int](), b""
    at_end: dict[str, list[str]] = {}
    while True:
        # A fork of the parent may keep the pipe open.
        if not select.select([0], [], [], 1.0)[0]:
            if os.getppid() != parent:
                break
            continue
        received = os.read(0, 65536)
        if not received:
            break
        *lines, rest = (rest + received).split(b"\n")
        for line in lines:
            match line[:1]:
                case b"!":
                    key, *words = json.loads(line[1:])
                    at_end[key] = words
                case b"~":
                    at_end.pop(line[1:].decode(), None)
                case sign:
                    (groups.add if sign == b"+" else groups.discard)(int(line[1:]))
    _run_all(at_end.values())
    for step in ending(groups, mark):
        time.sleep(step)
    # A group may have started something meanwhile.
    _run_all(at_end.values())


def _run_all(commands: Iterable[Sequence[str]]) -> None:
    """Run commands side by side."""
    running = []
    for words in commands:
        with contextlib.suppress(OSError):
            running.append(
                subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
    for process in running:
        try:
            process.wait(_COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def _run_server(grace: float, command: list[str]) -> int:
    """Run one server and end it; return its status, or 128 plus the signal that ended it.

    Prints the server's process id first. The server ends at SIGTERM, SIGINT and SIGHUP, and when standard input closes:
    only skillc has the other end, so it closes with skillc. A byte on standard input releases the server, which then
    survives skillc. The rest of the server's group ends with it.
    """
    woken, wake = os.pipe()
    for pipe in (woken, wake):
        os.set_blocking(pipe, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    asked: list[int] = []
    for number in _SIGNALS:
        signal.signal(number, lambda number, _: asked.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    hide = _redactor(os.environ.pop(SECRETS, "[]"))
    readable, output = os.pipe()
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    except OSError as problem:
        os.write(2, f"{command[0]} cannot be started: {problem.strerror}\n".encode())
        return 127
    os.close(output)
    log = threading.Thread(target=_log, args=(readable, hide), daemon=True)
    log.start()
    os.write(1, f"{child.pid}\n".encode())
    os.close(1)
    watched = [woken, 0]
    while child.poll() is None and not asked:
        ready, _, _ = select.select(watched, [], [])
        if 0 in ready:
            if not os.read(0, 1):
                break
            watched.remove(0)
        if woken in ready:
            os.read(woken, 512)
    for step in ending({child.pid}, "", grace):
        time.sleep(step)
        # Collect its status, or its group would seem to have a process.
        child.poll()
    child.wait()
    # A process that has left the group may hold the pipe open.
    log.join(1.0)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _redactor(given: str) -> Callable[[str], str]:
    """Load the redactor from its file, because a script in isolated mode imports no package."""
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "redaction.py")  # noqa: PTH118, PTH120
    spec = importlib.util.spec_from_file_location("redaction", path)
    assert spec is not None and spec.loader is not None
    sys.modules["redaction"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hide: Callable[[str], str] = module.Redactor.of_text(given)
    return hide


def _log(output: int, hide: Callable[[str], str]) -> None:
    """Write what a server prints to standard error without secrets, line by line."""
    rest = b""
    while received := os.read(output, 65536):
        rest += received
        end = max(rest.rfind(b"\n"), rest.rfind(b"\r")) + 1
        # A line that never ends is written in parts.
        end = end or (len(rest) if len(rest) > _LONGEST_LINE else 0)
        _write(rest[:end], hide)
        rest = rest[end:]
    _write(rest, hide)


def _write(raw: bytes, hide: Callable[[str], str]) -> None:
    coded = hide(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    # A full disk must not end the server.
    with contextlib.suppress(OSError):
        while coded:
            coded = coded[os.write(2, coded) :]


if __name__ == "__main__":
    if sys.argv[1] == "watch":
        _watch_commands(sys.argv[2])
    else:
        sys.exit(_run_server(float(sys.argv[2]), sys.argv[3:]))
