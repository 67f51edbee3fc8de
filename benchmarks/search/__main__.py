"""`python -m benchmarks.search`: edits chosen by evidence against bundles picked by rank, at equal target calls.

Writes README.md and gain.svg beside this file. `--quick` runs the main arms in the plain world on a few seeds and
writes nothing. `--mixed` runs the mixed worlds, and writes mixed.md and the section of README.md that contains it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.search.arms import (
    ABLATED,
    EVERY_MIXED,
    MAIN,
    MECHANISMS,
    MIXED_ARMS,
    NOTHING_AHEAD,
    PLAIN,
    VARIED,
    WIDER,
    WORLDS,
    Arm,
    varied,
)
from benchmarks.search.mixed_page import POINTS, mixed_page, put
from benchmarks.search.page import CALLS, Runs, page, plot
from benchmarks.search.run import Job, run
from benchmarks.search.world import Settings

# Designs were chosen on seeds 0 to 19; the page is written from others.
SEEDS, QUICK_SEEDS = range(100, 120), range(100, 104)
LONGEST = 2 * CALLS


def jobs(seeds: Sequence[int]) -> Iterable[Job]:
    """Every run of the page; the main arms of the plain world go on to twice the calls, for the curve."""
    cases: dict[tuple[Settings, Arm], int] = {}
    for _, settings in WORLDS.values():
        cases |= {(settings, arm): CALLS for arm in (*MAIN.values(), NOTHING_AHEAD, WIDER)}
    cases |= {(PLAIN, arm): CALLS for arm in MECHANISMS.values()}
    for name in ABLATED:
        cases |= {(WORLDS[name][1], (*WIDER, *arm)): CALLS for arm in MECHANISMS.values()}
    for name, (_, values) in VARIED.items():
        for arm in MAIN.values():
            cases |= {(PLAIN, varied(arm, name, value)): CALLS for value in values}
    cases |= {(PLAIN, arm): LONGEST for arm in MAIN.values()}
    return [Job(world, seed, arm, calls) for (world, arm), calls in cases.items() for seed in seeds]


def mixed_jobs(seeds: Sequence[int], calls: int) -> list[Job]:
    """Every run of the mixed worlds, and of the plain world by what its optimizer cites."""
    worlds = [settings for _, settings in EVERY_MIXED.values()]
    return [Job(world, seed, arm, calls) for world in worlds for arm in MIXED_ARMS.values() for seed in seeds]


def done(wanted: Sequence[Job], processes: int) -> Runs:
    """All runs, by world and arm, in the order of the seeds."""
    found: Runs = {}
    with ProcessPoolExecutor(processes) as pool:
        for job, ran in zip(wanted, pool.map(run, wanted, chunksize=4), strict=True):
            found.setdefault((job.world, job.changes), []).append(ran)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="seeds of the mixed worlds")
    parser.add_argument("--calls", type=int, default=max(POINTS), help="target calls of a run in the mixed worlds")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    began = time.perf_counter()
    here = Path(__file__).parent
    if options.mixed:
        wanted = mixed_jobs(range(SEEDS.start, SEEDS.start + options.seeds), options.calls)
        text = mixed_page(done(wanted, options.processes), options.seeds, options.calls)
        put(here, text)
        print(text)
    elif options.quick:
        wanted = [Job(PLAIN, seed, arm, CALLS) for arm in MAIN.values() for seed in QUICK_SEEDS]
        runs = done(wanted, options.processes)
        for name, arm in MAIN.items():
            gains = [ran.at(CALLS) for ran in runs[PLAIN, arm]]
            print(f"{name:32}{sum(gains) / len(gains):6.2f} of the attainable gain at {CALLS:,} target calls")
    else:
        wanted = list(jobs(SEEDS))
        runs = done(wanted, options.processes)
        (here / "gain.svg").write_text(plot(runs))
        (here / "README.md").write_text(page(runs, len(SEEDS)))
        print(page(runs, len(SEEDS)))
    print(f"{len(wanted)} runs in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
