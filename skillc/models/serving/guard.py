"""Runs one server and ends it, whatever becomes of skillc. Started as a file of its own; imports nothing of skillc.

    python -I -S guard.py GRACE COMMAND...

It starts the command in a process group of its own, prints its process id, and waits. When the command ends, what is
left of the group is killed, and the guard ends with the command's status. The group is asked to end, and killed after
GRACE seconds, when the guard gets SIGTERM, SIGINT or SIGHUP, and when its standard input closes. Only skillc holds the
other end of that pipe, so that it closes however skillc ends. A byte on standard input releases the server: from then
on it survives skillc.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path


def main(grace: float, command: list[str]) -> int:
    """The status of the command, 128 and the signal where one ended it."""
    woken, wake = os.pipe()
    for pipe in (woken, wake):
        os.set_blocking(pipe, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    asked: list[bool] = []

    def ask(*_: object) -> None:
        asked.append(True)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ask)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, stderr=2, start_new_session=True)
    except OSError as problem:
        os.write(2, f"{command[0]} cannot be started: {problem.strerror}\n".encode())
        return 127
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
    end(child, grace)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def end(child: subprocess.Popen[bytes], grace: float) -> None:
    """SIGTERM to the group, SIGKILL to what is left of it after `grace` seconds."""
    send(child.pid, signal.SIGTERM)
    last = time.monotonic() + grace
    while time.monotonic() < last and (child.poll() is None or lives(child.pid)):
        time.sleep(0.02)
    send(child.pid, signal.SIGKILL)
    child.wait()


def lives(group: int) -> bool:
    """Whether a process of the group still runs; one of which only its status is left does not."""
    if not send(group, 0):
        return False
    states = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[2] == str(group):
            states.append(fields[0])
    return not states or any(state not in "ZX" for state in states)


def send(group: int, number: int) -> bool:
    """Whether there was a group to send it to."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
