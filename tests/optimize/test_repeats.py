"""Compiles of identical inputs, whose target answers by chance, mostly say the same. The figures are made by
benchmarks/repeats.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "honest"))

from binomial import most_in
from compiles import CONFIDENT, Size

from benchmarks.repeats.__main__ import CASES, Case, Summary, differing, one

RUNS = 20
SMALL = Size(train=36, validation=60, test=200, steps=6)
# A fair compiler fails this bound less than once in a million.
DOUBT = 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize(("case", "verdict"), list(zip(CASES, ("no significant gain", "improved"), strict=False)))
def test_repeated_compiles_rarely_differ_in_their_verdict(case: Case, verdict: str) -> None:
    found = [one(case, CONFIDENT, SMALL, throw) for throw in range(RUNS)]
    most, others = differing(found)
    assert most == verdict
    assert others <= most_in(RUNS, 0.05, DOUBT)
    # The inputs are the same, and the coins are not.
    assert len({each.gain for each in found}) > 1 or case.worth == 0


def test_the_others_are_those_without_the_most_frequent_verdict() -> None:
    found = [Summary(word, 0.0, 0) for word in ("improved", "worse", "improved", "unverified")]
    assert differing(found) == ("improved", 2)
