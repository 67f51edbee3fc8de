"""A file of JSON lines that only grows, and that a kill, a full disk or a power cut leaves readable."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skillc.errors import SkillcError


class LineFile:
    """Appends lines. A line is with the system when `write` returns, on the disk after a sync.

    Raises:
        SkillcError: the file cannot be opened.
    """

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        self._written = self._on_disk = 0
        self._syncing: asyncio.Future[None] | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as problem:
            raise self._trouble(problem) from problem

    def whole_lines(self) -> Iterator[tuple[int, int, Any]]:
        """Offset, length in bytes and value of each whole line; a torn tail, as a kill leaves it, is cut off."""
        end = 0
        with self._path.open("rb") as file:
            for line in file:
                try:
                    value = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    value = None
                if value is None:
                    break
                yield end, len(line), value
                end += len(line)
        self.cut(end)

    def cut(self, end: int) -> None:
        """Drops all that stands after `end` bytes."""
        try:
            if os.fstat(self._file).st_size > end:
                os.ftruncate(self._file, end)
        except OSError as problem:
            raise self._trouble(problem) from problem

    def read(self, offset: int, length: int) -> Any:
        """The value of one line."""
        return json.loads(os.pread(self._file, length, offset))

    def write(self, value: Any) -> None:
        """Appends a value as one line.

        Raises:
            SkillcError: it cannot be written; no half of it stays behind.
        """
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        data = text.encode() + b"\n"
        before = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, data)
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as problem:
            self.cut(before)
            raise self._trouble(problem) from problem
        self._written += 1

    def sync(self) -> None:
        """Waits until all lines are on the disk."""
        until = self._written
        if until > self._on_disk:
            try:
                os.fsync(self._file)
            except OSError as problem:
                raise self._trouble(problem) from problem
            self._on_disk = max(self._on_disk, until)

    async def synced(self) -> None:
        """The same beside a running event loop: all that wait at one moment share one sync."""
        until = self._written
        while self._on_disk < until:
            if self._syncing is None or self._syncing.done():
                self._syncing = asyncio.ensure_future(asyncio.to_thread(self.sync))
            await asyncio.shield(self._syncing)

    def close(self) -> None:
        """Closes the file, which stays."""
        os.close(self._file)

    def _trouble(self, problem: OSError) -> SkillcError:
        return SkillcError(
            f"the {self._what} `{self._path}` cannot be written: {problem.strerror}",
            hint="nothing that was written is lost; mend it and run the same command, which goes on",
        )
