"""`python -m benchmarks.client.measure URL JOB...` in a separate process: prints a JSON object per round.

A job is `WAY@IN_FLIGHT:CALLS`, or `WAY@cached:CALLS`, which repeats the calls of the job before it one after the other.
Each way is made, and warmed with a few calls, at its first job; not warmed where its name starts with `!`.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.client.ways import ALL, Ask

WARM = 20


async def level(ask: Ask, first: int, calls: int, in_flight: int) -> dict[str, Any]:
    """Calls `first` and on, at most so many at once: how many were answered, seconds, and MiB at most so far."""
    numbers = iter(range(first, first + calls))
    answered = 0

    async def worker() -> None:
        nonlocal answered
        for number in numbers:
            try:
                await ask(number)
                answered += 1
            except Exception:
                continue

    wall, busy = time.perf_counter(), time.process_time()
    await asyncio.gather(*[worker() for _ in range(in_flight)])
    wall, busy = time.perf_counter() - wall, time.process_time() - busy
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"calls": calls, "answered": answered, "wall": wall, "busy": busy, "memory": memory}


async def main(url: str, jobs: list[str]) -> None:
    ways: dict[str, Ask] = {}
    made, before = 0, 0
    with tempfile.TemporaryDirectory(prefix="skillc-client-") as folder:
        for job in jobs:
            name, _, size = job.partition("@")
            cold, way = name.startswith("!"), name.lstrip("!")
            at, _, calls = size.partition(":")
            if way not in ways:
                ways[way] = ALL[way](url, Path(folder) / str(len(ways)))
                if not cold:
                    await level(ways[way], made, WARM, 4)
                    made += WARM
            if at != "cached":
                before, made = made, made + int(calls)
            found = await level(ways[way], before, int(calls), 1 if at == "cached" else int(at))
            print(json.dumps({"way": way, "at": at, **found}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
