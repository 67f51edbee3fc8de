"""Runs one command in its own session, with bounded output, ends it with all that it started, and finds its answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skillc.json_values import as_text
from skillc.models import guard
from skillc.models.guard import GUARD, MARK
from skillc.plan.schema import AnswerPlan

MOST_OUTPUT = 16 * 2**20
"""Bytes of output that are read; a command that prints more is ended."""

_TAIL = 4096
_CHUNK = 65536
# Seconds between looks at whether a command has ended, and for how long another process may hold its output open.
_LOOK, _LINGER = 0.1, 0.5


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended, or was.

    Attributes:
        why: it `ended`, or was ended at the `timeout` or because it printed too `much`.
        status: its exit status, negative for the signal that ended it.
        stdout: all of its output.
        stderr: the end of its standard error.
    """

    why: Literal["ended", "timeout", "much"]
    status: int
    stdout: bytes
    stderr: bytes


async def run(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdin: bytes | None,
    timeout: float,
    most: int = MOST_OUTPUT,
    grace: float = guard.GRACE,
) -> Ended:
    """Run a command to its end. Whatever ends the wait for it, nothing of it is left running.

    Args:
        words: the program and its arguments.
        folder: the working folder.
        environment: all variables that it is given.
        stdin: what it reads; None is nothing.
        timeout: in seconds.
        most: bytes of output that it may print.
        grace: seconds between SIGTERM and SIGKILL.

    Raises:
        OSError: it could not be started.
    """
    mark = GUARD.mark()
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=folder,
        env={**environment, MARK: mark},
        stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    out, err = bytearray(), bytearray()
    why: Literal["ended", "timeout", "much"] = "ended"
    cut = True
    try:
        GUARD.watch(process.pid, mark)
        async with asyncio.timeout(timeout):
            await _talk(process, stdin, out, err, most)
        cut = False
    except TimeoutError:
        why = "timeout"
    except _TooMuch:
        why = "much"
    finally:
        await _surely(_end(process, mark if cut else "", grace))
    return Ended(why, process.returncode if process.returncode is not None else -1, bytes(out), bytes(err))


class _TooMuch(Exception):  # noqa: N818
    """More output than is read."""


async def _talk(
    process: asyncio.subprocess.Process, stdin: bytes | None, out: bytearray, err: bytearray, most: int
) -> None:
    """Feed and read the command until it ends; do not wait for others that hold its output open."""
    gone = asyncio.create_task(_outlived(process))
    talk = {
        asyncio.create_task(each) for each in (_read(process, out, most), _tail(process, err), _feed(process, stdin))
    }
    everything = {gone, *talk}
    try:
        while talk and not gone.done():
            done, _ = await asyncio.wait({gone, *talk}, return_when=asyncio.FIRST_COMPLETED)
            for task in done & talk:
                task.result()
            talk -= done
        if not talk:
            await process.wait()
    finally:
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)


async def _read(process: asyncio.subprocess.Process, out: bytearray, most: int) -> None:
    assert process.stdout is not None
    while chunk := await process.stdout.read(_CHUNK):
        out += chunk[: most - len(out)]
        if len(out) >= most:
            raise _TooMuch


async def _tail(process: asyncio.subprocess.Process, err: bytearray) -> None:
    assert process.stderr is not None
    while chunk := await process.stderr.read(_CHUNK):
        err += chunk
        del err[:-_TAIL]


async def _feed(process: asyncio.subprocess.Process, stdin: bytes | None) -> None:
    if process.stdin is None or stdin is None:
        return
    # A command need not read what it is given.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()


async def _outlived(process: asyncio.subprocess.Process) -> None:
    while process.returncode is None:
        await asyncio.sleep(_LOOK)
    await asyncio.sleep(_LINGER)


async def _end(process: asyncio.subprocess.Process, mark: str, grace: float) -> None:
    """End what is left of the command; by its mark too, unless it ended normally."""
    for step in guard.ending({process.pid}, mark, grace) if mark or guard.is_there(process.pid) else ():
        await asyncio.sleep(step)
    GUARD.forget(process.pid)
    while process.returncode is None:
        await asyncio.sleep(0.01)
    # The pipes may be held open by what has left the command; here they are not needed any more.
    process._transport.close()  # type: ignore[attr-defined]


async def _surely(work: Coroutine[None, None, None]) -> None:
    """Do the work to its end, however often this task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as problem:
            cancelled = problem
    if cancelled is not None:
        raise cancelled
    task.result()


class AnswerMissing(ValueError):  # noqa: N818
    """The output of a command has no answer in the declared place: it is malformed."""


def prepare(answer: AnswerPlan, folder: Path) -> None:
    """Make sure that a file of an earlier call is not taken for this one's: its time is set to the epoch.

    Raises:
        OSError: the file belongs to another user.
    """
    if answer.kind == "file" and (folder / answer.text).exists():
        os.utime(folder / answer.text, ns=(0, 0))


def take(answer: AnswerPlan, output: bytes, folder: Path) -> str:
    """The answer, without the blanks around it; empty where the command printed nothing.

    Args:
        answer: where it is.
        output: all that the command printed.
        folder: the working folder.

    Raises:
        AnswerMissing: it is not there, or no UTF-8.
    """
    if answer.kind == "file":
        return _decoded(_file(folder, answer.text), f"the file `{answer.text}`").strip()
    text = _decoded(output, "the output").strip()
    return _READERS[answer.kind](answer, text).strip() if text else ""


def _decoded(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise AnswerMissing(f"{what} is no UTF-8 at byte {problem.start}") from None


def _stdout(answer: AnswerPlan, text: str) -> str:
    return text


def _json(answer: AnswerPlan, text: str) -> str:
    """The text at the path of the output, or of the last line that has one there."""
    for value in _values(text):
        found = _at(value, answer.path)
        if found is not None:
            return as_text(found)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in answer.path)
    raise AnswerMissing(f"no JSON in the output has anything at `{path}`")


def _values(text: str) -> Iterator[Any]:
    for part in (text, *reversed(text.splitlines())):
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            continue


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _after(answer: AnswerPlan, text: str) -> str:
    _, found, rest = text.rpartition(answer.text)
    if not found:
        raise AnswerMissing(f"the output does not hold `{answer.text}`")
    return rest


def _match(answer: AnswerPlan, text: str) -> str:
    last = None
    for last in re.finditer(answer.text, text):  # noqa: B007
        pass
    found = last and last[last.re.groups]
    if found is None:
        raise AnswerMissing(f"nothing in the output matches `{answer.text}`")
    return str(found)


_READERS: Mapping[str, Callable[[AnswerPlan, str], str]] = {
    "stdout": _stdout,
    "json": _json,
    "after": _after,
    "match": _match,
}


def _file(folder: Path, name: str) -> bytes:
    """The file's content, if this call wrote it.

    Raises:
        AnswerMissing: it did not, or the file is outside the folder, or too large.
    """
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
            raise AnswerMissing(f"the command wrote no file `{name}` into its working folder")
        about = path.stat()
        if about.st_mtime_ns == 0:
            raise AnswerMissing(f"the command did not write the file `{name}`, which an earlier one left")
        if about.st_size > MOST_OUTPUT:
            raise AnswerMissing(f"the file `{name}` has {about.st_size:,} bytes")
        return path.read_bytes()
    except OSError as problem:
        raise AnswerMissing(f"the file `{name}` can't be read: {problem.strerror}") from None
