"""Where a run keeps what is not for git: `.skillc/` beside the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from skillc.errors import SkillcError
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
        """What the run is of."""
        return self.path / "run.json"

    @contextmanager
    def opened(self) -> Iterator[RunStore]:
        """Opens the run's store, which holds the run for this process.

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
        """Removes what an earlier version of skillc kept in files of another format; returns whether there was any."""
        found = [path for name in _EARLIER if (path := self.path / name).exists()]
        for path in found:
            path.unlink(missing_ok=True)
        return bool(found) or store.outdated


def make_home(home: Path) -> None:
    """Makes the `.skillc` folder, which git is to pass over.

    Raises:
        OSError: it cannot be written.
    """
    home.mkdir(parents=True, exist_ok=True)
    (home / ".gitignore").write_text("*\n", encoding="utf-8")
