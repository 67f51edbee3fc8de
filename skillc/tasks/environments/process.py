"""Processes of environments: how one is started, asked and ended, and the pool of a run that lends them to rollouts."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.processes.command import describe_status, end, last_line
from skillc.processes.guard import GUARD, MARK
from skillc.text import cut, listed

WORKER = Path(__file__).with_name("worker.py")
_LONGEST_REPLY = 16 * 2**20
_TAIL = 2048
_SHOWN = 300
_CHUNK = 65536
# Seconds that an environment has to close itself.
_CLOSING = 2.0


class EnvironmentFailed(Exception):  # noqa: N818
    """An environment's process ended, did not answer in time, or reported an exception of its class."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a process needs to make its environment.

    Attributes:
        target: `module:Class`; with a file `Class` alone.
        python: the interpreter.
        root: the program's folder, which is the working folder and the first place of imports.
        path: further places of imports.
        settings: keyword arguments of the class.
        memory: limit of the process's address space in bytes.
        environ: variables of the process.
    """

    target: str
    python: Path
    root: Path
    file: Path | None = None
    path: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    memory: int | None = None
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> list[str]:
        """The command line of the process."""
        return [str(self.python), str(WORKER)]

    def request(self) -> bytes:
        """Return the first request."""
        return _line(
            op="open",
            target=self.target,
            file=str(self.file) if self.file is not None else None,
            path=[str(self.root.resolve()), *self.path],
            settings=dict(self.settings),
            memory=self.memory,
        )

    def variables(self) -> dict[str, str]:
        """Return the variables of the process: this one's, with those declared."""
        return {**os.environ, "PYTHONHASHSEED": "0", **self.environ}

    def inspect(self, timeout: float) -> str:
        """Make the environment once and end it; return the digest of its source files.

        Raises:
            SkillcError: it cannot be made, or its class lacks a method.
        """
        name = self.target if self.file is None else self.file.stem
        process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.root,
            env=self.variables(),
            start_new_session=True,
        )
        try:
            printed, errors = process.communicate(self.request(), timeout=timeout)
        except subprocess.TimeoutExpired as raised:
            raise SkillcError(f"the environment `{name}` did not start within {timeout:g} s") from raised
        finally:
            # Its children hold the pipes open.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        reply = json.loads(printed.partition(b"\n")[0] or b'{"error": ""}')
        if "error" in reply:
            ended = f"its process {describe_status(process.returncode)}"
            reason = reply["error"] or cut(last_line(errors), _SHOWN) or ended
            raise SkillcError(f"the environment `{name}` cannot be made: {reason}", hint=f"searched `{self.root}`")
        if reply["missing"]:
            raise SkillcError(
                f"the environment `{name}` has no method {listed(reply['missing'], 'and')}",
                hint="it needs `reset(example)`, `step(action)`, and `score()`, which returns a number from 0 to 1",
            )
        digest = hashlib.sha256(name.encode())
        for file in reply["files"]:
            text = Path(file).read_bytes()
            digest.update(b"\0%d\0" % len(text) + text)
        return digest.hexdigest()


class EnvironmentProcess:
    """One process with one environment. After an `EnvironmentFailed` it can only be ended."""

    def __init__(self, mark: str, process: asyncio.subprocess.Process) -> None:
        self._mark = mark
        self._process = process
        self._errors = bytearray()
        self._reading = asyncio.create_task(self._read_errors())

    @classmethod
    async def start(cls, opening: Opening, timeout: float) -> EnvironmentProcess:
        """Start a process and make its environment.

        Raises:
            EnvironmentFailed: that failed.
        """
        mark = GUARD.mark()
        process = await asyncio.create_subprocess_exec(
            *opening.command,
            cwd=opening.root,
            env={**opening.variables(), MARK: mark},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=_LONGEST_REPLY,
        )
        GUARD.watch(process.pid, mark)
        started = cls(mark, process)
        try:
            await started._ask(opening.request(), timeout, "start")
        except BaseException:
            await started.kill()
            raise
        return started

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def ask(self, operation: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the reply.

        Raises:
            EnvironmentFailed: the process ended, the time is over, or the class raised an exception.
        """
        return await self._ask(_line(op=operation, **arguments), timeout, operation)

    async def _ask(self, request: bytes, timeout: float, operation: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(timeout):
                # A process that has ended is noticed when its reply is read.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self._process.stdin.write(request)
                    await self._process.stdin.drain()
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise EnvironmentFailed(f"`{operation}` did not return within {timeout:g} s") from None
        except ValueError:
            raise EnvironmentFailed(f"the reply to `{operation}` is longer than {_LONGEST_REPLY} bytes") from None
        if not line.endswith(b"\n"):
            raise EnvironmentFailed(await self._ending(operation))
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise EnvironmentFailed(f"`{operation}` raised {reply['error']}")
        return reply

    async def _ending(self, operation: str) -> str:
        """Describe how the process ended."""
        status = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                status = await self._process.wait()
                await self._reading
        how = "closed its pipe" if status is None else describe_status(status)
        last = cut(last_line(self._errors), _SHOWN)
        return f"its process {how} in `{operation}`" + (f": {last}" if last else "")

    async def _read_errors(self) -> None:
        """Read what the environment prints, so that it never waits, and keep the end."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(_CHUNK):
            self._errors += chunk
            del self._errors[:-_TAIL]

    async def close(self) -> None:
        """Let the environment close itself, then end what is left of its processes."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """End all processes of the environment at once."""
        await end(self._process, self._mark, 0)
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


class EnvironmentPool:
    """Lends processes to rollouts; as many are alive as rollouts ran at once."""

    def __init__(self, opening: Opening, *, start_time: float) -> None:
        self._opening = opening
        self._start_time = start_time
        self._idle: list[EnvironmentProcess] = []
        self._alive: set[EnvironmentProcess] = set()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[EnvironmentProcess]:
        """Lend a process for one rollout; after any exception inside it is ended, since its state is unknown.

        Raises:
            EnvironmentFailed: no process could be started.
        """
        process = self._idle.pop() if self._idle else await EnvironmentProcess.start(self._opening, self._start_time)
        self._alive.add(process)
        try:
            yield process
        except BaseException:
            await process.kill()
            self._alive.discard(process)
            raise
        self._idle.append(process)

    async def close(self) -> None:
        """End all processes."""
        alive, self._alive = self._alive, set()
        self._idle.clear()
        await asyncio.gather(*(process.close() for process in alive))


def _line(**values: Any) -> bytes:
    return json.dumps(values).encode() + b"\n"
