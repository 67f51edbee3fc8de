"""A run's folder: its store, and what it is a run of."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.store.run_store import RunStore

HOME = ".skillc"
_EARLIER = ("decisions.jsonl", "outcomes.jsonl", "ledger.jsonl", "lock")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folders and files of one run.

    Attributes:
        home: the `.skillc` folder.
        run_id: hex digest that names the run.
    """

    home: Path
    run_id: str

    @property
    def cache(self) -> Path:
        """The folder of cached model replies, shared by all runs beside this program."""
        return self.home / "cache"

    @property
    def path(self) -> Path:
        """The run's own folder."""
        return self.home / "runs" / self.run_id[:16]

    @property
    def about(self) -> Path:
        """The file that describes the run."""
        return self.path / "run.json"

    @contextmanager
    def open_store(self) -> Iterator[RunStore]:
        """Open the run's store, which locks the run for this process.

        Raises:
            SkillcError: another process compiles this very run, the folder cannot be made, or the store is damaged.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            make_home(self.home)
        except OSError as problem:
            raise SkillcError(f"the run folder `{self.path}` cannot be written: {problem.strerror}") from problem
        with closing(RunStore(self.path / "run.db")) as store:
            yield store

    def forget_other_format(self, store: RunStore) -> bool:
        """Remove the files of an earlier version's format; return whether the run was recorded in one."""
        found = [path for name in _EARLIER if (path := self.path / name).exists()]
        for path in found:
            path.unlink(missing_ok=True)
        return bool(found) or store.outdated


def make_home(home: Path) -> None:
    """Make the `.skillc` folder, which git ignores.

    Raises:
        OSError: it cannot be written.
    """
    home.mkdir(parents=True, exist_ok=True)
    (home / ".gitignore").write_text("*\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a run is a run of.

    Attributes:
        program: the program's file name.
        parts: digest of each thing that its decisions depend on, by the name that messages use.
        salt: part of every cache key; empty where earlier replies may be used.
        finished: whether the run is finished.
    """

    program: str
    parts: Mapping[str, str]
    salt: str = ""
    finished: bool = False


def begin_run(folder: RunFolder, store: RunStore, program: str, parts: Mapping[str, str], *, fresh: bool) -> RunInfo:
    """Resume the run in a folder, or begin it; `fresh` clears its store.

    Raises:
        SkillcError: the folder cannot be written.
    """
    known = _read(folder.about)
    if fresh:
        store.clear()
        known = RunInfo(program, parts, salt=str(time.time_ns()))
    elif known is None or known.finished:
        known = RunInfo(program, parts, salt=known.salt if known else "")
    _write(folder, known)
    return known


def changed_since_unfinished(folder: RunFolder, program: str, parts: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the parts that differ from the newest unfinished run of a program; None where this run is known."""
    if folder.about.exists():
        return None
    runs = [path for path in (folder.home / "runs").glob("*/run.json") if path != folder.about]
    for path in sorted(runs, key=lambda path: path.stat().st_mtime, reverse=True):
        about = _read(path)
        if about is not None and about.program == program:
            if about.finished:
                return None
            return tuple(name for name, part in parts.items() if about.parts.get(name) != part)
    return None


def finish_run(folder: RunFolder, about: RunInfo) -> None:
    """Record that the run is finished.

    Raises:
        SkillcError: the folder cannot be written.
    """
    _write(folder, replace(about, finished=True))


def _write(folder: RunFolder, about: RunInfo) -> None:
    try:
        write_atomically(folder.about, json.dumps(asdict(about), indent=2, sort_keys=True) + "\n")
    except OSError as problem:
        raise _unwritable(folder, problem) from problem


def _unwritable(folder: RunFolder, problem: OSError) -> SkillcError:
    return SkillcError(f"the run folder `{folder.path}` cannot be written: {problem.strerror}")


def _read(path: Path) -> RunInfo | None:
    try:
        told: Any = json.loads(path.read_text(encoding="utf-8"))
        return RunInfo(told["program"], told["parts"], told["salt"], told["finished"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
