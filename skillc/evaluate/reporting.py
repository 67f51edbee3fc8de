"""Figures, tables and lines that the reports of measurements share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from pydantic import JsonValue
from rich.table import Table

from skillc.evaluate.measuring import Measured, MeasuringJob
from skillc.gates import units
from skillc.gates.units import SHARE
from skillc.json_values import rounded
from skillc.optimize.gate.decide import DOWN
from skillc.pipeline.report import percent, points, spent_line, spent_lines
from skillc.plan.schema import MetricPlan
from skillc.review.confidence import difference, score
from skillc.text import counted

Ends = tuple[Fraction, Fraction] | tuple[float, float] | None


def interval(ends: Ends) -> JsonValue:
    """Return the ends of an interval for JSON, to six digits."""
    return None if ends is None else [rounded(end) for end in ends]


def percent_range(ends: Ends) -> str:
    """Render an interval of a mean in percent: `41.2 – 60.0`."""
    return "–" if ends is None else f"{float(ends[0]) * 100:.1f} – {float(ends[1]) * 100:.1f}"


def has_percent(metric: MetricPlan) -> bool:
    """Return whether a metric is a share, whose means are shown in percent and differences in points."""
    return metric.shown_unit == SHARE


def mean_text(value: Fraction | None, metric: MetricPlan) -> str:
    """Render a mean of a metric in its unit: `61.9 %`, `3.2 turns`."""
    return percent(value) if has_percent(metric) else score(value, metric)


def mean_range(ends: Ends, metric: MetricPlan) -> str:
    """Render the interval of a mean: `41.2 – 60.0`."""
    if ends is None or has_percent(metric):
        return percent_range(ends)
    return " – ".join(score(Fraction(end), metric) for end in ends)


def gain_text(value: Fraction | None, metric: MetricPlan) -> str:
    """Render a difference of two means: `+12.1` in points, else in the metric's unit."""
    if value is None:
        return "–"
    return points(value) if has_percent(metric) else difference(value, metric)


def gain_range(ends: Ends, metric: MetricPlan) -> str:
    """Render the interval of a difference of two means: `-1.0 to +4.2`."""
    return difference_range(ends, lambda end: gain_text(end, metric))


def difference_range(ends: Ends, render: Callable[[Fraction], str] = points) -> str:
    """Render an interval of a difference of two means in points: `-1.0 to +4.2`."""
    return "–" if ends is None else " to ".join(render(Fraction(end)) for end in ends)


def p_value(p: Fraction | None, digits: int = 4) -> str:
    """Render a p-value with so many digits."""
    return (
        "–" if p is None else f"{float(p):.{digits}f}" if p >= Fraction(1, 10**digits) else f"<{10**-digits:.{digits}f}"
    )


def bare_table() -> Table:
    """Return a table without lines."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def at_most(job: MeasuringJob) -> JsonValue:
    """Return the bound of a measurement for JSON."""
    most = job.bound.most
    return {"calls": most.calls, "tokens": most.tokens, "preflight": job.preflight_calls}


def bound_line(parts: Sequence[str], job: MeasuringJob, more: str = "") -> str:
    """Render what is measured, as parts that multiply and the text after them, and the bound of its spending."""
    most, about = job.bound.most, job.bound.estimate
    preflight = f", and {counted(job.preflight_calls, 'preflight call')}" if job.preflight_calls else ""
    return (
        f"{' x '.join(parts)}{more}: at most {counted(most.calls, 'call')}, {units.tokens(most.tokens)} tokens, "
        f"{units.dollars(most.cost)} (about {units.tokens(about.tokens)}, {units.dollars(about.cost)}){preflight}"
    )


def ending_json(found: Measured) -> dict[str, JsonValue]:
    """Return the bound, the spending and the end of a measurement for JSON."""
    return {
        "at_most": at_most(found.job),
        "spent": found.spent,
        "served": [served.to_json() for served in found.served],
        "stopped": found.stopped,
        "lost": None if found.lost is None else found.lost.message,
    }


def ending_lines(found: Measured, judges: Sequence[str] = ()) -> list[str]:
    """Render what a measurement spent, with the lines of its judges, and why it ended early."""
    lines, paid = [*spent_lines(found.spent), *judges], spent_line(found.spent, "paid")
    if paid != spent_line(found.spent):
        lines.append(f"paid      {paid}; the rest came from the cache")
    lines += [f"served    {served.line}" for served in found.served]
    if found.lost is not None:
        lines += [f"lost      {found.lost.message}", f"          {found.lost.hint}"]
    elif found.stopped not in (None, DOWN):
        larger = f" with a larger `{found.stopped}`" if found.stopped not in ("interrupted", "time") else ""
        lines.append(f"stopped   {why_stopped(found)}; the same command{larger} resumes, with all replies so far")
    return lines


def why_stopped(found: Measured) -> str:
    """Render why a measurement ended early."""
    reasons = {"interrupted": "interrupted", DOWN: "a model stayed out of reach"}
    return reasons.get(found.stopped or "", f"the budget's cap on `{found.stopped}` was reached")
