"""Several paired tests as one family: Holm's procedure, so that all claims together have one level.

S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979). The
chance of any false claim is at most the level, however the tests depend on each other: they share an arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal

from skillc.dataclass import dataclass
from skillc.stats.error_rates import ErrorRates
from skillc.stats.power import LEVEL
from skillc.stats.verdict import PairedScore, Verdict, VerdictWord, judge, largest_p, p_range

Finding = Literal["pays", "harms", "no evidence", "not measured"]
_FINDINGS: Mapping[VerdictWord, Finding] = {
    "improved": "pays",
    "worse": "harms",
    "no significant gain": "no evidence",
    "unverified": "not measured",
}


@dataclass(frozen=True, slots=True)
class Member:
    """One test of a family.

    Attributes:
        verdict: at the level of its step, so that its interval excludes 0 exactly if the procedure claims a difference.
        adjusted: its p-value for the family; at most the family's level exactly if a difference is claimed.
    """

    verdict: Verdict
    adjusted: Fraction

    @property
    def finding(self) -> Finding:
        """What the test claims of a part of a skill, where `verdict` compares the skill with itself without it."""
        return _FINDINGS[self.verdict.verdict] if self.verdict.n else "not measured"


def judge_family(
    family: Mapping[str, Sequence[PairedScore]],
    *,
    low: Fraction,
    high: Fraction,
    seed: int,
    samples: int = 1,
    level: Fraction = LEVEL,
    rates: ErrorRates | None = None,
) -> dict[str, Member]:
    """Judge each member by name as `stats.verdict.judge` does, at the level that Holm's procedure leaves for it.

    A member with unmeasured pairs enters with the largest p that they allow, so that one which was not measured at all
    still counts as a test. `level` is that of the family; the other arguments are those of `judge`.
    """
    found = {name: largest_p(pairs, low=low, high=high, seed=seed) for name, pairs in family.items()}
    levels, adjusted = holm(found, level)
    return {
        name: Member(
            judge(pairs, low=low, high=high, look=1, seed=seed, samples=samples, level=levels[name], rates=rates),
            adjusted[name],
        )
        for name, pairs in family.items()
    }


def holm(found: Mapping[str, Fraction], level: Fraction) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    """Return the level that each p-value is compared with, and each adjusted p-value.

    From the first p-value that fails on, all have the level of that step.
    """
    levels, adjusted = dict[str, Fraction](), dict[str, Fraction]()
    left, so_far, failed = len(found), Fraction(0), False
    for name in sorted(found, key=lambda name: found[name]):
        so_far = max(so_far, min(Fraction(1), left * found[name]))
        adjusted[name], levels[name] = so_far, level / left
        failed = failed or found[name] > level / left
        left -= not failed
    return levels, adjusted


def is_claim_settled(
    pairs: Sequence[PairedScore], tests: int, *, low: Fraction, high: Fraction, seed: int, level: Fraction = LEVEL
) -> bool:
    """Return whether the unmeasured pairs of a member can no longer change what its family of `tests` members claims.

    The claim is settled if every completion passes the strictest level of Holm's procedure, or none the loosest one.
    """
    smallest, largest = p_range(pairs, low=low, high=high, seed=seed)
    return largest <= level / tests or smallest > level
