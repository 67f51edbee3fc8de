"""The geometry of the curve of a run, for an SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, log10

from skillc.dataclass import dataclass
from skillc.plan.schema import MetricPlan
from skillc.review.confidence import score
from skillc.review.curve import Curve, CurvePoint, Estimate

_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 706, 14, 248
_HELD_OUT = 130
_ROWS, _COLUMNS = 5, 12
_NICE = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis, and its position."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A vertical bar; `low` and `high` are None without an interval."""

    x: float
    low: float | None
    high: float | None
    y: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """The incumbent after a decision."""

    x: float
    y: float
    changed: bool


@dataclass(frozen=True, slots=True)
class CurveChart:
    """Positions in an image of `width` by `height`.

    Attributes:
        rows, columns: labels of the axes.
        line: the path of the incumbent.
        held_out: bars of the initial and the best skill on test, right of `split`.
        title: the curve in words.
    """

    rows: tuple[Tick, ...]
    columns: tuple[Tick, ...]
    line: str
    points: tuple[Dot, ...]
    intervals: tuple[Bar, ...]
    candidates: tuple[Bar, ...]
    held_out: tuple[Bar, ...]
    split: float
    title: str
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP
    bottom: int = _BOTTOM

    @property
    def has_intervals(self) -> bool:
        """Whether any interval is known."""
        return bool(self.intervals)


def chart_of(curve: Curve, metric: MetricPlan) -> CurveChart | None:
    """Return the chart of a curve; None if nothing was measured."""
    held_out = [each for each in curve.held_out if each is not None]
    known = [(i, point, point.incumbent) for i, point in enumerate(curve.points) if point.incumbent is not None]
    if not known:
        return None
    low, high, step = axis_range([each for _, _, each in known] + held_out, curve.points, metric)

    def y(value: Fraction | float) -> float:
        share = (min(max(float(value), low), high) - low) / (high - low)
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    split = _RIGHT - _HELD_OUT if held_out else _RIGHT
    count = max(1, len(curve.points) - 1)

    def x(i: int) -> float:
        return round(_LEFT + 12 + i * (split - _LEFT - 24) / count, 1)

    dots = [Dot(x(i), y(each.mean), point.changed) for i, point, each in known]
    shown = range(0, len(curve.points), max(1, ceil(len(curve.points) / _COLUMNS)))
    return CurveChart(
        rows=tuple(Tick(y(value), score(Fraction(value), metric)) for value in axis_steps(low, high, step)),
        columns=tuple(Tick(x(i), "start" if i == 0 else str(i)) for i in shown),
        line=_path(dots),
        points=tuple(dots),
        intervals=tuple(
            Bar(x(i), y(each.interval[0]), y(each.interval[1]))
            for i, point, each in known
            # The interval of an incumbent that stays is the same.
            if each.interval is not None and (point.changed or i == 0)
        ),
        candidates=tuple(
            Bar(x(i), y(bound.low), y(bound.high))
            for i, point in enumerate(curve.points)
            if (bound := point.candidate) is not None
        ),
        held_out=tuple(_held_out(curve, split, y)),
        split=split,
        title=curve_title(known[0][2], known[-1][2], curve, metric),
    )


def _held_out(curve: Curve, split: float, y: Callable[[Fraction], float]) -> Iterable[Bar]:
    for i, (each, text) in enumerate(zip(curve.held_out, ("initial", "compiled"), strict=True)):
        if each is not None:
            low, high = (None, None) if each.interval is None else (y(each.interval[0]), y(each.interval[1]))
            yield Bar(round(split + _HELD_OUT * (0.3 + 0.4 * i), 1), low, high, y(each.mean), text)


def _path(dots: Sequence[Dot]) -> str:
    """Return steps: an incumbent holds until the next decision that changes it."""
    parts = [f"M{dots[0].x} {dots[0].y}"]
    for before, dot in pairwise(dots):
        parts.append(f"H{dot.x}" + (f"V{dot.y}" if dot.y != before.y else ""))
    return "".join(parts)


def axis_range(
    estimates: Sequence[Estimate], points: Sequence[CurvePoint], metric: MetricPlan
) -> tuple[float, float, float]:
    """Return the ends of the axis and the distance of its labels."""
    ends = [float(end) for each in estimates for end in (each.interval or (each.mean, each.mean))]
    ends += [float(point.candidate.high) for point in points if point.candidate is not None]
    low, high = min(ends), max(ends)
    if low == high:
        low, high = low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1)
    rough = (high - low) / _ROWS
    size = 10.0 ** floor(log10(rough))
    step = next(size * nice for nice in _NICE if size * nice >= rough * 0.999)
    low, high = floor(low / step) * step, ceil(high / step) * step
    return max(low, float(metric.low)), min(high, float(metric.high)), step


def axis_steps(low: float, high: float, step: float) -> list[float]:
    """Return the values of the labels of an axis."""
    first = ceil(low / step - 1e-9)
    return [round(i * step, 9) for i in range(first, floor(high / step + 1e-9) + 1)]


def curve_title(first: Estimate, last: Estimate, curve: Curve, metric: MetricPlan) -> str:
    """Return the curve in words."""
    text = f"validation (selected on) from {score(first.mean, metric)} to {score(last.mean, metric)}"
    initial, best = curve.held_out
    if initial is None or best is None:
        return text
    return f"{text}; test (held out) from {score(initial.mean, metric)} to {score(best.mean, metric)}"
