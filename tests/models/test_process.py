"""Commands end with all that they started: at their end, at a timeout, when cancelled, and when skillc is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillc.processes import guard
from skillc.processes.command import CommandResult, run

ENVIRONMENT = {"PATH": os.environ["PATH"]}
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def sh(script: str, *, stdin: bytes | None = None, timeout: float = 20, **options: Any) -> CommandResult:
    words = ["sh", "-c", script]
    return asyncio.run(
        run(words, folder=Path("/"), environment=ENVIRONMENT, stdin=stdin, timeout=timeout, **options),
    )


def running(token: str) -> list[str]:
    """The command lines that hold a token, zombies excepted."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if token in line:
                found.append(line)
    return found


def until(true: Callable[[], bool], seconds: float = 600) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_a_command_is_fed_and_read() -> None:
    ended = sh("cat; echo oh >&2; exit 3", stdin=b"x" * 300_000)
    assert (ended.why, ended.status, len(ended.stdout), ended.stderr) == ("ended", 3, 300_000, b"oh\n")


def test_nothing_stands_on_standard_input_unless_it_is_given() -> None:
    assert sh("cat; echo done").stdout == b"done\n"


def test_a_command_need_not_read_what_it_is_given() -> None:
    assert sh("echo yes", stdin=b"x" * 1_000_000).stdout == b"yes\n"


def test_output_has_a_bound_and_standard_error_keeps_its_end() -> None:
    ended = sh("yes", most=10_000, grace=0.1)
    assert (ended.why, len(ended.stdout)) == ("output", 10_000)
    assert sh("seq 100000 >&2; echo last >&2").stderr.endswith(b"100000\nlast\n")


def test_a_program_that_is_not_there_cannot_be_started() -> None:
    with pytest.raises(FileNotFoundError):
        asyncio.run(run(["/nowhere/x"], folder=Path("/"), environment={}, stdin=None, timeout=1))


@LINUX
def test_a_timeout_ends_grandchildren_that_ignore_sigterm_and_left_the_session() -> None:
    token = f"71.{os.getpid()}"
    script = (
        f"(trap '' TERM; sleep {token}; sleep {token}) & "
        f"setsid sh -c \"trap '' TERM; sleep {token}; sleep {token}\" & echo begun; wait"
    )
    ended = sh(script, timeout=3, grace=0.2)
    assert (ended.why, ended.stdout) == ("timeout", b"begun\n")
    assert running(token) == []


@LINUX
def test_a_command_that_stops_itself_is_ended_all_the_same() -> None:
    token = f"72.{os.getpid()}"
    assert sh(f"kill -STOP $$; sleep {token}", timeout=0.3, grace=0.2).why == "timeout"
    assert running(token) == []


@LINUX
def test_what_holds_the_output_open_is_not_waited_for() -> None:
    token = f"73.{os.getpid()}"
    ended = sh(f"echo answer; sleep {token} &", grace=0.2)
    assert (ended.why, ended.status, ended.stdout) == ("ended", 0, b"answer\n")
    assert running(token) == []


@LINUX
def test_a_cancelled_command_is_gone_before_the_caller_goes_on() -> None:
    token = f"74.{os.getpid()}"

    async def scenario() -> None:
        words = ["sh", "-c", f"sleep {token}; sleep {token}"]
        task = asyncio.create_task(run(words, folder=Path("/"), environment=ENVIRONMENT, stdin=None, timeout=60))
        # As early as possible: asyncio has not finished the start then.
        while not running(token):
            await asyncio.sleep(0)
        task.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert running(token) == []
        assert time.monotonic() - began < 30

    asyncio.run(scenario())


def test_many_commands_at_once_get_their_own_output() -> None:
    async def scenario() -> list[CommandResult]:
        each = [
            run(["sh", "-c", f"echo {i}"], folder=Path("/"), environment=ENVIRONMENT, stdin=None, timeout=60)
            for i in range(40)
        ]
        return await asyncio.gather(*each)

    assert [ended.stdout for ended in asyncio.run(scenario())] == [f"{i}\n".encode() for i in range(40)]


KILLED = """
import asyncio, signal, sys
from pathlib import Path
from skillc.processes.command import run
# Whoever runs the tests in the background may have had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
script = "trap '' TERM; setsid sh -c \\"trap '' TERM; sleep {token}; sleep {token}\\" & sleep {token}; sleep {token}"
asyncio.run(run(["sh", "-c", script], folder=Path("/"), environment={{"PATH": {path!r}}}, stdin=None, timeout=600))
"""


@LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.quick_cases(1)
def test_nothing_is_left_when_skillc_is_killed(number: signal.Signals) -> None:
    token = f"75.{os.getpid()}{int(number)}"
    code = KILLED.format(token=token, path=os.environ["PATH"])
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    assert until(lambda: len(running(f"sleep {token}")) >= 3)
    process.send_signal(number)
    process.wait(timeout=600)
    assert until(lambda: not running(f"sleep {token}"))


@LINUX
def test_a_guard_that_was_killed_is_replaced() -> None:
    token = f"76.{os.getpid()}"
    code = (
        "import asyncio, os, signal, sys\nfrom pathlib import Path\nfrom skillc.processes import guard\n"
        "from skillc.processes.command import run\n"
        "def go(s):\n    words = ['sh', '-c', s]\n"
        "    return run(words, folder=Path('/'), environment=dict(os.environ), stdin=None, timeout=60)\n"
        "async def main():\n"
        "    await go('true')\n"
        "    guard.GUARD._process.kill(); guard.GUARD._process.wait()\n"
        f"    await go('sleep {token}')\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    assert until(lambda: any(line.startswith("sleep") for line in running(f"sleep {token}")))
    process.kill()
    process.wait()
    assert until(lambda: not any(line.startswith("sleep") for line in running(f"sleep {token}")))


@LINUX
def test_the_processes_of_another_mark_are_let_be() -> None:
    other = subprocess.Popen(["sleep", "60"], env={guard.MARK: "other.1;", **ENVIRONMENT}, start_new_session=True)
    try:
        assert until(lambda: guard.alive(set(), "other.1;") == [other.pid])
        assert guard.alive(set(), "other.11;") == []
        assert list(guard.ending(set(), "mine.1;")) == []
        assert other.poll() is None
        for step in guard.ending({other.pid}, "", grace=60):
            time.sleep(step)
        assert other.wait(timeout=600) == -signal.SIGTERM
    finally:
        other.kill()
