"""Run a command in its own session, with bounds on output and time, and end all its processes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, TypeVar

from skillc.dataclass import dataclass
from skillc.processes import guard
from skillc.processes.guard import GUARD, MARK

MOST_OUTPUT = 16 * 2**20
"""Bytes of output; a command that prints more is killed."""

STDERR_KEPT = 4096
"""Bytes of the end of standard error that are kept."""

_CHUNK = 65536
# Seconds between checks whether a command has ended, and that another process may hold its output open.
_POLL, _LINGER = 0.1, 0.5

T = TypeVar("T")

End = Literal["ended", "timeout", "output", "memory", "processes", "disk"]
Monitor = Callable[[int], Awaitable[End]]
"""Watches the command with a process id for as long as it runs; returns only to have it killed, and why."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command.

    Attributes:
        why: it `ended`, or was killed at the `timeout`, because of too much `output`, or by its monitor.
        status: exit status, negative for the signal that killed it.
        stderr: the end of its standard error.
        seconds: wall time, where it was measured.
    """

    why: End
    status: int
    stdout: bytes
    stderr: bytes
    seconds: float = 0.0


async def run(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdin: bytes | None,
    timeout: float,
    most: int = MOST_OUTPUT,
    grace: float = guard.GRACE,
    monitor: Monitor | None = None,
) -> CommandResult:
    """Run a command; however the wait for it ends, none of its processes is left.

    It gets no variables but `environment`, may print `most` bytes, and has `grace` seconds between SIGTERM and SIGKILL.
    Its `monitor` may have it killed meanwhile.
    """
    mark = GUARD.mark()
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *words,
            cwd=folder,
            env={**environment, MARK: mark},
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    out, err = bytearray(), bytearray()
    why: End = "ended"
    killed = True
    try:
        # A cancelled start would kill the command alone, and wait for the end of what the command has started.
        process = await _uncancelled(starting)
        GUARD.watch(process.pid, mark)
        async with asyncio.timeout(timeout):
            why = await _first(_talk(process, stdin, out, err, most), monitor and monitor(process.pid))
        killed = why != "ended"
    except TimeoutError:
        why = "timeout"
    except _OutputTooLarge:
        why = "output"
    finally:
        if starting.done() and not starting.cancelled() and starting.exception() is None:
            await _uncancelled(end(starting.result(), mark if killed else "", grace))
    return CommandResult(why, process.returncode if process.returncode is not None else -1, bytes(out), bytes(err))


class _OutputTooLarge(Exception):  # noqa: N818
    pass


async def _first(talk: Coroutine[None, None, None], monitor: Awaitable[End] | None) -> End:
    """Wait for the end of the command or for its monitor, whichever comes first."""
    if monitor is None:
        await talk
        return "ended"
    tasks = (asyncio.ensure_future(talk), asyncio.ensure_future(monitor))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
            return "ended"
        return tasks[1].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _talk(
    process: asyncio.subprocess.Process, stdin: bytes | None, out: bytearray, err: bytearray, most: int
) -> None:
    """Feed and read the command until it ends; do not wait for others that hold its output open."""
    ended = asyncio.create_task(_ended(process))
    pipes = {
        asyncio.create_task(each) for each in (_read(process, out, most), _tail(process, err), _feed(process, stdin))
    }
    tasks = {ended, *pipes}
    try:
        while pipes and not ended.done():
            done, _ = await asyncio.wait({ended, *pipes}, return_when=asyncio.FIRST_COMPLETED)
            for task in done & pipes:
                task.result()
            pipes -= done
        if not pipes:
            await process.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(process: asyncio.subprocess.Process, out: bytearray, most: int) -> None:
    assert process.stdout is not None
    while chunk := await process.stdout.read(_CHUNK):
        out += chunk[: most - len(out)]
        if len(out) >= most:
            raise _OutputTooLarge


async def _tail(process: asyncio.subprocess.Process, err: bytearray) -> None:
    assert process.stderr is not None
    while chunk := await process.stderr.read(_CHUNK):
        err += chunk
        del err[:-STDERR_KEPT]


async def _feed(process: asyncio.subprocess.Process, stdin: bytes | None) -> None:
    if process.stdin is None or stdin is None:
        return
    # A command need not read its input.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()


async def _ended(process: asyncio.subprocess.Process) -> None:
    while process.returncode is None:
        await asyncio.sleep(_POLL)
    await asyncio.sleep(_LINGER)


async def end(process: asyncio.subprocess.Process, mark: str, grace: float) -> None:
    """End all processes of a command that the guard watches.

    Those that left its session are found by its mark; without one, for a command that ended normally, they may go on.
    """
    for step in guard.ending({process.pid}, mark, grace) if mark or guard.is_there(process.pid) else ():
        await asyncio.sleep(step)
    GUARD.forget(process.pid)
    while process.returncode is None:
        await asyncio.sleep(0.01)
    # A process that has left the command may hold the pipes open.
    process._transport.close()  # type: ignore[attr-defined]


def describe_status(status: int) -> str:
    """Return how a process ended: `exited with status 1`, `was killed by SIGKILL`."""
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def last_line(printed: bytes | bytearray) -> str:
    """Return the last line that is not blank, stripped; empty without one."""
    return next((line.strip() for line in reversed(printed.decode(errors="replace").splitlines()) if line.strip()), "")


@asynccontextmanager
async def temporary_folder() -> AsyncIterator[Path]:
    """Yield a new folder, which a thread removes afterwards.

    Nobody waits for that: a workspace can have many thousand files. The end of the event loop waits for its threads.
    """
    folder = tempfile.TemporaryDirectory(prefix="skillc-", ignore_cleanup_errors=True)
    try:
        yield Path(folder.name).resolve()
    finally:
        asyncio.get_running_loop().run_in_executor(None, folder.cleanup)


async def _uncancelled(work: Awaitable[T]) -> T:
    """Finish the work even if this task is cancelled meanwhile, and raise the cancellation then."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as problem:
            cancelled = problem
    if cancelled is not None:
        raise cancelled
    return task.result()
