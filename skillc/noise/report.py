"""A measurement of noise as JSON and as a table on a terminal."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.evaluate.reporting import bare_table, bound_line, ending_json, ending_lines, interval, percent_range
from skillc.json_values import rounded
from skillc.noise.run import NoiseAt, NoiseFound, NoiseJob
from skillc.optimize.null_arm import MOST_ACCEPTED, NullGates, amount, stricter_gates
from skillc.pipeline.report import percent, points
from skillc.stats.noise import Difference, margin
from skillc.text import counted

# A drift is reported at this level.
_DRIFT = 0.01


def noise_json(found: NoiseFound) -> dict[str, JsonValue]:
    """Return the object that `noise --json` prints: shares and goals to six digits, null if unknown."""
    job, floor = found.job, floor_of(found)
    return {
        "format_version": 1,
        "split": job.split,
        "skill": job.arm.name,
        "digest": job.arm.digest,
        "goal": job.plan.goal.name,
        "model": job.plan.models["target"].model,
        "examples": len(job.examples),
        "repeats": job.repeats,
        "samples": job.program.optimize.samples,
        "concurrency": [_at(each) for each in found.at],
        "between": [_between(first, other, each) for first, other, each in found.between],
        "margin": None if floor is None else rounded(floor),
        **ending_json(found),
    }


def _at(found: NoiseAt) -> JsonValue:
    noise = found.noise
    return {
        "concurrency": found.concurrency,
        "examples": noise.examples,
        "groups": noise.groups,
        "changed": noise.changed,
        "flips": rounded(noise.flips),
        "flips_interval": interval(noise.flips_interval),
        "loss": rounded(noise.loss),
        "means": [rounded(mean) for mean in noise.means],
        "deviation": rounded(noise.deviation),
        "deviation_interval": interval(noise.deviation_interval),
        "largest_difference": rounded(noise.largest),
        "drift_p": rounded(noise.drift),
        "gates": _gates(found.gates),
        "unmeasured": dict(found.unmeasured),
        "not_run": found.not_run,
    }


def _gates(found: NullGates | None) -> JsonValue:
    return None if found is None else {"accepted": found.accepted, "chance": rounded(found.chance)}


def _between(first: int, other: int, found: Difference) -> JsonValue:
    return {
        "concurrency": [first, other],
        "examples": found.examples,
        "flips": rounded(found.flips),
        "flips_interval": interval(found.flips_interval),
        "difference": rounded(found.mean),
        "difference_interval": interval(found.mean_interval),
    }


def floor_of(found: NoiseFound) -> float | None:
    """Return the gain on validation that the skill exceeds against itself in 5 % of comparisons, in points of the goal.

    It is that of the noisiest concurrency, for the size of the validation split and the program's samples.
    """
    job = found.job
    deviations = [
        each.noise.deviation * sqrt(len(job.examples) / len(job.dataset.validation))
        for each in found.at
        if each.noise.deviation is not None
    ]
    return margin(max(deviations), job.program.optimize.samples) if deviations else None


def preview_line(job: NoiseJob) -> str:
    """Return the line to print before anything is sent."""
    parts = [
        counted(len(job.examples), f"{job.split} example"),
        counted(job.repeats, "repeat"),
        counted(len(job.concurrency), "concurrency", "concurrencies"),
    ]
    return bound_line(parts, job)


def noise_table(found: NoiseFound) -> RenderableType:
    """Return the report of a measurement for a terminal of 80 columns."""
    job = found.job
    model = job.plan.models["target"].model
    head = f"{job.split}: {counted(len(job.examples), 'example')}, {counted(job.repeats, 'repeat')} each"
    lines = [Text(), Text(f"{head}, {job.arm.label}, {model}", style="bold"), Text()]
    return Group(*lines, _rows(found), Text(), *map(Text, _below(found)), Text("\n".join(ending_lines(found))))


def _rows(found: NoiseFound) -> Table:
    rows = bare_table()
    for name in ("at once", found.job.plan.goal.name, "flips", "95 %", "changed", "deviation", "largest"):
        rows.add_column(name, justify="right", no_wrap=True)
    for each in found.at:
        noise = each.noise
        mean = sum(noise.means, Fraction(0)) / len(noise.means) if noise.means else None
        rows.add_row(
            str(each.concurrency),
            percent(mean),
            percent(noise.flips),
            percent_range(noise.flips_interval),
            f"{noise.changed} of {noise.examples}",
            "–" if noise.deviation is None else f"{noise.deviation * 100:.2f}",
            "–" if noise.largest is None else f"{float(noise.largest) * 100:.2f}",
        )
    return rows


def _below(found: NoiseFound) -> list[str]:
    """Return the lines below the table: what the columns mean, between concurrencies, margin, gates, failures."""
    lines = [
        "flips: share of pairs of repeats in which an example scores differently",
        "changed: examples that score differently in some pair",
        "deviation: standard deviation of the mean of one repeat, in points",
        "largest: difference of the means of two repeats, in points",
        "",
    ]
    lines += [line for first, other, each in found.between for line in _between_line(first, other, each)]
    lines += [line for each in found.at for line in _drift(each, several=len(found.at) > 1)]
    lines += [*_floor(found), *_decided(found), *_missing(found)]
    return lines


def _between_line(first: int, other: int, found: Difference) -> list[str]:
    if found.flips is None or found.mean is None:
        return []
    line = f"between   {first} and {other} at once: {percent(found.flips)} of pairs differ"
    if found.mean_interval is None:
        return [line]
    low, high = found.mean_interval
    return [line, f"          the mean by {points(found.mean)} points (95 % interval {points(low)} to {points(high)})"]


def _drift(found: NoiseAt, *, several: bool) -> list[str]:
    noise = found.noise
    if noise.drift is None or noise.drift > _DRIFT:
        return []
    where = f" with {found.concurrency} at once" if several else ""
    return [
        f"drift     the repeats{where} differ by more than their examples' flips explain (p {noise.drift:.4f}):",
        "          something changes between repeats, such as the load or the version of the model",
    ]


def _floor(found: NoiseFound) -> list[str]:
    floor, job = floor_of(found), found.job
    if floor is None:
        return []
    samples = job.program.optimize.samples
    of = f"{counted(len(job.dataset.validation), 'validation example')}, {counted(samples, 'sample')} each"
    if floor == 0:
        return [f"margin    none is needed: every repeat scored every example alike ({of})"]
    return [
        f"margin    {amount(Fraction(floor), job.plan.goal)}: in 5 % of comparisons it gains more against itself",
        f"          ({of})",
    ]


def _decided(found: NoiseFound) -> list[str]:
    gates = [(each.concurrency, each.gates) for each in found.at if each.gates is not None]
    if not gates:
        return []
    if not any(each.chance for _, each in gates):
        return ["gates     never accept the skill against itself"]
    lines = [f"accept the skill against itself in {percent(each.chance)}, {many} at once" for many, each in gates]
    return [*("          " * (i > 0) + "gates     " * (i == 0) + line for i, line in enumerate(lines)), *advice(found)]


def advice(found: NoiseFound) -> list[str]:
    """Return how to write a gate that asks for more than the noise, unless the gates do."""
    floor = floor_of(found)
    worst = max((each.gates.chance for each in found.at if each.gates is not None), default=Fraction(0))
    if floor is None or worst <= MOST_ACCEPTED:
        return []
    one, other = stricter_gates(found.job.program, Fraction(floor))
    return ["          these ask for more than the noise:", f"          {one}", f"          {other}"]


def _missing(found: NoiseFound) -> list[str]:
    lines = []
    for each in found.at:
        for kind, count in each.unmeasured.items():
            failed = f"{counted(count, 'rollout')} unmeasured ({kind})"
            lines.append(f"failed    {each.concurrency} at once: {failed}; run it again")
        if each.not_run:
            lines.append(f"missing   {each.concurrency} at once: {counted(each.not_run, 'rollout')} not reached")
    return lines
