"""False accepts by chance, detectable gains, intervals of means, and e-values.

False accepts assume candidates that are exchangeable with the incumbent, and normal means: a candidate passes if its
draw is more than `margin` standard errors of a difference above the incumbent's draw, which is the same for all of
them. That gives the figures of docs/design/statistics.md: 46 % and 98 % for forty candidates, 8 points at 200 examples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from math import gcd, log, prod, sqrt
from statistics import NormalDist
from typing import TypeAlias

from skillc.dataclass import dataclass
from skillc.outcomes import MICRO

_NORMAL = NormalDist()
_POINTS = 400
_REACH = 8.0
_COARSE = 160
_MOST_FOLLOWED = 1_000

_SUMMED = 1_000
_EULER = 0.5772156649015329

LEVEL = Fraction(1, 20)
LEAST_GROUPS = 6
"""Groups below which no test result is significant."""
POWER = 0.8
# The assumed share of test examples on which two skills differ, before any measurement.
DIFFERING = 0.25


def _harmonic(number: int) -> float:
    """1 + 1/2 + ... + 1/n; from a thousand on by Euler's expansion, which is exact to 12 digits there."""
    if number <= _SUMMED:
        return sum(1 / i for i in range(1, number + 1))
    return log(number) + _EULER + 1 / (2 * number) - 1 / (12 * number**2)


def chance_of_accept(candidates: int, margin: float) -> float:
    """The probability that at least one of some useless candidates passes.

    P = 1 - integral of phi(u) Phi(u + sqrt(2) margin)^n du, by Simpson's rule.

    Args:
        candidates: the number of decisions.
        margin: of a candidate over the incumbent, in standard errors of a difference of two means.
    """
    step = 2 * _REACH / _POINTS
    passed = 0.0
    for i in range(_POINTS + 1):
        u = -_REACH + i * step
        weight = 1 if i in (0, _POINTS) else 4 if i % 2 else 2
        passed += weight * _NORMAL.pdf(u) * _NORMAL.cdf(u + sqrt(2) * margin) ** candidates
    return min(1.0, max(0.0, 1 - passed * step / 3))


@dataclass(frozen=True, slots=True)
class NullRun:
    """The expected result of a run whose candidates are all useless.

    Attributes:
        accepts: the mean number of false accepts.
        luck: the bias of the last skill's mean if any was accepted, in standard errors.
    """

    accepts: float
    luck: float


def null_run(candidates: int, margin: float) -> NullRun:
    """Follow a run of useless candidates, each of which becomes the incumbent if accepted.

    The density f of the incumbent's mean is followed from candidate to candidate on a grid. A candidate, of density
    phi, is accepted with P = integral of f(u) (1 - Phi(u + sqrt(2) margin)) du, which leaves the density
    f(v) Phi(v + sqrt(2) margin) + phi(v) F(v - sqrt(2) margin). With margin 0 the accepts are the expected number of
    records, 1/2 + 1/3 + ... + 1/(n + 1) (Renyi, "Theorie des elements saillants d'une suite d'observations", 1962).

    Args:
        candidates: the number of decisions, at least 1; only the first 1,000 are followed.
        margin: of a candidate over the incumbent, in standard errors of a difference of two means.
    """
    step = 2 * _REACH / _COARSE
    grid = [-_REACH + i * step for i in range(_COARSE + 1)]
    drawn = [_NORMAL.pdf(u) * step for u in grid]
    stays = [_NORMAL.cdf(u + sqrt(2) * margin) for u in grid]
    whole, rest = divmod(sqrt(2) * margin / step, 1)
    held, untouched, accepts = list(drawn), list(drawn), 0.0
    for _ in range(min(candidates, _MOST_FOLLOWED)):
        accepts += sum(mass * (1 - stay) for mass, stay in zip(held, stays, strict=True))
        below = [0.0] + [before + mass / 2 for before, mass in zip(accumulate(held), held[1:], strict=False)]
        passed = [_between(below, i - int(whole), rest) for i in range(len(grid))]
        held = [mass * stay + new * low for mass, stay, new, low in zip(held, stays, drawn, passed, strict=True)]
        untouched = [mass * stay for mass, stay in zip(untouched, stays, strict=True)]
    if margin == 0:
        accepts = _harmonic(candidates + 1) - 1
    changed = [mass - same for mass, same in zip(held, untouched, strict=True)]
    return NullRun(accepts, sum(u * mass for u, mass in zip(grid, changed, strict=True)) / max(sum(changed), 1e-12))


def _between(values: Sequence[float], i: int, rest: float) -> float:
    """Interpolate between index i and i - 1; 0 below the first index, the last value above the last."""
    here, before = (values[min(k, len(values) - 1)] if k >= 0 else 0.0 for k in (i, i - 1))
    return here * (1 - rest) + before * rest


def smallest_gain(
    units: int, differing: float = DIFFERING, look: int = 1, *, noise: float = 0.0, slope: float = 1.0
) -> float:
    """The gain that the final test detects in 8 of 10 runs, in units of the goal's width; at most `differing`.

    g = z sqrt(s / (n + z^2)) + 1 / n with z = z(1 - alpha / 2) + z(0.8) and alpha = 0.05 / look^2. Without the last
    term it solves g = z sqrt((s - g^2) / n): a paired difference of 0/1 scores that is not 0 on a share s of the
    examples has the variance s - g^2 (Miettinen, "The matched pairs design in the case of all-or-none responses",
    Biometrics 24, 1968). The last term is what an exact test of whole counts asks on top (Edwards, "Note on the
    correction for continuity", Psychometrika 13, 1948).

    A signal that errs has a slope b below 1 and a noise v (see `sample_size.py`): s grows by 2 v / b^2, and the last
    term by 1 / b.

    Args:
        units: test examples; or groups, if the examples of a group are fully dependent.
        differing: the share of the examples on which the two skills differ.
        look: the number of looks at the test split, this one included.
        noise: the variance of the score at equal label.
        slope: the mean change of the score with the label.
    """
    z = _shown_at(float(LEVEL) / look**2)
    spread = differing + 2 * noise / slope**2
    return min(differing, z * sqrt(spread / (units + z * z)) + 1 / (units * slope))


def inflation(run: NullRun, examples: int, width: float = 1.0) -> float:
    """The largest bias of the mean of a falsely accepted skill, in units of the metric.

    It is the luck of the run times the largest standard error of a mean: half the metric's width by the root of the
    number of examples.
    """
    return run.luck * width / 2 / sqrt(examples)


def detectable_gain(differences: Sequence[int], sizes: Sequence[int], alpha: Fraction) -> float:
    """The gain in goal points that a test detects with 80 % power, given the measured differences by group.

    (z(1 - alpha/2) + z(power)) times the standard error of the gain, with groups as clusters, and one step more: the
    usual normal approximation for a paired mean (Cohen, "Statistical Power Analysis", 2nd ed. 1988, section 2). A step
    is the least by which sums of such differences differ; an exact test asks for it on top (Edwards, as above).

    Args:
        differences: by group, in millionths.
        sizes: pairs of each group.
        alpha: the level of the test.
    """
    n = sum(sizes)
    gain = sum(differences) / n
    spread = sqrt(sum((d - gain * size) ** 2 for d, size in zip(differences, sizes, strict=True))) / n
    step = gcd(*differences) / n
    return (_shown_at(float(alpha)) * spread + step) / MICRO


def _shown_at(level: float) -> float:
    """The standard errors of a gain that a two-sided test at a level detects with the usual power."""
    return _NORMAL.inv_cdf(1 - level / 2) + _NORMAL.inv_cdf(POWER)


# ---- intervals of means ---------------------------------------------------------------------------

Ends: TypeAlias = tuple[Fraction, Fraction]

_Z = _NORMAL.inv_cdf(0.975)


def mean_interval(
    scores: Iterable[tuple[str, Fraction]], *, low: Fraction, high: Fraction
) -> tuple[Fraction, Fraction] | None:
    """The 95 % interval of a mean over groups, by Wilson's score on an effective sample size; None below two groups.

    The variance of the mean is that between groups, or that of independent examples if larger; the effective sample
    size is the one at which a share has this variance (Korn and Graubard, "Confidence intervals for proportions with
    small expected number of positive counts estimated from survey data", Survey Methodology 24, 1998; Wilson,
    "Probable inference", JASA 22, 1927). If all scores are equal, it is the number of groups. The interval stays in the
    range of the scores, from `low` to `high`, and has a positive width even if all examples are right. `scores` has
    the group and the score of each measured example.
    """
    found = effective_size(scores, low=low, high=high)
    return None if found is None else wilson(*found, low=low, high=high)


def effective_size(
    scores: Iterable[tuple[str, Fraction]], *, low: Fraction, high: Fraction
) -> tuple[Fraction, float] | None:
    """The mean of scores, and the number of independent examples that they are worth, as in `mean_interval`."""
    width = high - low
    # Exact up to the variance: a rounding error in place of 0 would make the interval a point.
    groups: dict[str, list[Fraction]] = defaultdict(list)
    for group, score in scores:
        groups[group].append((score - low) / width if width else score - low)
    if len(groups) < 2 or not width:
        return None
    count, clusters = sum(map(len, groups.values())), len(groups)
    sums = {name: sum(group, Fraction(0)) for name, group in groups.items()}
    exact = sum(sums.values(), Fraction(0)) / count
    between = sum((sums[name] - exact * len(group)) ** 2 for name, group in groups.items())
    squares = sum(score * score for group in groups.values() for score in group) - count * exact**2
    variance = max(between * clusters / Fraction((clusters - 1) * count**2), squares / Fraction((count - 1) * count))
    worth = float(clusters)
    if variance and 0 < exact < 1:
        worth = float(exact * (1 - exact) / variance)
    return low + exact * width, worth


def wilson(
    mean: Fraction, worth: float, *, low: Fraction, high: Fraction, level: Fraction = LEVEL
) -> tuple[Fraction, Fraction]:
    """Wilson's interval of a mean of scores from `low` to `high` that are worth so many independent examples.

    `level` is one minus that of the interval.
    """
    width = high - low
    share = float((mean - low) / width)
    z = _Z if level == LEVEL else _NORMAL.inv_cdf(1 - float(level) / 2)
    middle = (share + z**2 / (2 * worth)) / (1 + z**2 / worth)
    reach = z / (1 + z**2 / worth) * sqrt(share * (1 - share) / worth + (z / (2 * worth)) ** 2)
    ends = (max(0.0, middle - reach), min(1.0, middle + reach))
    least, most = (low + Fraction(end) * width for end in ends)
    return least, most


def newcombe(now: Fraction, after: Ends, then: Fraction, before: Ends) -> Ends:
    """The interval of the difference of two independent means, each with Wilson's interval: now minus then.

    R. G. Newcombe, "Interval estimation for the difference between independent proportions: comparison of eleven
    methods", Statistics in Medicine 17 (1998), method 10.
    """
    down = sqrt(float(now - after[0]) ** 2 + float(before[1] - then) ** 2)
    up = sqrt(float(after[1] - now) ** 2 + float(then - before[0]) ** 2)
    return now - then - Fraction(down), now - then + Fraction(up)


def difference_interval(
    one: Iterable[tuple[str, Fraction]], other: Iterable[tuple[str, Fraction]], *, low: Fraction, high: Fraction
) -> Ends | None:
    """The 95 % interval of the mean of some scores less that of others, as if both were independent.

    None if either has fewer than two groups. Scores and range are those of `mean_interval`.
    """
    found = [effective_size(scores, low=low, high=high) for scores in (one, other)]
    if found[0] is None or found[1] is None:
        return None
    (now, worth), (then, other_worth) = found[0], found[1]
    after = wilson(now, worth, low=low, high=high)
    return newcombe(now, after, then, wilson(then, other_worth, low=low, high=high))


# ---- e-values -------------------------------------------------------------------------------------

BETS = tuple(range(1, 8))
"""The averaged bets, in eighths of the stake."""
_WHOLE = 8


def e_value(differences: Mapping[int, int], width: int) -> Fraction:
    """The e-value for the claim that the mean difference of paired scores is above 0, exact.

    It is the mean over the bets of the product of `1 + bet * difference / width`. A bet gains nothing on average if the
    mean difference is at most 0 (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting",
    JRSS B 86, 2024), and neither does the average of several bets, which needs no guess of the effect (Gruenwald, de
    Heide and Koolen, "Safe testing", JRSS B 86, 2024). On right and wrong answers only the discordant pairs count, as
    in McNemar's test.

    It never falls when a difference grows, and does not depend on the order of the pairs. Gates read the incumbent's
    failures first, so they stop only when no completion of the whole split changes the answer.

    Args:
        differences: the count of each difference; ties change nothing.
        width: the largest possible absolute difference.
    """
    moved = {difference: count for difference, count in differences.items() if difference and count}
    unit = gcd(width, *moved)
    if not unit:
        return Fraction(1)
    scale = _WHOLE * (width // unit)
    paid = (prod((scale + bet * (each // unit)) ** count for each, count in moved.items()) for bet in BETS)
    return Fraction(sum(paid), len(BETS) * scale ** sum(moved.values()))


def wins_needed(discordant: int, threshold: Fraction) -> int | None:
    """The improved discordant pairs that an e-value needs to reach a threshold; None if all are too few."""
    low, high = -1, discordant
    if e_value({1: discordant}, 1) < threshold:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if e_value({1: middle, -1: discordant - middle}, 1) >= threshold:
            high = middle
        else:
            low = middle
    return high


def standard_errors(discordant: int, threshold: Fraction) -> float:
    """The mean difference at which the e-value reaches a threshold, in standard errors.

    Under the null the wins among n discordant pairs are binomial, so the standard error of wins minus losses is the
    root of n. If no number of wins reaches the threshold, n + 1 counts.
    """
    wins = wins_needed(discordant, threshold)
    wins = discordant + 1 if wins is None else wins
    return (2 * wins - discordant) / max(1.0, sqrt(discordant))
