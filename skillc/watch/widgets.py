"""Parts of the terminal views: the stage, the gates as their operands narrow, scores, spend and calls in flight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from skillc.dataclass import dataclass
from skillc.gates.draw import ComparisonState, GateState, SideState
from skillc.optimize.host import CandidateProgress
from skillc.review.decisions import Truth
from skillc.review.words import GATE_WORDS
from skillc.run.progress import Status, evidence_text, one_line
from skillc.text import counted

_TRUTH_STYLES: Mapping[Truth, str] = {"true": "green", "false": "red", "unknown": "yellow"}
MARKS: Mapping[str, tuple[str, str, str]] = {
    truth: (mark, _TRUTH_STYLES[truth], word) for truth, (mark, word) in GATE_WORDS.items()
}
"""Of a truth its sign, style and word."""
_LEVELS = "▁▂▃▄▅▆▇█"
_LABEL = 9
_BAR, _LEAST_BAR = 30, 8


def fact(name: str, text: str | Text) -> Text:
    """Return a labelled line."""
    line = Text(f"{name:<{_LABEL}} ", style="dim", no_wrap=True, overflow="ellipsis")
    if isinstance(text, str):
        return line.append(text, style="not dim")
    return Text.assemble(line, text, no_wrap=True, overflow="ellipsis")


def stage_row(status: Status, epoch: str) -> RenderableType:
    """Return where a run is: the place, the stage, and how much of it is done."""
    where = f"{status.place}  {epoch}  " if status.place else ""
    head = Table.grid(padding=(0, 1), expand=True)
    head.add_column(no_wrap=True, overflow="ellipsis")
    if status.waiting or not status.total:
        head.add_row(Text(where + one_line(status.waiting or status.stage), style="bold"))
        return head
    head.add_column(ratio=1)
    head.add_column(no_wrap=True, justify="right")
    head.add_row(
        Text(where + one_line(status.stage), style="bold"),
        ProgressBar(total=status.total, completed=status.done),
        f"{status.done:,}/{status.total:,}",
    )
    return head


def score_rows(status: Status) -> list[Text]:
    """Return the evidence on each candidate."""
    return [fact("score", evidence_text(each, status)) for each in status.seen]


def in_flight_row(in_flight: Mapping[str, int]) -> Text | None:
    """Return how many calls are in flight, None without any."""
    if not in_flight:
        return None
    parts = ", ".join(f"{one_line(role)} {count:,}" for role, count in in_flight.items())
    return fact("in flight", f"{counted(sum(in_flight.values()), 'call')}: {parts}")


def spark(values: Sequence[float | None], width: int) -> str:
    """Return values as a line of levels, at most `width` of them: the last ones, or evenly chosen ones."""
    known = [value for value in values if value is not None]
    if not known or width < 1:
        return ""
    count = min(width, len(values))
    shown = [values[i * (len(values) - 1) // max(1, count - 1)] for i in range(count)]
    low, high = min(known), max(known)
    top = len(_LEVELS) - 1
    return "".join(
        " " if value is None else _LEVELS[top // 2 if high == low else round((value - low) / (high - low) * top)]
        for value in shown
    )


# ---- gates ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of a bar."""

    low: float
    high: float

    @classmethod
    def of(cls, sides: Sequence[SideState]) -> Axis:
        """Return the range of the finite ends of sides, with some room."""
        ends = [end for side in sides for end in (side.low, side.high) if end is not None]
        low, high = min(ends, default=0.0), max(ends, default=1.0)
        room = (high - low) * 0.04 or abs(low) * 0.1 or 1.0
        return cls(low - room, high + room)

    def cell(self, value: float | None, width: int, *, end: int) -> int:
        """Return the column of a value; `end` for an infinite one."""
        if value is None:
            return end
        return min(width - 1, max(0, int((value - self.low) / (self.high - self.low) * width)))


def bar(side: SideState, bound: SideState, axis: Axis, width: int, style: str) -> Text:
    """Draw an interval, and across it the place of the value that it is compared with."""
    first, last = axis.cell(side.low, width, end=0), axis.cell(side.high, width, end=width - 1)
    cells = [("·", "dim")] * width
    for i in range(first, last + 1):
        cells[i] = ("━", style)
    if first == last:
        cells[first] = ("◆", style)
    low, high = axis.cell(bound.low, width, end=0), axis.cell(bound.high, width, end=width - 1)
    for i in {low, high} if bound.low != bound.high else {low}:
        crossed = first <= i <= last and first != last
        cells[i] = ("╋" if crossed else "┃", "bold")
    return Text.assemble(*cells)


def gate_rows(
    gates: Sequence[GateState], first: Sequence[GateState], width: int, *, many: str = "", names: int = 14
) -> list[Text]:
    """Return a row for each comparison of gates: its truth, the interval against the bound, and both in words.

    Args:
        gates: on the evidence so far.
        first: on the first evidence, whose range the bars keep while they narrow.
        width: of a row.
        many: a mark of the candidate among several.
        names: the most columns of a name.
    """
    before = {gate.name: gate.comparisons for gate in first}
    column = min(names, max((cell_len(one_line(gate.name)) for gate in gates), default=0))
    every = [each for gate in gates for each in gate.comparisons]
    # All bars have one width, so that rows can be compared.
    room = width - cell_len(many) - column - 9
    bars = min([_BAR, *(room - cell_len(_sides(each)) - 2 for each in every)])
    rows = []
    for gate in gates:
        old = before.get(gate.name, ())
        for i, each in enumerate(gate.comparisons):
            start = old[i] if i < len(old) and old[i].left.text == each.left.text else each
            name = Text(one_line(gate.name) if i == 0 else "")
            name.truncate(column, overflow="ellipsis", pad=True)
            rows.append(_gate_row(name, many, each, start, bars))
    return rows


def _sides(each: ComparisonState) -> str:
    return one_line(f"{each.left.shown} {each.operator} {each.right.shown}")


def _gate_row(name: Text, many: str, each: ComparisonState, start: ComparisonState, bars: int) -> Text:
    sign, style, word = MARKS.get(each.truth, MARKS["unknown"])
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{many}{sign} ", style=style).append_text(name).append(f" {word:<5} ", style=style)
    if bars >= _LEAST_BAR:
        axis = Axis.of([start.left, start.right, each.left, each.right])
        line.append_text(bar(each.left, each.right, axis, bars, style)).append("  ")
    return line.append(_sides(each))


def gates_of(seen: Sequence[CandidateProgress], first: Sequence[CandidateProgress], width: int) -> list[Text]:
    """Return the rows of the gates of all candidates that are still in the race."""
    earlier = {each.candidate: each.gates for each in first}
    rows = []
    for each in seen:
        many = f"#{each.candidate} " if len(seen) > 1 else ""
        rows += gate_rows(each.gates, earlier.get(each.candidate, ()), width, many=many)
    return rows
