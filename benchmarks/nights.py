"""Rules for the error budget over the nights, and the test of drift, on made series: `python -m benchmarks.nights`.

Each series has 90 nights. A night has 16 new test tasks, on 16 % of which a challenger and the current skill differ.
Under the null they differ at random; else the challenger gains 8 points. The rules:

- `each night at 5 %`: the exact sign test of the night's rows, without a budget
- `all rows at 5 %`: the same over all rows of a challenger so far, read after every night
- `equal, one night`: an e-value of the night's rows against 90 / 5 %
- `equal, e-process`: a challenger's e-process goes on over the nights, each against 90 / 5 %
- `series, e-process`: the same with shares 6 / (pi j)^2, which `skillc evolve` uses

For drift, a lock of 400 examples at 80 % and 20 new tasks a night, with `drift = 5%`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from math import comb
from statistics import median

from skillc.evolve.drift import ERROR as DRIFT_ERROR
from skillc.evolve.drift import FOR_LOCK, lower_bound
from skillc.evolve.spending import HOPELESS, PATIENCE, share
from skillc.stats.betting import evidence_above, evidence_below

NIGHTS, ROWS, ERROR, DIFFERING, GAIN = 90, 16, 0.05, 0.16, 0.08
RULES = ("each night at 5 %", "all rows at 5 %", "equal, one night", "equal, e-process", "series, e-process")


def sign_p(values: Sequence[float]) -> float:
    """Return the one-sided p-value of McNemar's exact test."""
    wins, losses = values.count(1.0), values.count(-1.0)
    return sum(comb(wins + losses, k) for k in range(wins, wins + losses + 1)) / 2 ** (wins + losses)


def first_accept(rule: str, gain: float, seed: int) -> int | None:
    """Return the night of the first accept of a series, None without one."""
    rng, number, seen = random.Random(seed), 1, list[list[float]]()
    for night in range(1, NIGHTS + 1):
        weights = ((DIFFERING + gain) / 2, (DIFFERING - gain) / 2, 1 - DIFFERING)
        seen.append(rng.choices((1.0, -1.0, 0.0), weights, k=ROWS))
        if rule in ("each night at 5 %", "equal, one night"):
            seen = seen[-1:]
        values = [value for each in seen for value in each]
        if rule.endswith("at 5 %"):
            if sign_p(values) <= ERROR:
                return night
            if len(seen) >= PATIENCE:
                seen = []
            continue
        evidence = evidence_above(values, 0.0, low=-1.0, high=1.0)
        needed = 1 / share(number, ERROR) if rule.startswith("series") else NIGHTS / ERROR
        if evidence >= needed:
            return night
        if evidence <= HOPELESS or len(seen) >= PATIENCE:
            number, seen = number + 1, []
    return None


def first_fall(now: float, seed: int, *, then: float = 0.8, count: int = 400, rows: int = 20) -> int | None:
    """Return the night on which a fall is found, None without one."""
    rng, seen = random.Random(seed), list[float]()
    mean = sum(rng.random() < then for _ in range(count)) / count
    floor = lower_bound(mean, count, low=0.0, high=1.0) - 0.05
    for night in range(1, NIGHTS + 1):
        seen += [float(rng.random() < now) for _ in range(rows)]
        if evidence_below(seen, floor, low=0.0, high=1.0) >= 1 / (DRIFT_ERROR - FOR_LOCK):
            return night
    return None


def main(series: int) -> None:
    """Print both tables."""
    print("| rule | series with a false accept | a gain of 8 points accepted | median night |")
    print("|---|---|---|---|")
    for rule in RULES:
        false = [first_accept(rule, 0.0, seed) for seed in range(series)]
        true = [night for seed in range(series) if (night := first_accept(rule, GAIN, 10_000 + seed))]
        wrong = sum(night is not None for night in false) / series
        middle = f"{median(true):.0f}" if true else "–"
        print(f"| {rule} | {100 * wrong:.1f} % | {100 * len(true) / series:.1f} % | {middle} |", flush=True)
    print("\n| lock | fall | found in 90 nights | median night |\n|---|---|---|---|")
    for count in (400, 100):
        for fall in (0.0, 0.1, 0.15, 0.2, 0.25):
            found = [n for seed in range(series) if (n := first_fall(0.8 - fall, 20_000 + seed, count=count))]
            middle = f"{median(found):.0f}" if found else "–"
            print(f"| {count} | {100 * fall:.0f} points | {100 * len(found) / series:.1f} % | {middle} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
