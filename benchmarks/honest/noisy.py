"""Noisy signals as a goal: do intervals with declared and with measured error rates hold the gain in right answers?

    nice python benchmarks/honest/noisy.py [runs]

Each run draws 200 test examples under two skills, the signal of each answer and, where rates are measured, the examples
that they were measured on. It prints the section "Noisy signals" of the README beside this file. A test is run once on
the raw signal; corrected values are proportional to it, so that verdict and p are the same and the interval is divided.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from binomial import interval

from skillc.outcomes import MICRO
from skillc.stats import verdict
from skillc.stats.error_rates import ErrorRates
from skillc.stats.misclassification import gain_interval
from skillc.stats.power import LEVEL
from skillc.stats.verdict import PairedScore, Verdict, judge

EXAMPLES, RIGHT, STAY = 200, 0.5, 0.5
TRUE = ErrorRates(Fraction(92, 100), Fraction(85, 100))
# A tenth of the subsets of the verdict, which changes p in the third digit and takes a tenth of the time.
verdict.SUBSETS = 9_999
MEASURED = (100, 50, 25)
WRONG = ((98, 95), (92, 95), (85, 75))
TRUSTED = (200, 100, 50)


@dataclass(frozen=True)
class Drawn:
    """One run: which answers are right, and which the signal calls right, under the initial skill and the new one."""

    right: tuple[np.ndarray, np.ndarray]
    signal: tuple[np.ndarray, np.ndarray]


def draw(random: np.random.Generator, gain: float, pleasing: float = 0.0) -> Drawn:
    """Draw a run; the new skill makes the signal say yes to `pleasing` more of its wrong answers."""
    before = random.random(EXAMPLES) < RIGHT
    after = np.where(random.random(EXAMPLES) < STAY, before, random.random(EXAMPLES) < RIGHT)
    after = after | (~after & (random.random(EXAMPLES) < gain / (1 - RIGHT)))

    def says(right: np.ndarray, more: float) -> np.ndarray:
        yes, no = random.random(EXAMPLES) < float(TRUE.sensitivity), random.random(EXAMPLES) < float(TRUE.specificity)
        return np.where(right, yes, ~no | (random.random(EXAMPLES) < more))

    return Drawn((before, after), (says(before, 0.0), says(after, pleasing)))


def judged(initial: np.ndarray, best: np.ndarray, span: int = 1) -> Verdict:
    """Judge 0/1 values, or differences of them for a span of 2."""
    pairs = [
        PairedScore(str(i), int(a) * MICRO, int(b) * MICRO) for i, (a, b) in enumerate(zip(initial, best, strict=True))
    ]
    return judge(pairs, low=Fraction(1 - span), high=Fraction(1), look=1, seed=7)


def corrected(found: Verdict, rates: ErrorRates) -> tuple[Fraction, tuple[Fraction, Fraction]]:
    """Return gain and interval in right answers."""
    assert found.gain is not None and found.interval is not None
    gain, ends = found.gain / rates.youden, (found.interval[0] / rates.youden, found.interval[1] / rates.youden)
    return gain, gain_interval(gain, ends, rates, LEVEL)


def measured(random: np.random.Generator, count: int) -> ErrorRates:
    """Return the rates that so many checked right answers and as many wrong ones give."""
    yes, no = (int(random.binomial(count, float(rate))) for rate in (TRUE.sensitivity, TRUE.specificity))
    return ErrorRates(Fraction(yes, count), Fraction(no, count), count, count)


def share(hits: int, runs: int) -> str:
    """Render a count of runs with its interval."""
    low, high = interval(hits, runs)
    return f"{hits / runs:.1%} ({low:.1%} to {high:.1%})".replace("%", " %")


def coverage(runs: int) -> list[str]:
    """Return the rows of coverage, by gain and by what is known of the rates."""
    rows = []
    for gain in (0.0, 0.1, 0.2):
        random = np.random.default_rng(int(gain * 100))
        names = ["the signal as it is", "declared, exact", *(f"measured on {2 * each}" for each in MEASURED)]
        held, width, improved, as_exact = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0), 0, 0
        for _ in range(runs):
            run = draw(random, gain)
            found = judged(*run.signal)
            improved += found.verdict == "improved"
            rated = {names[1]: TRUE, **{f"measured on {2 * each}": measured(random, each) for each in MEASURED}}
            ends = {name: corrected(found, rates)[1] for name, rates in rated.items()}
            ends[names[0]] = found.interval
            last = rated[names[-1]]
            plain = corrected(found, ErrorRates(last.sensitivity, last.specificity))[1]
            as_exact += plain[0] <= gain <= plain[1]
            for name, (low, high) in ends.items():
                held[name] += low <= gain <= high
                width[name] += float(high - low)
        for name in names:
            rows.append(f"| {gain * 100:+.0f} | {name} | {share(held[name], runs)} | {width[name] / runs * 100:.1f} |")
        rows.append(f"| {gain * 100:+.0f} | {names[-1]}, taken as exact | {share(as_exact, runs)} | |")
        rows.append(f"| {gain * 100:+.0f} | verdict `improved` | {share(improved, runs)} | |")
    return rows


def misdeclared(runs: int) -> list[str]:
    """Return the rows of rates that are declared wrongly, at a gain of 20 points."""
    random, sums, held = np.random.default_rng(77), dict.fromkeys(WRONG, 0.0), dict.fromkeys(WRONG, 0)
    for _ in range(runs):
        found = judged(*draw(random, 0.2).signal)
        for pair in WRONG:
            gain, (low, high) = corrected(found, ErrorRates(*(Fraction(each, 100) for each in pair)))
            sums[pair] += float(gain)
            held[pair] += low <= 0.2 <= high
    return [
        f"| {yes} % | {no} % | {sums[yes, no] / runs * 100:+.1f} | {share(held[yes, no], runs)} |" for yes, no in WRONG
    ]


def pleasing(runs: int) -> list[str]:
    """Return the rows of a skill that pleases the signal and is no better, and how often trusted labels show it."""
    rows = []
    for more in (0.0, 0.1, 0.25):
        random = np.random.default_rng(round(more * 100) + 5)
        improved, total, shown = 0, 0.0, dict.fromkeys(TRUSTED, 0)
        for _ in range(runs):
            run = draw(random, 0.0, more)
            found = judged(*run.signal)
            improved += found.verdict == "improved"
            total += float(corrected(found, TRUE)[0])
            for count in TRUSTED:
                # The excess of the corrected signal over the label, in units that keep whole numbers.
                excess = [
                    100 * signal[:count].astype(int) - 77 * right[:count].astype(int)
                    for signal, right in zip(run.signal, run.right, strict=True)
                ]
                shown[count] += judged(*excess, span=400).verdict == "improved"
        parts = " | ".join(f"{shown[count] / runs:.1%}".replace("%", " %") for count in TRUSTED)
        rows.append(f"| {more * 100:.0f} % | {total / runs * 100:+.1f} | {share(improved, runs)} | {parts} |")
    return rows


def main() -> None:
    """Print the section."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print("| gain | error rates | interval holds the gain | width, points |\n|---|---|---|---|")
    print("\n".join(coverage(runs)), flush=True)
    print("\n| declared sensitivity | declared specificity | mean gain | interval holds +20 |\n|---|---|---|---|")
    print("\n".join(misdeclared(runs)), flush=True)
    heads = " | ".join(f"shown by {count} labels" for count in TRUSTED)
    print(f"\n| wrong answers that please | mean gain | `improved` | {heads} |")
    print("|" + "---|" * (3 + len(TRUSTED)))
    print("\n".join(pleasing(runs // 4)))


if __name__ == "__main__":
    main()
