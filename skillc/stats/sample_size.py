"""How many examples show a gain, with exact labels and with a judge that errs.

Let D be the difference of the labels of two skills on one example, with mean g, the gain, and variance V. A judge's
score has the slope b on the label and the variance v at equal label. If it errs on the two answers independently, its
differences have the mean b g and, by the law of total variance, the variance b² V + 2 v: the gain looks like an exact
one with the variance V + 2 v / b². With the usual formula for a paired mean, n = z² · variance / g², the ratio of both
numbers is

    n(judged) / n(exact) = 1 + 2 v / (b² V)

A judge that says yes or no, with a false positive rate p and a false negative rate q, has b = 1 - p - q (W. J. Rogan
and B. Gladen, "Estimating prevalence from the results of a screening test", American Journal of Epidemiology 107, 1978)
and v = (1 - r) p (1 - p) + r q (1 - q), where r is the share of right answers. For levels b is that of the regression
of score on label, and with R, their squared correlation, and s², the variance of the label, 2 v / b² is
2 s² (1 - R) / R. If the labels of two skills on one example are independent, V = 2 s² and the ratio is 1 / R, the
inverse of the reliability (J. L. Fleiss, "The Design and Analysis of Clinical Experiments", 1986, chapter 1); if they
correlate by a half, as `needed` assumes, it is 2 / R - 1.

The rates must be the same for both skills: no number of examples helps against a bias for one of them. Errors that both
skills share on an example, such as a wrong idea of its topic, cancel in the difference; then fewer examples suffice, as
long as the labels differ on at most half of the examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, sqrt
from statistics import NormalDist

from skillc.dataclass import dataclass
from skillc.stats.agreement import LEAST_GROUPS_FOR_SPREAD, PairSums, Rated, group_sums
from skillc.stats.power import LEVEL, POWER

_NORMAL = NormalDist()
_Z = _NORMAL.inv_cdf(0.975)
GAIN = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class ErrorModel:
    """How scores follow labels.

    Attributes:
        slope: mean change of the score with one unit of the label.
        noise: mean variance of the score at equal label.
        step: the least by which two scores differ; 0 for any score.
    """

    slope: float = 1.0
    noise: float = 0.0
    step: float = 1.0


EXACT = ErrorModel()


def two_valued(false_positive: float, false_negative: float, right: float) -> ErrorModel:
    """Return the errors of a judge that says yes or no.

    Args:
        false_positive: share of wrong answers that it calls right.
        false_negative: share of right answers that it calls wrong.
        right: share of right answers, the mean of both skills.
    """
    noise = (1 - right) * false_positive * (1 - false_positive) + right * false_negative * (1 - false_negative)
    return ErrorModel(1 - false_positive - false_negative, noise)


def examples_needed(
    gain: float, variance: float, judge: ErrorModel = EXACT, *, level: float = float(LEVEL)
) -> int | None:
    """Return the examples on which a two-sided paired test shows a gain in 8 of 10 runs; None if no number suffices.

    It solves e = z sqrt(s / n) + step / n, with e and s the mean and the variance of the judged differences, as
    `smallest_gain` does.

    Args:
        gain: in units of the label's range.
        variance: of the difference of the labels on one example; for labels of 0 and 1 that differ on a share d it is
            d - gain².
        judge: its errors.
        level: of the test.
    """
    return _number(_root(gain, variance, judge, level))


def _number(root: float) -> int | None:
    # Beyond 10^12 examples the slope is 0 but for rounding.
    return ceil(1 / root**2 - 1e-9) if root > 1e-6 else None


def _root(gain: float, variance: float, judge: ErrorModel, level: float = float(LEVEL)) -> float:
    """Return 1 / sqrt(n), which is about normal when the errors are estimated; negative for a negative slope."""
    z = _NORMAL.inv_cdf(1 - level / 2) + _NORMAL.inv_cdf(POWER)
    mean, spread = abs(judge.slope) * gain, z * sqrt(judge.slope**2 * variance + 2 * judge.noise)
    # The root of step x² + spread x - mean, in a form that holds for a step of 0.
    root = 2 * mean / (spread + sqrt(spread**2 + 4 * judge.step * mean)) if mean else 0.0
    return root if judge.slope > 0 else -root


@dataclass(frozen=True, slots=True)
class Needed:
    """Examples that show a gain in 8 of 10 runs.

    Attributes:
        gain: in units of the label's range.
        exact: with labels.
        judged: with the judge; None if no number suffices.
        interval: of `judged` at 95 %, the second end None for no number; None with fewer than six groups.
        judge: the estimated errors.
    """

    gain: Fraction
    exact: int
    judged: int | None
    interval: tuple[int, int | None] | None
    judge: ErrorModel


def needed(rated: Sequence[Rated], gain: Fraction = GAIN) -> Needed | None:
    """Return the examples that a gain takes, by a judge's scores of labelled answers; None if all labels are equal.

    The labels of two skills on one example are assumed to correlate by a half, so that their difference varies as much
    as the label itself: skills that are right on half of the examples then differ on a quarter of them. The interval is
    that of the jackknife over groups, with one error more than was seen.

    Args:
        rated: the judge's score and the label of each answer, from 0 to 1.
        gain: in units of the label's range.
    """
    whole, by_group = group_sums(rated)
    steps = [_step([each.one for each in rated]), _step([each.other for each in rated])]
    judge, variance = _error_model(whole, steps[0]), _label_variance(whole)
    exact = examples_needed(float(gain), variance, ErrorModel(step=steps[1]))
    if judge is None or exact is None:
        return None
    judged = examples_needed(float(gain), variance, judge)
    ends = _interval(whole, by_group, float(gain), variance, judge.step)
    return Needed(
        gain,
        exact,
        judged if judged is None else max(exact, judged),
        ends if ends is None else (max(exact, ends[0]), ends[1] if ends[1] is None else max(exact, ends[1])),
        judge,
    )


def _step(values: Sequence[Fraction]) -> float:
    ordered = sorted(set(values))
    return float(min((other - one for one, other in pairwise(ordered)), default=Fraction(1)))


def _error_model(sums: PairSums, step: float) -> ErrorModel | None:
    """Return the regression of score on label; None if it is not defined."""
    if sums.n < 3 or _label_variance(sums) < 1e-12:
        return None
    labels = sums.yy - sums.y**2 / sums.n
    scores = sums.xx - sums.x**2 / sums.n
    together = (sums.xx + sums.yy - sums.distance) / 2 - sums.x * sums.y / sums.n
    slope = together / labels
    return ErrorModel(slope, max(0.0, scores - slope * together) / (sums.n - 2), step)


def _label_variance(sums: PairSums) -> float:
    return (sums.yy - sums.y**2 / sums.n) / (sums.n - 1) if sums.n > 1 else 0.0


def _interval(
    whole: PairSums, by_group: Sequence[PairSums], gain: float, variance: float, step: float
) -> tuple[int, int | None] | None:
    def root(sums: PairSums) -> float | None:
        judge = _error_model(sums, step)
        return None if judge is None else _root(gain, variance, judge)

    count, middle = len(by_group), root(whole)
    roots = [each for sums in by_group if (each := root(whole.plus(sums, -1))) is not None]
    if middle is None or len(roots) < max(count, LEAST_GROUPS_FOR_SPREAD):
        return None
    mean = sum(roots) / count
    spread = (count - 1) / count * sum((each - mean) ** 2 for each in roots)
    # A judge without an error in a few answers may still have some.
    errors = [root(whole.plus(PairSums.of(score, 1 - score))) for score in (0.0, 1.0)]
    unseen = max((middle - each) ** 2 for each in errors if each is not None)
    reach = _Z * sqrt(spread + unseen)
    least = _number(middle + reach)
    return None if least is None else (least, _number(middle - reach))
