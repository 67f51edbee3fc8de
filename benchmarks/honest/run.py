"""Honest results: the verdicts of compiles with a known truth. Prints the page beside this file, without its last
section, whose tables `accepts.py` prints.

    python benchmarks/honest/run.py [compiles]

Every compile is whole: baseline, steps with screen and gates, final test, verdict. Only the two models are scripted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parent))

from binomial import at_least, interval
from compiles import CONFIDENT, STRICT, Result, Size, compile_in, in_a_row
from worlds import World, coin, proposer

from skillc.outcomes import MICRO
from skillc.stats.power import chance_of_accept, inflation, null_run, smallest_gain
from skillc.stats.verdict import PairedScore, judge

WORKERS = 2
SIZE = Size()
LARGE = Size(validation=100, test=400)
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Summary:
    """What is kept of a compile; the rest is too large to send between processes."""

    verdict: str
    gain: float
    interval: tuple[float, float] | None
    accepted: int
    inflation: float | None
    helpful: bool
    detectable: float | None


def summary(result: Result) -> Summary:
    verdict = result.verdict
    ends = None if verdict.interval is None else (float(verdict.interval[0]), float(verdict.interval[1]))
    return Summary(
        verdict.verdict, result.gain, ends, result.accepted, result.inflation, result.helpful, verdict.detectable
    )


def one(world: World, size: Size, gate: str, samples: int, helpful: float, number: int) -> Summary:
    propose = proposer(number, helpful=helpful)
    return summary(compile_in(world, propose, name=number, size=size, gate=gate, samples=samples))


def row(world: World, size: Size, number: int) -> list[Summary]:
    return [summary(found) for found in in_a_row(world, name=number, count=10, size=size)]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    world: World
    size: Size = SIZE
    gate: str = STRICT
    samples: int = 1
    helpful: float = 0.0


NULLS = (
    Case("a coin for each prompt and example, strict gate", World()),
    Case("the same, gate at 95 % confidence", World(), gate=CONFIDENT),
    Case("customers repeat: 5 tickets share a coin", World(per_group=True, per_customer=5), Size(test=400)),
    Case("noisy target: each sample throws its own coin", World(noisy=True), samples=2),
    Case("an easy task: 80 % right", World(share=0.8)),
)
WORTHS = (
    Case("60 % right, all other answers thrown anew", World(share=0.6, worth=0.1), LARGE, helpful=0.5),
    Case("70 % right, all other answers thrown anew", World(share=0.7, worth=0.1), LARGE, helpful=0.5),
    Case("70 % right, half of the answers stay", World(share=0.7, worth=0.1, stable=0.5), LARGE, helpful=0.5),
    Case("80 % right, half of the answers stay", World(share=0.8, worth=0.1, stable=0.5), LARGE, helpful=0.5),
)


def every(job: Callable[[int], object], count: int) -> list:  # type: ignore[type-arg]
    with ProcessPoolExecutor(WORKERS) as pool:
        return list(pool.map(job, range(count), chunksize=4))


def said(found: Sequence[Summary], word: str) -> int:
    return sum(each.verdict == word for each in found)


def share(value: float) -> str:
    return f"{value * 100:.1f} %"


def points(value: float) -> str:
    return f"{value * 100:+.2f}"


def ends(hits: int, tries: int) -> str:
    low, high = interval(hits, tries)
    return f"{share(low)} to {share(high)}"


def nulls(count: int) -> None:
    print("## Worlds without signal\n")
    print(
        f"{count} compiles each. `improved` may be said in 5 % of runs at most; "
        "p is the chance of so many or more at 5 %.\n"
    )
    print(
        "| world | `improved` | 95 % interval | p | `worse` | mean gain reported | mean gain on validation "
        "| runs with an accept |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for case in NULLS:
        found = every(partial(one, case.world, case.size, case.gate, case.samples, 0.0), count)
        hits = said(found, "improved")
        selected = mean(each.inflation or 0 for each in found)
        print(
            f"| {case.name} | {hits} of {count} | {ends(hits, count)} | {at_least(hits, count, LEVEL):.3f} "
            f"| {said(found, 'worse')} | {points(mean(each.gain for each in found))} points "
            f"| {points(selected)} points "
            f"| {share(mean(each.accepted > 0 for each in found))} |",
            flush=True,
        )
    series = max(1, count // 4)
    found = every(partial(row, World(), replace(SIZE, steps=5, test=120)), series)
    claims = sum(any(each.verdict == "improved" for each in one_row) for one_row in found)
    print(f"\nTen compiles in a row on one test split, {series} times: some compile says `improved` in {claims} of")
    print(f"{series} rows ({ends(claims, series)}), p {at_least(claims, series, LEVEL):.3f} at 5 %.\n")


def worths(count: int) -> None:
    print("## Worlds in which the skill is worth 10 points\n")
    print(f"{count} compiles each, 100 validation and 400 test examples; at least 80 % have to say `improved`. Where")
    print("all answers are thrown anew, an exact test shows 10 points in 82 % of runs (60 % right) and 89 % (70 %).\n")
    print("| world | `improved` | 95 % interval | skill found | mean gain reported | its interval holds the truth |")
    print("|---|---|---|---|---|---|")
    for case in WORTHS:
        found = every(partial(one, case.world, case.size, case.gate, 1, case.helpful), count)
        hits = said(found, "improved")
        true = [(each, case.world.worth if each.helpful else 0.0) for each in found if each.interval]
        holds = sum(each.interval[0] <= gain <= each.interval[1] for each, gain in true if each.interval)
        print(
            f"| {case.name} | {hits} of {count} | {ends(hits, count)} | {share(mean(each.helpful for each in found))} "
            f"| {points(mean(each.gain for each in found))} points | {share(holds / len(true))} |",
            flush=True,
        )
    print()


def planned(count: int) -> None:
    print("## What `plan` says against what happens\n")
    print("Worthless candidates, 10 decisions, 60 validation examples, as the worlds above.\n")
    print("| gate | | `plan` | seen |")
    print("|---|---|---|---|")
    for gate, margin in ((STRICT, 0.0), (CONFIDENT, 1.645)):
        found = every(partial(one, World(), replace(SIZE, test=12), gate, 1, 0.0), count)
        run = null_run(10, margin)
        name = "strict" if gate == STRICT else "confidence"
        seen = share(mean(each.accepted > 0 for each in found))
        print(f"| {name} | runs with an accept | {share(chance_of_accept(10, margin))} | {seen} |")
        print(f"| {name} | accepts a run | {run.accepts:.2f} | {mean(each.accepted for each in found):.2f} |")
        lucky = mean(each.inflation for each in found if each.inflation is not None)
        print(
            f"| {name} | validation too high by | at most {points(inflation(run, 60))} | {points(lucky)} |", flush=True
        )
    print("\nThe smallest gain that a test can show in 80 % of runs, drawn with exactly that gain:\n")
    print("| test examples | groups | differing | `plan` | runs that show it |")
    print("|---|---|---|---|---|")
    for examples, groups, differing in (
        (120, 120, 0.25),
        (240, 240, 0.25),
        (400, 400, 0.5),
        (400, 80, 0.25),
        (400, 400, 0.1),
    ):
        gain = smallest_gain(groups, differing)
        hits = sum(every(partial(shown, examples, groups, differing, gain), count))
        print(
            f"| {examples} | {groups} | {share(differing)} | {points(gain)} points "
            f"| {share(hits / count)} ({ends(hits, count)}) |",
            flush=True,
        )


def shown(examples: int, groups: int, differing: float, gain: float, number: int) -> bool:
    """Whether a test reports `improved` for groups that answer as one, with a rate of differences and a mean gain."""
    pairs = []
    for i in range(groups):
        fall = coin("power", number, examples, groups, i)
        better = (differing + gain) / 2
        ours, theirs = (MICRO, 0) if fall < better else (0, MICRO) if fall < differing else (0, 0)
        pairs += [PairedScore(str(i), theirs, ours)] * (examples // groups)
    return judge(pairs, low=Fraction(0), high=Fraction(1), look=1, seed=number).verdict == "improved"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print("# Honest results, measured\n")
    print("Compiles by skillc's own engine in worlds whose truth is known; see `worlds.py`. Made by `run.py`.\n")
    nulls(count)
    worths(max(20, count // 2))
    planned(count)


if __name__ == "__main__":
    main()
