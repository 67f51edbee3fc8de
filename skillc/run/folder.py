"""Where a run keeps what is not for git: `.skillc/` beside the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from skillc.errors import SkillcError

HOME = ".skillc"


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
    def decisions(self) -> Path:
        """The hash-chained decisions."""
        return self.path / "decisions.jsonl"

    @property
    def outcomes(self) -> Path:
        """What every rollout and every reply of the optimizer gave, as it came in."""
        return self.path / "outcomes.jsonl"

    @property
    def ledger(self) -> Path:
        """What was paid."""
        return self.path / "ledger.jsonl"

    @property
    def about(self) -> Path:
        """What the run is of."""
        return self.path / "run.json"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the run for one process.

        Raises:
            SkillcError: another process compiles this very run, or the folder cannot be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            make_home(self.home)
        except OSError as problem:
            raise SkillcError(f"the run folder `{self.path}` cannot be written: {problem.strerror}") from problem
        lock = FileLock(self.path / "lock", timeout=0)
        try:
            lock.acquire()
        except Timeout as problem:
            raise SkillcError(
                "another process is compiling this very run",
                hint=f"wait for it, or stop it; its folder is `{self.path}`",
            ) from problem
        try:
            yield
        finally:
            lock.release()


def make_home(home: Path) -> None:
    """Makes the `.skillc` folder, which git is to pass over.

    Raises:
        OSError: it cannot be written.
    """
    home.mkdir(parents=True, exist_ok=True)
    (home / ".gitignore").write_text("*\n", encoding="utf-8")
