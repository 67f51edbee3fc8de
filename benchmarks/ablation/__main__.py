"""`python -m benchmarks.ablation`: what each mechanism is worth, by its switch, at equal target calls.

Writes README.md beside this file. `--quick` runs a few arms on a few seeds, prints their table and writes nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from benchmarks.ablation import tickets
from benchmarks.ablation.arms import ARMS, QUICK, Arm
from benchmarks.ablation.optimizer import EveryStage
from benchmarks.ablation.page import page
from benchmarks.search import run as search
from benchmarks.search.world import Settings

PROGRAM = Path(__file__).with_name("world.skill")
# By column: the world and its target calls. In 1,080 there is about one epoch, in 2,160 about two.
WORLDS = {
    "world": (Settings(), 1_080),
    "harm": (replace(Settings(), odds=(0.30, 0.20, 0.50)), 2_160),
}
TICKET_CALLS = 1_600
WORLD_SEEDS, TICKET_SEEDS = range(200, 216), range(200, 208)

Job = search.Job | tickets.Job
# Column and arm of a job.
Cell = tuple[str, str]


def jobs(arms: Sequence[Arm], world_seeds: Sequence[int], ticket_seeds: Sequence[int]) -> list[tuple[Cell, Job]]:
    """Every run, by the cell of the page that it belongs to."""
    found: list[tuple[Cell, Job]] = []
    for arm in arms:
        for name, (world, calls) in WORLDS.items() if not arm.silent else ():
            found += [
                ((name, arm.name), search.Job(world, seed, arm.settings, calls, PROGRAM, EveryStage))
                for seed in world_seeds
            ]
        found += [(("tickets", arm.name), tickets.Job(seed, arm.settings, TICKET_CALLS)) for seed in ticket_seeds]
    return found


def gain(job: Job) -> float:
    """The figure of one run."""
    return tickets.run(job).gain if isinstance(job, tickets.Job) else search.run(job).gain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--processes", type=int, default=3)
    options = parser.parse_args()
    began = time.perf_counter()
    seeds: dict[str, Sequence[int]] = {"world": WORLD_SEEDS, "tickets": TICKET_SEEDS}
    if options.quick:
        seeds = {"world": WORLD_SEEDS[:4], "tickets": TICKET_SEEDS[:2]}
    wanted = jobs(QUICK if options.quick else ARMS, seeds["world"], seeds["tickets"])
    figures: dict[str, dict[str, list[float]]] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for ((column, arm), _), found in zip(wanted, pool.map(gain, [job for _, job in wanted]), strict=True):
            figures.setdefault(column, {}).setdefault(arm, []).append(found)
    counts = {column: len(next(iter(arms.values()))) for column, arms in figures.items()}
    text = page(figures, counts, time.perf_counter() - began, arms=QUICK if options.quick else ARMS)
    print(text)
    if not options.quick:
        Path(__file__).with_name("README.md").write_text(text)
    print(f"{len(wanted)} runs in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
