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
    """All figures of one run: rounds of each part, and the server's admissions a second."""

    cost: Sequence[Row]
    throughput: Sequence[Row]
    clients: Sequence[Row]
    rated: Sequence[Row]
    rate: float
    seconds: float


def page(found: Found) -> str:
    """The whole page as markdown."""
    parts = [_head(found), _NOTES.read_text(), _cost(found), _throughput(found), _clients(found), _rated(found)]
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
    parts = []
    for latency in dict.fromkeys(row["latency"] for row in found.throughput):
        rows = [row for row in found.throughput if row["latency"] == latency]
        parts.append(f"## Calls a second against {_duration(latency)}\n\n{_levels(rows, latency)}")
    return "\n\n".join(parts)


def _levels(found: Sequence[Row], latency: float) -> str:
    levels = list(dict.fromkeys(row["at"] for row in found))
    ideal = {at: int(at) / latency for at in levels}
    most = max(levels, key=int)
    lines: list[Sequence[str]] = [
        ("way", *(f"{at} in flight" for at in levels), f"of litellm alone at {most}", "CPU ms a call", "memory")
    ]
    ways = dict.fromkeys(row["way"] for row in found)
    by_way = {way: {row["at"]: row for row in found if row["way"] == way} for way in ways}
    base = _rate(by_way["litellm alone"][most])
    for way, rows in by_way.items():
        cells = [f"{_rate(row):,.0f} ({_rate(row) / ideal[at]:.0%})" for at, row in rows.items()]
        last = rows[most]
        cost, memory = f"{last['busy'] / last['calls'] * 1000:.2f}", f"{last['memory']:.0f} MiB"
        lines.append((way, *cells, f"**{_rate(last) / base:.1f}** times", cost, memory))
    server = max(
        max(row["server"] for row in rows.values()) / sum(row["wall"] for row in rows.values())
        for rows in by_way.values()
    )
    told = ", ".join(f"{value:,.0f} at {at}" for at, value in ideal.items())
    return f"""
Calls a second, and in brackets the share of what the latency admits ({told}), which is the
share of the limit that is in flight. Each way in a process of its own, all levels one after the other in it, the second
of two rounds each; memory is the most that the process ever held. The server's process was busy for at most
{server:.0%} of the time.

{table(*lines)}
""".strip()


def _rate(row: Row) -> float:
    """Answers a second."""
    return float(row["answered"] / row["wall"])


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:g} s"


def _clients(found: Found) -> str:
    lines: list[Sequence[str]] = [("client", "in flight", "CPU ms a call", "calls a second", "memory")]
    for row in found.clients:
        cost = f"**{row['busy'] / row['calls'] * 1000:.2f}**"
        lines.append((row["way"], row["at"], cost, f"{_rate(row):,.0f}", f"{row['memory']:.0f} MiB"))
    return f"""
## The request alone

A POST of the same prompt against 20 ms and the reply as JSON, by the HTTP clients that skillc could use, with their
pools unlimited and nothing else. DSPy's is no package of its own: it is inside of `dspy`, and private.

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
