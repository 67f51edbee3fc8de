"""The curve of a run in characters: incumbents with intervals, candidates, and the held-out means beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import pairwise

from rich.text import Text

from skillc.dataclass import dataclass
from skillc.plan.schema import MetricPlan
from skillc.review.chart import axis_range, axis_steps, curve_title
from skillc.review.confidence import score
from skillc.review.curve import Curve, CurvePoint, Estimate
from skillc.review.decisions import Bound

_HELD_OUT = 22
# Below, the held-out means are left to the table of results.
_WIDE = 72
_LEAST = 5
_INCUMBENT, _INTERVAL, _REJECTED, _ACCEPTED, _OPEN = "bold cyan", "cyan", "red", "bold green", "yellow"


@dataclass(slots=True)
class _Canvas:
    """Cells of one character and one style; later ones cover earlier ones."""

    width: int
    height: int
    cells: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)

    def put(self, x: int, y: int, character: str, style: str) -> None:
        if 0 <= x < self.width and 0 <= y < self.height:
            self.cells[x, y] = (character, style)

    def column(self, x: int, top: int, bottom: int, character: str, style: str, ends: tuple[str, str]) -> None:
        """Draw a vertical bar from `top` to `bottom`, with its ends."""
        for y in range(top, bottom + 1):
            self.put(x, y, character, style)
        if bottom > top:
            self.put(x, top, ends[0], style)
            self.put(x, bottom, ends[1], style)

    def row(self, y: int) -> Text:
        return Text.assemble(*(self.cells.get((x, y), (" ", "")) for x in range(self.width)), no_wrap=True)


def plot(
    curve: Curve,
    metric: MetricPlan,
    width: int,
    height: int,
    *,
    at: int | None = None,
    open_: Sequence[Bound] = (),
) -> list[Text]:
    """Return the rows of the curve; the decision `at` is marked, counted from 1.

    Args:
        curve: of the run so far.
        metric: the goal.
        width: of the whole.
        height: of the whole, with axis and legend.
        at: None for no mark.
        open_: means of candidates whose gates are open, as far as they are measured.
    """
    known = [(i, point, point.incumbent) for i, point in enumerate(curve.points) if point.incumbent is not None]
    if not known or height < _LEAST:
        return [Text("nothing was measured so far", style="dim")]
    held_out = [each for each in curve.held_out if each is not None] if width >= _WIDE else []
    ends = [Estimate(each.low, (each.low, each.high), 0, 0) for each in open_]
    low, high, step = axis_range([each for _, _, each in known] + held_out + ends, curve.points, metric)
    labels = {value: score(Fraction(value), metric) for value in axis_steps(low, high, step)}
    margin = max(map(len, labels.values()), default=0) + 1
    rows = height - 3
    right = _HELD_OUT if held_out else 0
    canvas = _Canvas(max(8, width - margin - 1 - right), rows)

    def y(value: Fraction | float) -> int:
        share = (min(max(float(value), low), high) - low) / (high - low)
        return round((1 - share) * (rows - 1))

    *places, next_ = _places(len(curve.points) + 1, canvas.width)
    _draw(canvas, curve.points, places, y, at)
    for i, bound in enumerate(open_):
        canvas.column(next_ + i, y(bound.high), y(bound.low), "╎", _OPEN, ("┬", "┴"))
    by_row: dict[int, str] = {}
    for value, text in labels.items():
        by_row.setdefault(y(value), text)
    lines = []
    beside = _held_out_rows(curve, rows, y, metric) if held_out else None
    for row in range(rows):
        line = Text(f"{by_row.get(row, ''):>{margin - 1}} ", style="dim", no_wrap=True)
        line.append("┤" if row in by_row else "│", style="dim")
        line.append_text(canvas.row(row))
        if beside is not None:
            line.append_text(beside[row])
        lines.append(line)
    lines.append(_axis(places, margin, canvas.width, right))
    first, last = known[0][2], known[-1][2]
    lines.append(Text(curve_title(first, last, curve, metric), no_wrap=True, overflow="ellipsis"))
    lines.append(_legend())
    return lines


def _places(count: int, width: int) -> list[int]:
    """Return the column of each point."""
    gap = min(8.0, (width - 3) / max(1, count - 1))
    return [1 + round(i * gap) for i in range(count)]


def _draw(
    canvas: _Canvas, points: tuple[CurvePoint, ...], places: list[int], y: Callable[[Fraction], int], at: int | None
) -> None:
    if at is not None and 0 <= at < len(places):
        canvas.column(places[at], 0, canvas.height - 1, "┆", "dim", ("┆", "┆"))
    for x, point in zip(places, points, strict=True):
        bound = point.candidate
        if bound is not None:
            canvas.column(x, y(bound.high), y(bound.low), "╎", _REJECTED, ("┬", "┴"))
            if bound.exact:
                canvas.put(x, y(bound.low), "×", _REJECTED)
    for (x, point), (after, _) in pairwise(zip(places, points, strict=True)):
        if point.incumbent is not None:
            for column in range(x, after):
                if (column, y(point.incumbent.mean)) not in canvas.cells:
                    canvas.put(column, y(point.incumbent.mean), "━", _INCUMBENT)
    for i, (x, point) in enumerate(zip(places, points, strict=True)):
        if point.incumbent is None:
            continue
        interval = point.incumbent.interval
        if interval is not None and (point.changed or i == 0):
            canvas.column(x, y(interval[1]), y(interval[0]), "│", _INTERVAL, ("┬", "┴"))
        if point.changed or i == 0:
            canvas.put(x, y(point.incumbent.mean), "●", _ACCEPTED if point.changed else _INCUMBENT)
        elif i + 1 == len(points) or (x, y(point.incumbent.mean)) not in canvas.cells:
            canvas.put(x, y(point.incumbent.mean), "━", _INCUMBENT)


def _held_out_rows(curve: Curve, rows: int, y: Callable[[Fraction], int], metric: MetricPlan) -> list[Text]:
    canvas = _Canvas(_HELD_OUT, rows)
    for row in range(rows):
        canvas.put(0, row, "│", "dim")
    for x, each in zip((4, 13), curve.held_out, strict=True):
        if each is None:
            continue
        if each.interval is not None:
            canvas.column(x, y(each.interval[1]), y(each.interval[0]), "│", "magenta", ("┬", "┴"))
        canvas.put(x, y(each.mean), "◆", "bold magenta")
        for i, character in enumerate(score(each.mean, metric)):
            canvas.put(x + 2 + i, y(each.mean), character, "magenta")
    return [canvas.row(row) for row in range(rows)]


def _axis(places: list[int], margin: int, width: int, right: int) -> Text:
    """Return the numbers of decisions below the plot, as many as fit."""
    cells = [" "] * width
    free = 0
    for i, x in enumerate(places):
        text = "start" if i == 0 else str(i)
        start = max(0, x - (0 if i == 0 else len(text) // 2))
        if start >= free and start + len(text) <= width:
            cells[start : start + len(text)] = text
            free = start + len(text) + 1
    line = Text(" " * (margin + 1) + "".join(cells), style="dim", no_wrap=True)
    return line.append("test: initial, best".center(right) if right else "", style="magenta")


def _legend() -> Text:
    return Text.assemble(
        ("●", _ACCEPTED),
        (" accepted  ", "dim"),
        ("│", _INTERVAL),
        (" 95 % interval  ", "dim"),
        ("╎", _REJECTED),
        (" not accepted, as far as measured", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
