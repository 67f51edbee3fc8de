"""What a compile shows while it runs: one live line for the stage at hand, one printed line for each decision."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType

from pydantic import JsonValue
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

_STYLE = {
    "accept": "green",
    "reject": "red",
    "beaten": "dim",
    "undecided": "yellow",
    "empty": "dim",
    "rollback": "yellow",
}


class Terminal:
    """Progress on a terminal, or plain lines where standard error is none.

    Args:
        console: where to write.
        spent: gives what was spent so far, as a short text.
        deadline: seconds that the run may take, None for no limit.
    """

    def __init__(self, console: Console, *, spent: Callable[[], str], deadline: float | None = None) -> None:
        self._console = console
        self._spent = spent
        self._deadline = deadline
        self._began = time.monotonic()
        self._open = False
        self._stage = "starting"
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[spent]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(self._stage, total=None, spent="")

    def __enter__(self) -> Terminal:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def stage(self, name: str, total: int) -> None:
        """A stage begins that will take `total` steps of work."""
        self._stage = name
        self._progress.reset(self._task, description=name, total=total or None, spent=self._status())

    def advance(self, count: int = 1) -> None:
        """Some work of the stage is done."""
        self._progress.update(self._task, advance=count, spent=self._status())

    def waiting(self, text: str | None) -> None:
        """What the whole run waits for just now, shown in place of the stage; None shows the stage again."""
        self._progress.update(self._task, description=text or self._stage)

    def note(self, message: str) -> None:
        """Something that the user should know, which stops nothing."""
        self._console.print(Text(f"note: {message}", style="yellow"))

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """A decision was made: one line."""
        goal = record.get("goal")
        self._open = isinstance(goal, dict) and isinstance(goal.get("candidate"), list)
        self._console.print(decision_line(record), soft_wrap=True)

    def stop_wanted(self) -> str | None:
        """Never: a terminal only shows."""
        return None

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        """The validation of an accepted candidate is complete: one line, where the decision came before that."""
        if not self._open:
            return
        line = Text(" " * 27).append(f"= {_percent(record['goal'])} on all of validation", style="dim")
        self._console.print(line, soft_wrap=True)

    def _status(self) -> str:
        if self._deadline is None:
            return self._spent()
        left = max(0.0, self._deadline - (time.monotonic() - self._began))
        return f"{self._spent()}, {left / 60:.0f} min left"


def decision_line(record: Mapping[str, JsonValue]) -> Text:
    """One decision as a line: where, what, the goal before and after, the evidence, the reason."""
    result = str(record["result"])
    line = Text(f"  {_place(record):<14} ", no_wrap=True, overflow="ellipsis")
    line.append(f"{result:<10}", style=_STYLE.get(result, ""))
    goal = record.get("goal")
    if isinstance(goal, dict):
        after = f" → {_percent(goal.get('candidate'))}" if result == "accept" else ""
        line.append(f"{_percent(goal.get('incumbent'))}{after}".ljust(17))
    if record.get("of"):
        line.append(f" +{record['gains']} −{record['losses']} on {record['evaluated']} of {record['of']}", style="dim")
    why = _why(record)
    if why:
        line.append(f"   {why}", style="dim")
    return line


def _place(record: Mapping[str, JsonValue]) -> str:
    """`step 3/24`, of a pool with the candidate's number: `step 3/24 #2`."""
    pool = record.get("pool")
    return f"{record['place']}" + (f" #{pool.get('candidate')}" if isinstance(pool, dict) else "")


def _why(record: Mapping[str, JsonValue]) -> str:
    """The gate that failed with the values under it, or whatever else is to be said."""
    brief = f": {record['brief']}" if record.get("brief") else ""
    kept = record.get("kept")
    also = f", kept as a parent: right on {len(kept)} that no other is" if isinstance(kept, list) else ""
    if record.get("blame"):
        return f"gate `{record['blame']}` failed{brief}{also}"
    if record["result"] in ("empty", "undecided", "beaten", "rollback"):
        return f"{record.get('reason', '')}{brief}"
    return ""


def _percent(value: JsonValue) -> str:
    """A mean in percent; of one that is known in part the least that it can be."""
    if isinstance(value, list):
        return f"{_percent(value[0]).rstrip(' %')}+ %"
    return f"{float(value) * 100:5.1f} %" if isinstance(value, str | int | float) else "–"
