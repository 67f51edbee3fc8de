"""`python -m benchmarks.served URL MODEL`: a compile beside a plain load generator, against a served model.

    python -m benchmarks.served http://127.0.0.1:8000/v1 Qwen/Qwen3-4B --rows 1000

The server is one of your own, with an OpenAI-compatible address; prefix cache hits are read from vLLM's `/metrics`.
`--write` writes README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.served.run import Case

REPOSITORY = Path(__file__).resolve().parents[2]
LEVELS = (16, 32, 64)
TARGET = 0.95
_NOTES = Path(__file__).with_name("notes.md")


def measured(case: Case) -> dict[str, Any]:
    """The figures of one comparison, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "benchmarks.served.run", json.dumps(asdict(case))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def page(found: Sequence[dict[str, Any]], seconds: float) -> str:
    """The whole page as markdown."""
    first = found[0]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    lines = [
        ("in flight", "of the compile", "calls", "calls a second", "plain", "**ratio**", "in flight, of the limit")
    ]
    for at in dict.fromkeys(row["in_flight"] for row in found):
        rows = [row["parts"] for row in found if row["in_flight"] == at]
        for name in rows[0]:
            parts = [row[name] for row in rows]
            own = statistics.median(part["calls"] / part["seconds"] for part in parts)
            plain = statistics.median(part["calls"] / part["plain"] for part in parts)
            ratio = statistics.median(part["plain"] / part["seconds"] for part in parts)
            filled = statistics.median(part["busy"] for part in parts)
            figures = (f"{parts[0]['calls']:,}", f"{own:.1f}", f"{plain:.1f}", f"**{ratio:.2f}**", f"{filled:.0%}")
            lines.append((str(at), name, *figures))
    hits = [("in flight", "prefix hits of the compile", "of the plain run")]
    for row in found:
        told = ["not reported" if row[name] is None else f"{row[name]:.1%}" for name in ("hits", "plain_hits")]
        hits.append((str(row["in_flight"]), *told))
    notes = f"{_NOTES.read_text().strip()}\n\n" if _NOTES.exists() else ""
    rows, steps = first["rows"], first["steps"]
    return f"""# A compile beside a plain load generator

`python -m benchmarks.served URL {first["model"]} --rows {rows}`: calls a second of a compile of {rows} examples and
{steps} steps, and of workers that send the same requests and do nothing else. Both run in one process each time, the
plain one with another mark in its prompts, so that the server has none of them cached. {os.cpu_count()} processors,
load {load}; {seconds:.0f} s.

{notes}{table(lines)}

*all* is the compile from its first call to its last: it has to wait for gates and edits, and the plain run does not.
The baseline and the final test (`test`) ask for all their calls at once. The target is {TARGET:g}.

## Prefix cache

The share of prompt tokens that the server had cached, by its counters.

{table(hits)}
"""


def table(lines: Sequence[Sequence[str]]) -> str:
    head, *rest = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rest])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model", help="as the server names it")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--in-flight", type=int, nargs="+", default=list(LEVELS))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    began = time.perf_counter()
    found = [
        measured(Case(given.url.rstrip("/"), given.model, at, given.rows, secrets.token_hex(8), given.steps))
        for _ in range(given.rounds)
        for at in given.in_flight
    ]
    text = page(found, time.perf_counter() - began)
    print(text)
    if given.write:
        Path(__file__).with_name("README.md").write_text(text)


if __name__ == "__main__":
    main()
