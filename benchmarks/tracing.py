"""What OpenTelemetry spans add to a compile: off, to a collector, to none, and with the contents of all messages.

The same compile with fresh replies, the four ways one after the other in each round, so that a busy machine slows all
of them alike. Printed is the median time of each and its ratio to the compile without spans.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from otlp_collector import collector  # noqa: E402

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def seconds(folder: Path, variables: dict[str, str]) -> float:
    """The time of one compile in a process of its own, without its start."""
    code = (
        "import sys, time\n"
        "import dspy, litellm\n"
        "from skillc.cli import skillc\n"
        "start = time.perf_counter()\n"
        "options = ['--offline', '--fresh', '--quiet', '--json']\n"
        "skillc.main(['compile', 'tickets.skill', *options], standalone_mode=False)\n"
        "print('seconds', time.perf_counter() - start, file=sys.stderr)\n"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env={**plain, **variables}, capture_output=True, text=True, check=True
    )
    return float(done.stderr.rsplit("seconds", 1)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name, collector() as found, socket.socket() as silent:
        folder = Path(name)
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        for suffix in ("skill", "jsonl"):
            text = (ROOT / f"examples/tickets/tickets.{suffix}").read_text()
            (folder / f"tickets.{suffix}").write_text(text.replace("epochs   = 4", "epochs   = 1"))
        ways = {
            "off": {},
            "collector": {ENDPOINT: found.url},
            "with contents": {ENDPOINT: found.url, CAPTURE: "true"},
            "dead collector": {ENDPOINT: f"http://127.0.0.1:{silent.getsockname()[1]}"},
        }
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, variables in ways.items():
                times[way].append(seconds(folder, variables))
        print(f"{len(found.spans):,} spans received in {2 * rounds} compiles")
        for way, figures in times.items():
            ratio = statistics.median(one / other for one, other in zip(figures, times["off"], strict=True))
            print(f"{way:<15} {statistics.median(figures):6.2f} s  {ratio:.2f} times")


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"in {time.perf_counter() - start:.0f} s")
