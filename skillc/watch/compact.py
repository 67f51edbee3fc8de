"""The live area of a compile: a few lines below the printed decisions, of the parts that `watch` shows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Self

from pydantic import JsonValue
from rich.console import Console, Group, RenderableType
from rich.live import Live

from skillc.run.progress import (
    InFlight,
    LineProgress,
    Progress,
    RunFacts,
    Snapshot,
    one_line,
    percent,
)
from skillc.watch.charset import Encodable
from skillc.watch.widgets import fact, gates_of, in_flight_row, score_rows, spark, stage_row

_MOST_SCORES = 2
_MOST_GATES = 4
_SPARK = 40


class LiveProgress(LineProgress):
    """Keeps a live area of at most eleven lines below the printed decisions and notes."""

    @cached_property
    def _live(self) -> Live:
        return Live(get_renderable=self.area, console=self._console, refresh_per_second=4, transient=True)

    @cached_property
    def _means(self) -> list[float | None]:
        """The incumbent's mean before each decision, for the line of levels."""
        return []

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def changed(self, what: str) -> None:
        """Leave it to the next refresh."""

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """Keep the incumbent's mean, and print the decision."""
        goal = record.get("goal")
        self._means.append(_mean(goal.get("incumbent")) if isinstance(goal, dict) else None)
        super().decided(record)

    def area(self) -> RenderableType:
        """Render the live area."""
        status, left, width = self.status, self.left(), self._console.width
        lines: list[RenderableType] = [stage_row(status, self.epoch_text())]
        now = _mean(status.incumbent)
        if status.seen:
            lines += score_rows(status)[:_MOST_SCORES]
            lines += gates_of(status.seen, status.first_seen, width)[:_MOST_GATES]
        elif now is not None:
            levels = spark([*self._means, now], max(0, min(_SPARK, width - 40)))
            lines.append(fact("score", f"incumbent {percent(status.incumbent).strip()}  {levels}".rstrip()))
        edits = [edit for each in status.edits for edit in each]
        if edits:
            lines.append(fact("edits", f"{len(edits)}: " + "; ".join(one_line(edit) for edit in edits)))
        if (calls := in_flight_row(self.in_flight())) is not None:
            lines.append(calls)
        lines.append(fact("spent", ", ".join(self.spent_parts())))
        if left:
            lines.append(fact("left", left.removesuffix(" left")))
        return Encodable(Group(*lines))


def _mean(value: JsonValue) -> float | None:
    if isinstance(value, list):
        value = value[0] if value else None
    try:
        return float(value) if isinstance(value, str | int | float) else None
    except ValueError:
        return None


def display(
    console: Console, facts: RunFacts, *, quiet: bool, spent: Snapshot, in_flight: InFlight | None = None
) -> Progress:
    """Return the display for people: live on a terminal that can move its cursor, plain lines elsewhere."""
    if quiet:
        return Progress(facts, spent=spent)
    live = console.is_terminal and not console.is_dumb_terminal
    return (LiveProgress if live else LineProgress)(console, facts, spent=spent, in_flight=in_flight)
