"""`python -m benchmarks.line`: how full the line of calls is, against a server of fixed latency.

Writes README.md beside this file. `--quick` measures the default at both limits for two steps and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.line.page import page
from benchmarks.line.run import REPOSITORY, Case

STEPS = ("budget.steps=4",)
LIMITS = (24, 128)
SLOW, FAST, FASTEST = (1.0, 5.0), (0.2, 1.0), (0.05, 0.25)
WAYS: dict[str, tuple[str, ...]] = {
    "default": (),
    "`speculate = off`": ("optimize.speculate=off",),
    "`wave = 8`": ("optimize.wave=8",),
    "`wave = 200` (all at once)": ("optimize.wave=200",),
    "`batch = 80`": ("optimize.batch=80",),
    "`candidates = 4`": ("optimize.candidates=4",),
}

Row = tuple[str, Case, dict[str, Any]]


def measured(case: Case) -> dict[str, Any]:
    """The figures of one case, measured in a separate process."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "benchmarks.line.run", json.dumps(asdict(case))]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def rows(cases: Sequence[tuple[str, Case]], at_once: int) -> list[Row]:
    """The cases with their figures, in their order."""
    with ThreadPoolExecutor(at_once) as pool:
        found = pool.map(measured, [case for _, case in cases])
        return [(name, case, figures) for (name, case), figures in zip(cases, found, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--processes", type=int, default=4, help="of the slow cases, which leave a processor idle")
    options = parser.parse_args()
    began = time.perf_counter()
    ways = {"default": ()} if options.quick else WAYS
    steps = ("budget.steps=2",) if options.quick else STEPS
    slow = [(name, Case(limit, *SLOW, (*steps, *way))) for limit in LIMITS for name, way in ways.items()]
    fast = [("default", Case(limit, *latencies, steps)) for latencies in (FAST, FASTEST) for limit in LIMITS]
    loop = [(name, replace(case, loop=True)) for name, case in (*slow, *fast) if name == "default"]
    slow += [(name, case) for name, case in loop if case.target == SLOW[0]]
    fast += [(name, case) for name, case in loop if case.target < SLOW[0]]
    found = [*rows(slow, options.processes), *rows(fast, 1)]
    text = page(found, time.perf_counter() - began)
    print(text)
    if not options.quick:
        Path(__file__).with_name("README.md").write_text(text)


if __name__ == "__main__":
    main()
