"""Whether a mean differs from one that was recorded earlier, without the scores behind the earlier one.

Each mean has Wilson's interval, and their difference the one of R. G. Newcombe, "Interval estimation for the difference
between independent proportions: comparison of eleven methods", Statistics in Medicine 17 (1998), method 10. On the same
examples it is wider than a paired interval would be: the lock has no score of a single example.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from skillc.dataclass import dataclass
from skillc.stats.power import effective_size, newcombe, wilson

DriftWord = Literal["holds", "worse", "better", "unverified"]


@dataclass(frozen=True, slots=True)
class Drift:
    """The difference of a mean to a recorded one.

    Attributes:
        word: `worse` or `better` if the interval excludes 0, however unmeasured examples are completed; `unverified` if
            they could change that.
        then: the recorded mean.
        now: the mean over the measured examples.
        interval: of now minus then, at 95 %.
    """

    word: DriftWord
    then: Fraction
    now: Fraction
    interval: tuple[Fraction, Fraction]

    @property
    def change(self) -> Fraction:
        """Now minus then."""
        return self.now - self.then


def drift(
    scores: Sequence[tuple[str, Fraction | None]],
    *,
    then: Fraction,
    count: int,
    low: Fraction,
    high: Fraction,
    same: bool,
) -> Drift | None:
    """Compare the mean of scores with a recorded mean; None without a measured score or with fewer than two groups.

    Args:
        scores: group and score of each example; None if it was not measured.
        then: the recorded mean.
        count: the number of examples that it is over.
        low: the least possible score, assumed for missing measurements.
        high: the greatest, likewise.
        same: whether it is over the same examples. Their groups then do not vary between the two means, so that each
            example counts; otherwise a mean is worth its groups.
    """
    measured = [(group, score) for group, score in scores if score is not None]
    found = effective_size(measured, low=low, high=high)
    if found is None or not count:
        return None
    now, size = found
    worth = float(len(measured)) if same else size
    before = wilson(then, worth * count / len(measured), low=low, high=high)
    missing, share = len(scores) - len(measured), Fraction(len(measured), len(scores))
    ends = [share * now + Fraction(missing, len(scores)) * end for end in (low, high)] if missing else [now, now]

    def interval(mean: Fraction) -> tuple[Fraction, Fraction]:
        after = wilson(mean, worth, low=low, high=high)
        return newcombe(mean, after, then, before)

    words = {_word(*interval(end)) for end in ends}
    return Drift(words.pop() if len(words) == 1 else "unverified", then, now, interval(now))


def _word(low: Fraction, high: Fraction) -> DriftWord:
    return "worse" if high < 0 else "better" if low > 0 else "holds"
