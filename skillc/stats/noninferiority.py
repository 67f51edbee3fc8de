"""Whether one form of a skill is not worse than another by more than a margin, on the same examples.

The claim is that the mean difference plus the margin is above 0. It is shown if the e-value of the group sums of
`difference + margin` reaches 1 / level: by Markov's inequality that happens with at most this probability if the claim
is false, for scores of any kind and any number of examples (Waudby-Smith and Ramdas, "Estimating means of bounded
random variables by betting", JRSS B 86, 2024). A normal approximation would claim too often here: at a margin of five
points, 40 examples without a single difference are 13 % likely under a loss of five points.

A margin that is declared before the measurement, and a one-sided claim, are as in ICH E9 and in Wellek, "Testing
Statistical Hypotheses of Equivalence and Noninferiority", 2nd ed. 2010, chapter 1.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from skillc.dataclass import dataclass
from skillc.outcomes import MICRO
from skillc.stats.power import BETS, LEVEL, POWER, e_value
from skillc.stats.verdict import PairedScore

Word = Literal["not worse", "not shown", "unverified"]
_DRAWS = 4_000
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class NonInferiority:
    """The result of the test.

    Attributes:
        word: `not worse` if the claim is shown, however unmeasured examples are completed; `unverified` if they
            decide it.
        margin: in goal points.
        difference: mean of the tested form minus the other one, over the measured pairs; None without one.
        e: the e-value with the worst completion.
        level: of the test; the claim needs an e-value of 1 / level.
        n: measured pairs.
        differing: the share of the measured pairs whose scores differ.
    """

    word: Word
    margin: Fraction
    difference: Fraction | None
    e: Fraction
    level: Fraction
    n: int
    differing: Fraction


def non_inferiority(
    pairs: Sequence[PairedScore], *, margin: Fraction, low: Fraction, high: Fraction, level: Fraction = LEVEL
) -> NonInferiority:
    """Test that `best`, the form in question, is not worse than `initial` by `margin` or more.

    Args:
        pairs: one per example and sample; the groups are independent, their pairs need not be.
        margin: in goal points, above 0 and below the width of the goal.
        low: the least possible goal, assumed for missing measurements.
        high: the greatest, likewise.
        level: the largest chance of a claim that is false.

    Raises:
        ValueError: the margin is not between 0 and the width of the goal.
    """
    width = high - low
    if not 0 < margin < width:
        raise ValueError(f"the margin {margin} is not between 0 and {width}")
    moved = [pair.best - pair.initial if pair.best is not None and pair.initial is not None else None for pair in pairs]
    worst, best = (_evidence(pairs, moved, margin, width, end) for end in (-width, width))
    measured = [each for each in moved if each is not None]
    word: Word = "not shown"
    if worst >= 1 / level:
        word = "not worse"
    elif best >= 1 / level:
        word = "unverified"
    return NonInferiority(
        word,
        margin,
        Fraction(sum(measured), len(measured) * MICRO) if measured else None,
        worst,
        level,
        len(measured),
        Fraction(sum(map(bool, measured)), len(measured)) if measured else Fraction(0),
    )


def _evidence(
    pairs: Sequence[PairedScore], moved: Sequence[int | None], margin: Fraction, width: Fraction, missing: Fraction
) -> Fraction:
    """Return the e-value with every missing difference completed by `missing`."""
    if not pairs:
        return Fraction(1)
    shift, absent = round(margin * MICRO), round(missing * MICRO)
    sums: dict[str, int] = defaultdict(int)
    for pair, each in zip(pairs, moved, strict=True):
        sums[pair.group] += (absent if each is None else each) + shift
    # A bet may lose at most its stake: what the largest group can lose.
    largest = max(Counter(pair.group for pair in pairs).values())
    return e_value(Counter(sums.values()), largest * (round(width * MICRO) - shift))


def examples_needed(margin: float, differing: float, *, level: float = float(LEVEL)) -> int | None:
    """Return the examples with which equal forms pass in 8 of 10 tests; None if 20,000 are too few.

    For right and wrong answers, each example a group of its own. It is simulated with a fixed seed.

    Args:
        margin: as a share of the goal's width.
        differing: the share of the examples on which one of two equal forms is right and the other wrong.
        level: of the test.
    """
    low, high = 0, 16
    while _power(high, margin, differing, level) < POWER:
        low, high = high, high * 2
        if high > _MOST:
            return None
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if _power(middle, margin, differing, level) >= POWER else (middle, high)
    return high


def _power(examples: int, margin: float, differing: float, level: float) -> float:
    """Return the share of tests of two equal forms that show the claim."""
    import numpy as np

    draw = np.random.default_rng(examples)
    moved = draw.binomial(examples, differing, _DRAWS)
    wins = draw.binomial(moved, 0.5)
    logs = []
    for bet in BETS:
        stake = bet / 8 / (1 - margin)
        won, lost, tied = (math.log1p(stake * (each + margin)) for each in (1, -1, 0))
        logs.append(wins * won + (moved - wins) * lost + (examples - moved) * tied)
    evidence = np.logaddexp.reduce(logs) - math.log(len(BETS))
    return float(np.mean(evidence >= -math.log(level)))
