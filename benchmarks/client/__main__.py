"""`python -m benchmarks.client`: the cost of a call, calls per second of a process, and a server that rejects calls.

Writes README.md beside this file. About four minutes; `--quick` makes fewer calls and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.client.page import Found, page
from benchmarks.client.ways import CLIENTS, WAYS

REPOSITORY = Path(__file__).resolve().parents[2]
# Calls at each number in flight, by the server's latency in seconds.
LEVELS = {0.05: {1: 60, 24: 600, 128: 1500, 256: 2000}, 1.0: {24: 96, 128: 512}}
PEERS = tuple(WAYS)
SLOW = ("litellm alone", "skillc client", "dspy.Predict, skillc engine")
RATE, RATED_CALLS = 10, 150
RATED_LEVELS = (1, 8, 32, 256)
RATED_WAYS = ("skillc client", "dspy.LM, its own engine")

# Nothing here fetches price lists, and no key of the caller's leaves this process.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "DSPY_"))},
    "PYTHONPATH": str(REPOSITORY),
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


@contextmanager
def server(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server in a separate process."""
    command = [sys.executable, "-m", "benchmarks.client.server", *options]
    made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert made.stdin is not None
    assert made.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(made.stdout.readline())}/v1", made
    finally:
        made.stdin.close()
        made.kill()
        made.wait()


def told(made: subprocess.Popen[str]) -> dict[str, Any]:
    """What a server counted since it was asked last."""
    assert made.stdin is not None
    assert made.stdout is not None
    made.stdin.write("\n")
    made.stdin.flush()
    found: dict[str, Any] = json.loads(made.stdout.readline())
    return found


def measured(url: str, jobs: Sequence[str]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.client.measure", url, *jobs]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def cost(rounds: int, calls: int) -> list[dict[str, Any]]:
    """All ways in one process, in turns, so that what else the machine does meets them alike."""
    jobs = []
    for _ in range(rounds):
        for way in PEERS:
            jobs.append(f"{way}@8:{calls}")
            if "skillc" in way:
                jobs.append(f"{way}@cached:{calls}")
    with server("--latency", "0.005") as (url, _):
        return measured(url, jobs)


def throughput(scale: float) -> list[dict[str, Any]]:
    """Each way in a separate process, one after the other; each level twice, because the client learns it first."""
    rows = []
    for latency, levels in LEVELS.items():
        for way in PEERS if latency < 1 else SLOW:
            with server("--latency", str(latency)) as (url, made):
                jobs = [f"{way}@{at}:{max(3 * at, int(calls * scale))}" for at, calls in levels.items() for _ in "12"]
                found = measured(url, jobs)[1::2]
                rows += [{**row, "latency": latency, "server": told(made)["processor"]} for row in found]
    return rows


def clients(calls: int) -> list[dict[str, Any]]:
    """The request alone by each HTTP client that is installed, in a separate process."""
    rows = []
    for way, (module, _) in CLIENTS.items():
        if find_spec(module) is not None:
            with server("--latency", "0.02") as (url, _):
                rows += [measured(url, [f"{way}@{at}:{calls}" for _ in "12"])[1] for at in (8, 128)]
    return rows


def rated(calls: int) -> list[dict[str, Any]]:
    """Every way and level against its own server with a rate limit; four at once, because they mostly wait."""
    cases = [(way, at, hint) for hint in ("", "1") for way in RATED_WAYS for at in RATED_LEVELS]

    def one(case: tuple[str, int, str]) -> dict[str, Any]:
        way, at, hint = case
        with server("--latency", "0.001", "--rate", str(RATE), "--retry-after", hint) as (url, made):
            found = measured(url, [f"!{way}@{at}:{calls}"])[0]
            return {**found, "hint": hint, "server": told(made)}

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(one, cases))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    began = time.perf_counter()
    found = Found(
        cost=cost(3 if quick else 15, 50),
        throughput=throughput(0.25 if quick else 1.0),
        clients=clients(500 if quick else 2000),
        rated=rated(60 if quick else RATED_CALLS),
        rate=RATE,
        seconds=time.perf_counter() - began,
    )
    text = page(found)
    print(text)
    if not quick:
        Path(__file__).with_name("README.md").write_text(text)


if __name__ == "__main__":
    main()
