"""The page of the benchmark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.line.run import Case

TARGET = 0.80
# Written by hand: what the figures of the page say, and those of a quieter machine.
_NOTES = Path(__file__).with_name("notes.md")

Row = tuple[str, Case, dict[str, Any]]


def page(found: Sequence[Row], seconds: float) -> str:
    """The whole page as markdown."""
    slow = max(case.target for _, case, _ in found)
    network = [row for row in found if not row[1].loop]
    defaults = [row for row in found if row[0] == "default"]
    parts = [_head(network, seconds), _NOTES.read_text()]
    for limit in sorted({case.limit for _, case, _ in found}):
        of_limit = [row for row in network if row[1].limit == limit and row[1].target == slow]
        parts.append(f"## At most {limit} calls at once\n\n{_table(of_limit)}")
    parts.append(f"## Where the line is not full\n\n{_lost(defaults)}")
    parts.append(f"## Latency and processor time\n\n{_latency(defaults)}")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _head(network: Sequence[Row], seconds: float) -> str:
    told = []
    for name, case, figures in network:
        if name == "default":
            met = "met" if figures["share"] >= TARGET else "missed"
            told.append(f"{figures['share']:.0%} at {case.limit} and {_latencies(case)} ({met})")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"""
# How full the line is

`python -m benchmarks.line` compiles a program of 400 training and 200 validation examples, 4 steps, with DSPy
and skillc's transport, against a server of fixed latency in a separate process (`server.py`; the scripted world and
optimizer of `benchmarks/search` and `benchmarks/ablation`). {os.cpu_count()} processors, load {load}; {seconds:.0f} s.

**Fill of the default: {"; ".join(told)}.** The target is {TARGET:.0%} at 24 and at 128.

## What is measured

- A call is *ready* from the moment when the loop asks for it (`Rollouts.measure`, `Optimizer.ask`) until the loop has
  its outcome. What the rules do not let the loop ask for yet is not ready: the next wave of a gate before this one is
  in, reflections before the rollouts.
- A call is *in flight* while it is with the server, by the server's clock: from the last byte of the request to the
  first of the reply. What the client does before and after counts as not in flight.
- A call is *useful* unless it was speculation that nobody asked for afterwards. What was thrown away is in flight,
  takes slots, was ready, and counts for nothing.
- **fill** = useful call-seconds in flight / call-seconds that were ready, of which at most the limit count at a time.
- *crowded* is the same over the time in which at least the limit were ready, and that time's share of the whole.
- *mean in flight* is over the whole time, whatever was ready: what the rules themselves (reflect after rollout, waves
  one after the other) leave of the limit. SkillOpt's 41 % is such a figure: 9.9 of 24 workers.
- From the baseline to the end of the last step; the comparison with no skill and the final test would only flatter.
"""


def _latencies(case: Case) -> str:
    return f"{case.target:g} s / {case.optimizer:g} s"


def _table(rows: Sequence[Row]) -> str:
    heads = ("setting", "**fill**", "crowded (share of the time)", "mean in flight", "of the limit", "seconds")
    lines = [(*heads, "useful calls", "thrown away", "decisions")]
    lines.append(("---",) * len(lines[0]))
    for name, case, figures in rows:
        lines.append(
            (
                name,
                f"**{figures['share']:.0%}**",
                _crowded(figures),
                f"{figures['mean']:.1f}",
                f"{figures['mean'] / case.limit:.0%}",
                f"{figures['seconds']:.0f}",
                f"{figures['calls']:,}",
                f"{figures['thrown']:,}",
                _decisions(figures["decisions"]),
            )
        )
    note = f"The target answers after {_latencies(rows[0][1]).replace(' / ', ', the optimizer after ')}.\n\n"
    return note + "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _crowded(figures: dict[str, Any]) -> str:
    if figures["crowded_share"] is None:
        return "never"
    return f"{figures['crowded_share']:.0%} ({figures['crowded'] / figures['seconds']:.0%})"


def _decisions(decisions: Sequence[str]) -> str:
    return ", ".join(f"{decisions.count(kind)} {kind}" for kind in dict.fromkeys(decisions))


def _lost(rows: Sequence[Row]) -> str:
    """Of the call-seconds that were ready and not usefully in flight, the share of each stage."""
    stages = list(dict.fromkeys(stage for _, _, figures in rows for stage in figures["lost"]))
    lines = [("limit", "latencies", "transport", "ready", *stages, "of it thrown away")]
    lines.append(("---",) * len(lines[0]))
    for _, case, figures in rows:
        ready = figures["ready"]
        lines.append(
            (
                str(case.limit),
                _latencies(case),
                "a sleep in the process" if case.loop else "loopback",
                f"{ready:,.0f}",
                *(f"{figures['lost'].get(stage, 0) / ready:.1%}" for stage in stages),
                f"{figures['wasted'] / ready:.1%}",
            )
        )
    told = "Call-seconds that were ready, and the share of them that was not usefully in flight, by stage. What was\n"
    told += "thrown away is part of the stages' shares.\n\n"
    return told + "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _latency(rows: Sequence[Row]) -> str:
    lines = [("limit", "latencies", "transport", "fill", "processor time a call", "of the whole time")]
    lines.append(("---",) * len(lines[0]))
    for _, case, figures in rows:
        calls = figures["calls"] + figures["thrown"]
        lines.append(
            (
                str(case.limit),
                _latencies(case),
                "a sleep in the process" if case.loop else "loopback",
                f"{figures['share']:.0%}",
                f"{1000 * figures['processor'] / calls:.1f} ms",
                f"{figures['processor'] / figures['seconds']:.0%}",
            )
        )
    told = """
A client of one process has the time between two answers for each call: 8 ms at 24 and 0.2 s, 1.6 ms at 128 and 0.2 s,
8 ms at 128 and 1 s, 0.4 ms at 128 and 0.05 s. Where a call takes more than that, the line cannot be full; the rows
with a sleep show what the loop and DSPy alone take. Models that take a second or more to answer leave room for all.
"""
    return told.strip() + "\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)
