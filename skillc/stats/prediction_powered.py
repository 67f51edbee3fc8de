"""The mean of a label over many items from a few labels and a judge's score of every item.

Prediction-powered inference (A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan and T. Zrnic, Science 382, 2023)
with power tuning (A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: efficient prediction-powered inference",
arXiv:2311.01453): the judge's mean over the unlabelled items, shrunk by a factor, plus the mean of label minus shrunk
score over the labelled ones. The factor is the one with the least variance, so that a judge that knows nothing of the
label gets 0, which leaves the plain mean of the labels. The labelled items have to be a random part of all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.stats.power import mean_interval, wilson

LEAST_LABELS = 30
"""Labels below which the error of a judge is too uncertain for a correction."""
Interval = tuple[Fraction, Fraction]
# A good judge errs on few labelled items or none, whose spread is then too small on average. So much, in whole errors,
# is added to the sum of squares; without it intervals of 40 labels hold the truth in 91 to 93 % of worlds.
_UNSEEN = 1.0


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean that corrects for the errors of a judge.

    Attributes:
        mean: the estimate, within 0 and 1.
        interval: at 95 %, by Wilson's score on the effective sample size; the variance is the larger of that between
            groups and that of independent items.
        factor: of the judge's scores, from 0 to 1.
        labels: labelled items.
        unlabelled: items with the judge's score alone.
        judged: the judge's mean over all items.
        plain: the mean of the labels alone.
        plain_interval: None below two groups.
    """

    mean: Fraction
    interval: Interval
    factor: float
    labels: int
    unlabelled: int
    judged: Fraction
    plain: Fraction
    plain_interval: Interval | None


def corrected_mean(
    labelled: Sequence[tuple[str, Fraction, Fraction]], unlabelled: Sequence[tuple[str, Fraction]]
) -> Corrected | None:
    """Return the mean of the label over all items; None with fewer than 30 labels, or without an unlabelled item.

    Args:
        labelled: group, label and judge's score of each labelled item, from 0 to 1.
        unlabelled: group and judge's score of each other item.
    """
    n, more = len(labelled), len(unlabelled)
    if n < LEAST_LABELS or not more or len({group for group, *_ in (*labelled, *unlabelled)}) < 2:
        return None
    label = [float(y) for _, y, _ in labelled]
    score = [float(f) for _, _, f in labelled]
    other = [float(f) for _, f in unlabelled]
    factor = _factor(label, score, other)
    rest = [y - factor * f for y, f in zip(label, score, strict=True)]
    shrunk = [factor * f for f in other]
    middle, far = sum(rest) / n, sum(shrunk) / more
    # What each item adds to the error of the estimate.
    errors = [(group, (value - middle) / n) for (group, *_), value in zip(labelled, rest, strict=True)]
    errors += [(group, (value - far) / more) for (group, _), value in zip(unlabelled, shrunk, strict=True)]
    apart = (sum(e * e for _, e in errors[:n]) + _UNSEEN / n**2) * n / (n - 1)
    alone = apart + sum(e * e for _, e in errors[n:]) * more / max(1, more - 1)
    groups: dict[str, float] = defaultdict(float)
    for group, error in errors:
        groups[group] += error
    between = (sum(e * e for e in groups.values()) + _UNSEEN / n**2) * len(groups) / (len(groups) - 1)
    variance = max(alone, between)
    mean = min(1.0, max(0.0, middle + far))
    worth = mean * (1 - mean) / variance if variance > 1e-15 and 0 < mean < 1 else float(len({g for g, *_ in labelled}))
    exact = Fraction(mean).limit_denominator(10**9)
    return Corrected(
        mean=exact,
        interval=wilson(exact, worth, low=Fraction(0), high=Fraction(1)),
        factor=factor,
        labels=n,
        unlabelled=more,
        judged=(sum((f for *_, f in labelled), Fraction(0)) + sum((f for _, f in unlabelled), Fraction(0)))
        / (n + more),
        plain=sum((y for _, y, _ in labelled), Fraction(0)) / n,
        plain_interval=mean_interval([(g, y) for g, y, _ in labelled], low=Fraction(0), high=Fraction(1)),
    )


def _factor(label: Sequence[float], score: Sequence[float], other: Sequence[float]) -> float:
    """The factor of the judge's scores with the least variance, within 0 and 1."""
    n, every = len(label), [*score, *other]
    middle, far, whole = sum(label) / n, sum(score) / n, sum(every) / len(every)
    together = sum((y - middle) * (f - far) for y, f in zip(label, score, strict=True)) / (n - 1)
    spread = sum((f - whole) ** 2 for f in every) / (len(every) - 1)
    return min(1.0, max(0.0, together / ((1 + n / len(other)) * spread))) if spread > 1e-15 else 0.0
