"""A line chart with bands as SVG text: the same bytes for the same figures, so that git shows what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.search.statistics import Estimate

WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 50, 660, 36, 370
_COLOURS = ("#1764ab", "#c2510c", "#5b8c2a", "#7a4fa3")

Points = Sequence[tuple[int, Estimate]]


def chart(series: Mapping[str, Points], *, x_label: str, y_label: str) -> str:
    """The chart of some series over one range of calls; the y axis goes from 0 to 1."""
    most = max(calls for points in series.values() for calls, _ in points)

    def x(calls: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * calls / most, 1)

    def y(value: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * min(1.0, max(0.0, value)), 1)

    def path(points: Sequence[tuple[int, float]]) -> str:
        return " ".join(f"{x(calls)},{y(value)}" for calls, value in points)

    lines = []
    for colour, (name, points) in zip(_COLOURS, series.items(), strict=False):
        upper = [(calls, each.high) for calls, each in points]
        lower = [(calls, each.low) for calls, each in reversed(points)]
        lines.append(
            {
                "name": name,
                "colour": colour,
                "points": path([(calls, each.value) for calls, each in points]),
                "band": path([*upper, *lower]),
                "label_at": y(points[-1][1].value) + 4,
            }
        )
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, autoescape=True
    )
    return environment.get_template("chart.svg.j2").render(
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=RIGHT,
        bottom=BOTTOM,
        x_ticks=[{"at": x(most * i / 4), "text": f"{most * i // 4:,}"} for i in range(5)],
        y_ticks=[{"at": y(i / 5), "text": f"{i / 5:.1f}"} for i in range(6)],
        x_label=x_label,
        y_label=y_label,
        lines=lines,
    )
