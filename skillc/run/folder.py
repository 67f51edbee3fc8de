"""The folder of a run: its store, and the description of its inputs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.store import RunStore

HOME = ".skillc"
_EARLIER_FORMAT = ("decisions.jsonl", "outcomes.jsonl", "ledger.jsonl", "lock")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folders and files of one run.

    Attributes:
        home: the `.skillc` folder.
        run_id: hex digest that identifies the run.
    """

    home: Path
    run_id: str

    @property
    def cache(self) -> Path:
        """The folder of cached model replies, shared by all runs beside this program."""
        return self.home / "cache"

    @property
    def path(self) -> Path:
        """The folder of this run."""
        return self.home / "runs" / self.run_id[:16]

    @property
    def info(self) -> Path:
        """The file that describes the run."""
        return self.path / "run.json"

    @contextmanager
    def open_store(self) -> Iterator[RunStore]:
        """Open the run's store, which locks the run for this process.

        Raises:
            SkillcError: another process compiles this run, the folder cannot be written, or the store is damaged.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            make_home(self.home)
        except OSError as problem:
            raise self._unwritable(problem) from problem
        with closing(RunStore(self.path / "run.db")) as store:
            yield store

    def remove_earlier_format(self, store: RunStore) -> bool:
        """Remove the files of an earlier format; return whether the run was recorded in one."""
        found = [path for name in _EARLIER_FORMAT if (path := self.path / name).exists()]
        for path in found:
            path.unlink(missing_ok=True)
        return bool(found) or store.outdated

    def write(self, info: RunInfo) -> None:
        """Write the description of the run.

        Raises:
            SkillcError: the folder cannot be written.
        """
        try:
            write_atomically(self.info, json.dumps(asdict(info), indent=2, sort_keys=True) + "\n")
        except OSError as problem:
            raise self._unwritable(problem) from problem

    def _unwritable(self, problem: OSError) -> SkillcError:
        return SkillcError(f"the run folder `{self.path}` cannot be written: {problem.strerror}")


def make_home(home: Path) -> None:
    """Make the `.skillc` folder, which git ignores.

    Raises:
        OSError: it cannot be written.
    """
    home.mkdir(parents=True, exist_ok=True)
    (home / ".gitignore").write_text("*\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Description of a run's inputs.

    Attributes:
        program: the program's file name.
        parts: digest of each input that its decisions depend on, by its name in messages.
        salt: part of every cache key; empty if cached replies may be used.
        finished: whether the run is finished.
    """

    program: str
    parts: Mapping[str, str]
    salt: str = ""
    finished: bool = False


def begin_run(folder: RunFolder, store: RunStore, program: str, parts: Mapping[str, str], *, fresh: bool) -> RunInfo:
    """Resume the run in a folder, or start it; `fresh` clears its store.

    Raises:
        SkillcError: the folder cannot be written.
    """
    info = _read(folder.info)
    if fresh:
        store.clear()
        info = RunInfo(program, parts, salt=str(time.time_ns()))
    elif info is None or info.finished:
        info = RunInfo(program, parts, salt=info.salt if info else "")
    folder.write(info)
    return info


def finish_run(folder: RunFolder, info: RunInfo) -> None:
    """Record that the run is finished.

    Raises:
        SkillcError: the folder cannot be written.
    """
    folder.write(replace(info, finished=True))


def changed_since_unfinished(folder: RunFolder, program: str, parts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the inputs that differ from the newest unfinished run of a program; none if this run exists."""
    if folder.info.exists():
        return ()
    runs = [path for path in (folder.home / "runs").glob("*/run.json") if path != folder.info]
    for path in sorted(runs, key=lambda path: path.stat().st_mtime, reverse=True):
        info = _read(path)
        if info is not None and info.program == program:
            return () if info.finished else tuple(name for name in parts if info.parts.get(name) != parts[name])
    return ()


def _read(path: Path) -> RunInfo | None:
    try:
        return RunInfo(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
