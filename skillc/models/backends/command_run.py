"""One run of a command in its own session: bounded output, the end of all its processes, and its answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillc.json_values import as_text
from skillc.models import guard
from skillc.models.guard import GUARD, MARK
from skillc.plan.schema import AnswerPlan

MOST_OUTPUT = 16 * 2**20
"""Bytes of output; a command that prints more is killed."""

_TAIL = 4096
_CHUNK = 65536
# Seconds between checks whether a command has ended, and that another process may hold its output open.
_POLL, _LINGER = 0.1, 0.5

_End = Literal["ended", "timeout", "output"]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command.

    Attributes:
        why: it `ended`, or was killed at the `timeout` or because of too much `output`.
        status: exit status, negative for the signal that killed it.
        stderr: the end of its standard error.
    """

    why: _End
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
) -> CommandResult:
    """Run a command; however the wait for it ends, none of its processes is left.

    It gets no variables but `environment`, may print `most` bytes, and has `grace` seconds between SIGTERM and SIGKILL.
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
    why: _End = "ended"
    killed = True
    try:
        GUARD.watch(process.pid, mark)
        async with asyncio.timeout(timeout):
            await _talk(process, stdin, out, err, most)
        killed = False
    except TimeoutError:
        why = "timeout"
    except _OutputTooLarge:
        why = "output"
    finally:
        await _uncancelled(_end(process, mark if killed else "", grace))
    return CommandResult(why, process.returncode if process.returncode is not None else -1, bytes(out), bytes(err))


class _OutputTooLarge(Exception):  # noqa: N818
    pass


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
        del err[:-_TAIL]


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


async def _end(process: asyncio.subprocess.Process, mark: str, grace: float) -> None:
    """End all processes of the command; by its mark too, unless it ended normally."""
    for step in guard.ending({process.pid}, mark, grace) if mark or guard.is_there(process.pid) else ():
        await asyncio.sleep(step)
    GUARD.forget(process.pid)
    while process.returncode is None:
        await asyncio.sleep(0.01)
    # A process that has left the command may hold the pipes open.
    process._transport.close()  # type: ignore[attr-defined]


async def _uncancelled(work: Coroutine[None, None, None]) -> None:
    """Finish the work even if this task is cancelled meanwhile."""
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
    """The output of a command has no answer in the declared place, so it is malformed."""


def prepare(answer: AnswerPlan, folder: Path) -> None:
    """Date the answer's file of an earlier call to the epoch, so that it is not read as this call's."""
    if answer.kind == "file" and (folder / answer.text).exists():
        os.utime(folder / answer.text, ns=(0, 0))


def take(answer: AnswerPlan, output: bytes, folder: Path) -> str:
    """Return the answer, stripped, or empty if the command printed nothing; raise `AnswerMissing` if it has none."""
    if answer.kind == "file":
        return _decode(_read_file(folder, answer.text), f"the file `{answer.text}`").strip()
    text = _decode(output, "the output").strip()
    return _READERS[answer.kind](answer, text).strip() if text else ""


def _decode(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise AnswerMissing(f"{what} is not UTF-8 at byte {problem.start}") from None


def _json(answer: AnswerPlan, text: str) -> str:
    """The value at the path in the output, or in the last line that has one there."""
    for part in (text, *reversed(text.splitlines())):
        try:
            value = json.loads(part)
            for step in answer.path:
                value = value[step]
        except (ValueError, RecursionError, KeyError, IndexError, TypeError):
            continue
        if value is not None:
            return as_text(value)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in answer.path)
    raise AnswerMissing(f"no JSON in the output has a value at `{path}`")


def _after(answer: AnswerPlan, text: str) -> str:
    _, found, rest = text.rpartition(answer.text)
    if not found:
        raise AnswerMissing(f"the output does not contain `{answer.text}`")
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
    "stdout": lambda answer, text: text,
    "json": _json,
    "after": _after,
    "match": _match,
}


def _read_file(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
            raise AnswerMissing(f"the command wrote no file `{name}` into its working folder")
        stat = path.stat()
        if stat.st_mtime_ns == 0:
            raise AnswerMissing(f"the command did not write the file `{name}`; it is from an earlier call")
        if stat.st_size > MOST_OUTPUT:
            raise AnswerMissing(f"the file `{name}` is too large: {stat.st_size:,} bytes")
        return path.read_bytes()
    except OSError as problem:
        raise AnswerMissing(f"the file `{name}` cannot be read: {problem.strerror}") from None
