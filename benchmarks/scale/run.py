"""Scale: 100,000 training examples and 20,000 to validate on. Prints the page beside this file.

    python benchmarks/scale/run.py [steps] > benchmarks/scale/README.md

Each figure is that of a process of its own (`child.py`): reading and planning, up to the moment when the first batch of
rollouts is ready to be sent; then a whole run with scripted models, without DSPy. Targets: under 1 GB, under 5 seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from data import SIZES, write

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]


def child(*arguments: str) -> dict[str, Any]:
    """What one process measures of itself."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, str(HERE / "child.py"), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def pace() -> float:
    """Seconds for ten million additions: how fast a processor is here and now."""
    begun, total = time.perf_counter(), 0
    for i in range(10_000_000):
        total += i
    return time.perf_counter() - begun


def main() -> None:
    steps = sys.argv[1] if len(sys.argv) > 1 else "3"
    print("# Scale, measured\n")
    sizes = ", ".join(f"{count:,} {side}" for side, count in SIZES.items())
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{sizes} examples of about 60 words, three of each customer. {os.cpu_count()} processors, load {load}; ten")
    print(f"million additions take {pace():.2f} s.\n")
    print("## Start\n")
    print("| files | size | read, split and bounded | first batch ready | processor time | memory |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("jsonl", "csv"):
            program = write(Path(folder) / kind, kind)
            size = sum(path.stat().st_size for path in program.parent.glob(f"*.{kind}"))
            # The quickest of three: what other processes take is not skillc's.
            found = min((child("start", str(program)) for _ in range(3)), key=lambda each: each["first"]["seconds"])
            first = found["first"]
            print(
                f"| {kind} | {size / 1e6:.0f} MB | {found['loaded']['seconds']:.1f} s | {first['seconds']:.1f} s "
                f"| {first['processor']:.1f} s | {first['megabytes']} MB |",
                flush=True,
            )
        found = child("run", str(Path(folder) / "jsonl" / "tickets.skill"), steps)
    end, gates = found["end"], found["stages"].get("gate", 0.0)
    sent = sum(found["evaluated"])
    print("\n## A run\n")
    print(f"{len(found['decisions'])} decisions ({', '.join(found['decisions'])}), {found['calls']:,} calls, at most")
    print(f"{found['at_once']} at once and {found['tasks']:,} tasks alive; verdict `{found['verdict']}`.\n")
    print("| | |")
    print("|---|---|")
    print(f"| memory at most | {end['megabytes']} MB |")
    print(f"| whole run | {end['seconds']:.0f} s, {end['processor']:.0f} s of processor time |")
    print(f"| baseline, 20,000 rollouts | {found['stages']['baseline']:.1f} s |")
    print(
        f"| gates, {sent:,} rollouts in waves of 32 | {gates:.1f} s, {1000 * gates / max(1, sent):.2f} ms a rollout |"
    )


if __name__ == "__main__":
    main()
