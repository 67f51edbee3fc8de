"""What each gate on the goal accepts over a whole run: by chance, and where a rule is worth 10 points.

    nice python benchmarks/honest/accepts.py [compiles]

Draws right and wrong answers with numpy, as `worlds.py` does by hash, so that thousands of runs take a minute; only the
whole compiles take long. Prints the tables of the section "Gates that hold 5 % of runs" of the README beside this file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import comb
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent))

import worlds
from binomial import interval
from compiles import STRICT, Size, compile_in

from skillc.stats.power import wins_needed

Bools = npt.NDArray[np.bool_]

TEST, HELPFUL, RUNS = 400, 0.5, 4_000


@dataclass(frozen=True, slots=True)
class World:
    """How often an answer is right, what the helpful rule adds, and which share of the answers never changes."""

    name: str
    share: float
    stable: float = 0.0
    worth: float = 0.1


NULLS = (
    World("50 % right", 0.5, worth=0),
    World("80 % right", 0.8, worth=0),
    World("70 % right, half stay", 0.7, 0.5, worth=0),
)
WORTHS = (
    World("60 % right", 0.6),
    World("70 % right", 0.7),
    World("70 % right, half stay", 0.7, 0.5),
    World("80 % right, half stay", 0.8, 0.5),
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    head: str
    world: World
    validation: int
    decisions: int = 10


# How many of the discordant examples a candidate must win: (decisions, decision counted from 1, discordant) -> wins.
Rule = Callable[[int, int, int], int]


@cache
def tested(discordant: int, alpha: Fraction) -> int:
    """The wins that the exact McNemar test needs, which `confidence` equals on right and wrong answers."""
    tail = list(accumulate(comb(discordant, losses) for losses in range(discordant + 1)))
    enough = (wins for wins in range(discordant + 1) if tail[discordant - wins] <= alpha * 2**discordant)
    return next(enough, discordant + 1)


@cache
def won(discordant: int, threshold: int) -> int:
    """The wins that bring the e-value to a threshold."""
    wins = wins_needed(discordant, Fraction(threshold))
    return discordant + 1 if wins is None else wins


ALPHA = Fraction(1, 20)
RULES: dict[str, Rule] = {
    "`candidate.m > incumbent.m`, today's default": lambda _, __, n: n // 2 + 1,
    "`confidence(...) >= 95%`": lambda _, __, n: tested(n, ALPHA),
    "`confidence(..., over = run) >= 95%`": lambda of, _, n: tested(n, ALPHA / of),
    "`e_value(...) >= 20`": lambda _, __, n: won(n, 20),
    "`e_value(..., over = run) >= 20`": lambda of, _, n: won(n, 20 * of),
    "`e_value(...) >= 20 k (k + 1)` at decision k": lambda _, k, n: won(n, 20 * k * (k + 1)),
}


def answers(world: World, fixed: Bools, always: Bools, helpful: Bools, draw: np.random.Generator) -> Bools:
    """The answers of one skill in a run: stable ones, and others drawn again."""
    thrown = draw.random(fixed.shape, dtype=np.float32)
    return np.where(fixed, always, thrown) < world.share + world.worth * helpful[:, None]


def simulate(world: World, rule: Rule, validation: int, decisions: int, runs: int) -> tuple[float, float]:
    """The share of runs that accept anything, and of those whose last skill the test calls `improved`."""
    draw = np.random.default_rng(validation * decisions)

    def split(size: int) -> tuple[Bools, Bools]:
        return draw.random((runs, size)) < world.stable, draw.random((runs, size), dtype=np.float32)

    fixed, always = split(validation)
    holds = np.zeros(runs, dtype=bool)
    accepted = holds
    incumbent = answers(world, fixed, always, holds, draw)
    for k in range(1, decisions + 1):
        proposed = holds | ((draw.random(runs) < HELPFUL) & (world.worth > 0))
        candidate = answers(world, fixed, always, proposed, draw)
        passes = wins(candidate, incumbent, [rule(decisions, k, n) for n in range(validation + 1)])
        incumbent = np.where(passes[:, None], candidate, incumbent)
        holds, accepted = np.where(passes, proposed, holds), accepted | passes
    fixed, always = split(TEST)
    initial = answers(world, fixed, always, np.zeros(runs, dtype=bool), draw)
    final = answers(world, fixed, always, holds, draw)
    improved = accepted & wins(final, initial, [tested(n, ALPHA / 2) for n in range(TEST + 1)])
    return float(accepted.mean()), float(improved.mean())


def wins(candidate: Bools, incumbent: Bools, least: Sequence[int]) -> Bools:
    """Whether a skill wins as many of its discordant examples as are asked for."""
    better = (candidate & ~incumbent).sum(axis=1)
    return better >= np.array(least)[(candidate ^ incumbent).sum(axis=1)]


def table(columns: Sequence[Column], *, power: bool) -> None:
    """A row for each gate; of power also the share of today's default that it keeps."""
    print("| gate | " + " | ".join(column.head for column in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    today: list[float] = []
    for name, rule in RULES.items():
        found = [simulate(c.world, rule, c.validation, c.decisions, RUNS)[power] for c in columns]
        today = today or found
        ratios = [f" ({each / first:.2f})" if power else "" for each, first in zip(found, today, strict=True)]
        shown = [f"{each * 100:.1f} %{ratio}" for each, ratio in zip(found, ratios, strict=True)]
        print(f"| {name} | " + " | ".join(shown) + " |", flush=True)
    print()


def engine(count: int) -> None:
    """Gates that hold 5 %, in whole compiles."""
    print(f"Whole compiles by skillc's engine, 50 % right, 60 validation examples, {count} compiles a gate:\n")
    print("| gate | runs with an accept | 95 % interval |")
    print("|---|---|---|")
    for test in ("e_value({}) >= 20", "e_value({}, over = run) >= 20", "confidence({}, over = run) >= 95%"):
        gate, hits = test.format(STRICT), 0
        for i in range(count):
            found = compile_in(worlds.World(), worlds.proposer(i), name=i, size=Size(test=12), gate=gate)
            hits += found.accepted > 0
        low, high = interval(hits, count)
        print(f"| `{test.format('...')}` | {hits} of {count} | {low * 100:.1f} % to {high * 100:.1f} % |", flush=True)
    print()


def report(count: int) -> None:
    """Print the tables."""
    print("Runs without signal that accept anything, by validation examples:\n")
    null = NULLS[0]
    more = [Column(f"50 % right, {size} examples", null, size) for size in (200, 400)]
    more.append(Column("50 % right, 100 examples, 40 decisions", null, 100, 40))
    table([Column(f"{world.name}, 100 examples", world, 100) for world in NULLS] + more, power=False)
    engine(count)
    for size in (100, 200, 400):
        print(f"Runs whose verdict is `improved`, {size} validation and {TEST} test examples, a rule worth 10 points")
        print("among the proposals; in brackets the share of today's default:\n")
        table([Column(world.name, world, size) for world in WORTHS], power=True)


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
