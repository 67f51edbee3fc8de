"""How far a judge goes with the truth: with a metric that code measures and the goal does not read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

from skillc.dataclass import dataclass
from skillc.items.record import Measure, RunItems, SplitName
from skillc.stats.agreement import Agreement, Rated, agreement, correlation


@dataclass(frozen=True, slots=True)
class Tracking:
    """How two metrics go together on some rollouts.

    Attributes:
        agreement: of the two scores as shares of their ranges.
        correlation: Pearson's, None if either never varies.
        interval: of the correlation at 95 %, over groups; None with fewer than six.
    """

    agreement: Agreement
    correlation: float | None
    interval: tuple[float, float] | None

    @property
    def by_chance(self) -> bool | None:
        """Whether the scores are not distinguishable from unrelated ones; None if that cannot be said."""
        if self.interval is None:
            return None
        return self.interval[0] <= 0 <= self.interval[1]

    @property
    def against(self) -> bool:
        """Whether the judge prefers what is wrong."""
        return self.interval is not None and self.interval[1] < 0


@dataclass(frozen=True, slots=True)
class JudgedTruth:
    """One judged metric against one that code measures.

    Attributes:
        rollouts: all that both have scored, each item under each version.
        steps: the same by version, in order, with the place where it was accepted.
        flips: how often the judged metric changed on an item from one version to the next, and how many such pairs
            both metrics have scored.
        idle: those of the flips in which the truth did not change.
        true_flips: how often the truth changed.
    """

    judged: str
    truth: str
    rollouts: Tracking
    steps: tuple[tuple[str, Tracking], ...]
    flips: int
    pairs: int
    idle: int
    true_flips: int


def judged_truths(items: RunItems, splits: Sequence[SplitName] = ("train", "validation", "test")) -> list[JudgedTruth]:
    """Return each judged metric against each that is a truth; none if the program lacks one of the two."""
    judged = [each for each in items.measures if each.judged and (each.in_goal or each.in_gates)]
    # A goal made of a judge and a length is not the judge's verdict: its parts are.
    parts = [each for each in judged if each.name != items.goal] or judged
    truths = [each for each in items.measures if each.truth]
    return [_compared(items, one, other, splits) for one in parts for other in truths]


def _compared(items: RunItems, judged: Measure, truth: Measure, splits: Sequence[SplitName]) -> JudgedTruth:
    by_version: list[list[Rated]] = [[] for _ in items.versions]
    pairs = flips = idle = true_flips = 0
    for item in items.items:
        if item.split not in splits:
            continue
        seen: list[tuple[int, int]] = []
        for i, (one, other) in enumerate(zip(item.cells[judged.name], item.cells[truth.name], strict=True)):
            if isinstance(one, int) and isinstance(other, int):
                by_version[i].append(Rated(item.group, judged.share(one), truth.share(other)))
                seen.append((one, other))
        for before, after in pairwise(seen):
            pairs += 1
            flips += before[0] != after[0]
            true_flips += before[1] != after[1]
            idle += before[0] != after[0] and before[1] == after[1]
    steps = [
        (version.place, tracking(rated)) for version, rated in zip(items.versions, by_version, strict=True) if rated
    ]
    rollouts = tracking(each for rated in by_version for each in rated)
    return JudgedTruth(judged.name, truth.name, rollouts, tuple(steps), flips, pairs, idle, true_flips)


def tracking(rated: Iterable[Rated]) -> Tracking:
    """Return how two ratings go together."""
    every = list(rated)
    value, interval = correlation(every)
    return Tracking(agreement(every, (Fraction(0), Fraction(1))), value, interval)
