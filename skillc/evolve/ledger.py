"""Ledger of a skill's nights: one folder, from which a killed night resumes.

`.skillc/nights/NAME/ledger.jsonl` has a line for each night that began, each share of the error budget that was spent,
and each look at test rows. It is append-only, and a line is on the disk before the action that it announces, so a kill
neither forgets a look nor counts it twice. `0007/` contains the results of the steps of night 7, each written
atomically; `0007.json` is the record of the finished night.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.run.folder import HOME, make_home

Json = dict[str, Any]


class NightRunningError(SkillcError):
    """Another process runs a night of the same skill."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The folder of the nights of one skill.

    Attributes:
        folder: `.skillc/nights/NAME`.
    """

    folder: Path

    @classmethod
    def of(cls, root: Path, name: str) -> Ledger:
        """Return the ledger of a skill of a program in the folder `root`."""
        return cls(root / HOME / "nights" / name)

    @property
    def path(self) -> Path:
        """The file of events."""
        return self.folder / "ledger.jsonl"

    def place(self, night: int) -> Path:
        """Return the folder with the steps of a night."""
        return self.folder / f"{night:04d}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock that keeps out other nights of this skill.

        Raises:
            NightRunningError: one is running.
            SkillcError: the folder cannot be written.
        """
        from filelock import FileLock, Timeout

        try:
            make_home(self.folder.parent.parent)
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / "lock", timeout=0):
                yield
        except Timeout as problem:
            raise NightRunningError(
                f"another night of `{self.folder.name}` is running",
                hint="wait until it ends; two nights never run at once",
            ) from problem
        except OSError as problem:
            raise SkillcError(f"`{self.folder}` cannot be written: {problem.strerror}") from problem

    # ---- events ----------------------------------------------------------------------------------

    def events(self) -> list[Json]:
        """Return the events, oldest first; a last line that a kill cut short is left out.

        Raises:
            SkillcError: the file cannot be read, or a whole line is no event.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as problem:
            raise SkillcError(f"`{self.path}` cannot be read: {problem}") from problem
        *whole, _ = text.split("\n")
        found = []
        for number, line in enumerate(whole, 1):
            try:
                event = json.loads(line)
                _ = event["event"], event["night"]
            except (ValueError, TypeError, KeyError) as problem:
                raise SkillcError(
                    f"line {number} of `{self.path}` is no event",
                    hint="restore the file: it counts what was spent of the error budget",
                ) from problem
            found.append(event)
        return found

    def append(self, event: Mapping[str, Any]) -> None:
        """Append an event unless it is there already; it is on the disk when this returns.

        Raises:
            SkillcError: it cannot be written.
        """
        if dict(event) in self.events():
            return
        line = json.dumps(event, ensure_ascii=False, sort_keys=True) + "\n"
        try:
            with self.path.open("ab+") as file:
                content = (file.seek(0), file.read())[1]
                # Remove a line that a kill cut short: the action that it announces was not done.
                file.truncate(content.rfind(b"\n") + 1)
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise SkillcError(f"`{self.path}` cannot be written: {problem.strerror}") from problem

    def open_night(self, date: str) -> tuple[int, bool]:
        """Begin a night, or resume the one that a kill left open; return its number and whether it was open.

        Args:
            date: of the night, as `2026-11-23`; an open night keeps its own.

        Raises:
            SkillcError: the ledger cannot be read or written.
        """
        began = [each for each in self.events() if each["event"] == "began"]
        last = int(began[-1]["night"]) if began else 0
        if last and not self.record_path(last).exists():
            return last, True
        self.append({"event": "began", "night": last + 1, "date": date})
        return last + 1, False

    def date_of(self, night: int) -> str:
        """Return the date on which a night began."""
        return next(str(each["date"]) for each in self.events() if each["event"] == "began" and each["night"] == night)

    # ---- steps and records -----------------------------------------------------------------------

    def step(self, night: int, name: str, work: Callable[[], Json]) -> Json:
        """Return the recorded result of a step; if there is none, do the work and record its result.

        Raises:
            SkillcError: a file cannot be read or written.
        """
        path = self.place(night) / f"{name}.json"
        if path.exists():
            return _read(path)
        self._write(path, work())
        # Read back, so that a resumed night has equal values.
        return _read(path)

    def record_path(self, night: int) -> Path:
        """Return the record of a finished night."""
        return self.folder / f"{night:04d}.json"

    def close_night(self, night: int, record: Json) -> Json:
        """End a night by writing its record, and return the record as read back.

        Raises:
            SkillcError: it cannot be written.
        """
        self._write(self.record_path(night), record)
        return _read(self.record_path(night))

    def records(self) -> list[Json]:
        """Return the records of all finished nights, in order.

        Raises:
            SkillcError: one cannot be read.
        """
        names = sorted(self.folder.glob("[0-9][0-9][0-9][0-9]*.json")) if self.folder.is_dir() else []
        return [_read(path) for path in names]

    def _write(self, path: Path, value: Json) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
        except OSError as problem:
            raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem


def _read(path: Path) -> Json:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise SkillcError(f"`{path}` cannot be read: {problem}", hint="restore the folder of the nights") from problem
    if not isinstance(value, dict):
        raise SkillcError(f"`{path}` is no record of a night", hint="restore the folder of the nights")
    return value
