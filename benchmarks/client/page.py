"""The page of the benchmark."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Written by hand: what the figures say.
_NOTES = Path(__file__).with_name("notes.md")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """All figures of one run: rounds of each part, the servers' latency in seconds and admissions a second."""

    cost: Sequence[Row]
    throughput: Sequence[Row]
    rated: Sequence[Row]
    latency: float
    rate: float
    seconds: float


def page(found: Found) -> str:
    """The whole page as markdown."""
    parts = [_head(found), _NOTES.read_text(), _cost(found), _throughput(found), _rated(found)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def table(*lines: Sequence[str]) -> str:
    head, *rest = lines
    ruled = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(line) + " |" for line in ruled)


def _head(found: Found) -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"""
# The client

`python -m benchmarks.client`: skillc's client beside plain litellm and `dspy.LM`, in one run, over loopback sockets
against a server in a process of its own (`server.py`). A prompt has about a thousand tokens, and none is asked twice.
The client is as a compile has it: cache on the disk, and a receipt synced before each send. DSPy's cache is off.
{os.cpu_count()} processors, load {load}; {found.seconds:.0f} s.
"""


def _cost(found: Found) -> str:
    rounds: dict[tuple[str, bool], list[float]] = {}
    for row in found.cost:
        rounds.setdefault((row["way"], row["at"] == "cached"), []).append(row["busy"] / row["calls"] * 1000)
    alone = rounds["litellm alone", False]
    base = statistics.median(alone)
    lines = [("way", "CPU ms a call", "range of the rounds", "more than litellm alone", "as a ratio")]
    for (way, cached), figures in sorted(rounds.items(), key=lambda item: item[0][1]):
        middle = statistics.median(figures)
        name = f"{way}, from the cache" if cached else way
        spread = f"{min(figures):.2f} to {max(figures):.2f}"
        apart = statistics.median(figure - beside for figure, beside in zip(figures, alone, strict=True))
        more = "" if way == "litellm alone" or cached else f"{apart:+.2f} ms"
        lines.append((name, f"**{middle:.2f}**", spread, more, f"{middle / base:.2f}"))
    return f"""
## Processor time of a call

All ways in one process, in turns, {len(alone)} rounds; uncached calls at 8 in flight, cached ones one after the other.
Medians; *more* is the median of the differences within a round.

{table(*lines)}
"""


def _throughput(found: Found) -> str:
    levels = list(dict.fromkeys(row["at"] for row in found.throughput))
    ideal = {at: int(at) / found.latency for at in levels}
    lines: list[Sequence[str]] = [("way", *(f"{at} in flight" for at in levels), "CPU ms a call at the most", "memory")]
    for way in dict.fromkeys(row["way"] for row in found.throughput):
        rows = {row["at"]: row for row in found.throughput if row["way"] == way}
        cells = [
            f"{row['answered'] / row['wall']:,.0f} ({row['answered'] / row['wall'] / ideal[at]:.0%})"
            for at, row in rows.items()
        ]
        last = rows[levels[-1]]
        lines.append((way, *cells, f"{last['busy'] / last['calls'] * 1000:.1f}", f"{last['memory']:.0f} MiB"))
    server = max(
        row["server"] / sum(r["wall"] for r in found.throughput if r["way"] == row["way"]) for row in found.throughput
    )
    told = ", ".join(f"{value:,.0f} at {at}" for at, value in ideal.items())
    return f"""
## Calls a second against {found.latency * 1000:.0f} ms

Calls a second, and the share of what the latency admits ({told}). Each way in a process
of its own, all levels one after the other in it; memory is the most that the process ever held, at the end. The
server's process was busy for at most {server:.0%} of the time.

{table(*lines)}
"""


def _rated(found: Found) -> str:
    lines = [
        (
            "way",
            "`Retry-After`",
            "in flight",
            "**measured**",
            f"answers a second of {found.rate:g}",
            "refused",
            "seconds",
        )
    ]
    for row in found.rated:
        server = row["server"]
        asked = server["served"] + server["refused"]
        lines.append(
            (
                row["way"],
                "1 s" if row["hint"] else "none",
                row["at"],
                f"**{row['answered'] / row['calls']:.0%}**",
                f"{server['served'] / max(server['seconds'], 1e-9):.1f}",
                f"{server['refused'] / asked:.0%}",
                f"{row['wall']:.0f}",
            )
        )
    calls = found.rated[0]["calls"]
    return f"""
## A server that admits {found.rate:g} requests a second

A token bucket of one second's worth; it answers in a millisecond and is always right, so whatever is not answered was
lost by the client. {calls} calls. *Refused* is the share of all requests, the start included.

{table(*lines)}
"""
