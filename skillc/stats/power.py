"""What chance alone does: accepts to expect from candidates that are worth nothing, and gains too small to be shown.

For the accepts the candidates are taken as exchangeable with the incumbent, their means as normal: a candidate passes
when its draw is more than `margin` standard errors of a difference above the incumbent's, which stays the same draw for
all of them. That gives the figures of docs/design/statistics.md: 46 % and 98 % for forty candidates, 8 points at 200
examples.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import gcd, log, sqrt
from statistics import NormalDist

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
# The share of test examples on which two skills are taken to differ before anything was run.
DIFFERING = 0.25


def _harmonic(number: int) -> float:
    """1 + 1/2 + ... + 1/n; from a thousand on by Euler's expansion, which is exact to 12 digits there."""
    if number <= _SUMMED:
        return sum(1 / i for i in range(1, number + 1))
    return log(number) + _EULER + 1 / (2 * number) - 1 / (12 * number**2)


def chance_of_accept(candidates: int, margin: float) -> float:
    """The probability that at least one of some worthless candidates passes.

    P = 1 - integral of phi(u) Phi(u + sqrt(2) margin)^n du, by Simpson's rule.

    Args:
        candidates: how many are decided.
        margin: what a candidate must be better by, in standard errors of a difference of two means.
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
    """What comes of a run whose candidates are all worth nothing.

    Attributes:
        accepts: how many of them are accepted on average.
        luck: how far the last skill's mean lies above its true one where any was accepted, in standard errors.
    """

    accepts: float
    luck: float


def null_run(candidates: int, margin: float) -> NullRun:
    """A run of worthless candidates, each of which becomes the incumbent where it is accepted.

    The density f of the incumbent's mean is followed from candidate to candidate on a grid. A candidate, of density
    phi, is accepted with P = integral of f(u) (1 - Phi(u + sqrt(2) margin)) du, which leaves the density
    f(v) Phi(v + sqrt(2) margin) + phi(v) F(v - sqrt(2) margin). With margin 0 the accepts are the expected number of
    records, 1/2 + 1/3 + ... + 1/(n + 1) (Renyi, "Theorie des elements saillants d'une suite d'observations", 1962).

    Args:
        candidates: how many are decided, at least 1; from 1,000 on only the first 1,000 are followed.
        margin: what a candidate must be better by, in standard errors of a difference of two means.
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
    """The value `rest` of the way from place i down to the place before it; 0 below the first, the last above it."""
    here, before = (values[min(k, len(values) - 1)] if k >= 0 else 0.0 for k in (i, i - 1))
    return here * (1 - rest) + before * rest


def smallest_gain(units: int, differing: float = DIFFERING, look: int = 1) -> float:
    """The gain that the final test shows in 8 of 10 runs, in units of the goal's width; never above `differing`.

    g = z sqrt(s / (n + z^2)) + 1 / n with z = z(1 - alpha / 2) + z(0.8) and alpha = 0.05 / look^2. Without the last
    term it solves g = z sqrt((s - g^2) / n): a paired difference of 0/1 scores that is not 0 on a share s of the
    examples has the variance s - g^2 (Miettinen, "The matched pairs design in the case of all-or-none responses",
    Biometrics 24, 1968). The last term is what an exact test of whole counts asks on top (Edwards, "Note on the
    correction for continuity", Psychometrika 13, 1948).

    Args:
        units: test examples; or their groups, where the examples of a group are right and wrong together.
        differing: the share of the examples on which the two skills differ.
        look: how often the test split was looked at, this time included.
    """
    z = _shown_at(float(LEVEL) / look**2)
    return min(differing, z * sqrt(differing / (units + z * z)) + 1 / units)


def inflation(run: NullRun, examples: int, width: float = 1.0) -> float:
    """How far an accepted worthless skill lies above its true mean, at most, in units of the metric.

    The run's luck times the largest standard error of a mean, half the metric's width by the root of the examples.
    """
    return run.luck * width / 2 / sqrt(examples)


def detectable_gain(differences: Sequence[int], sizes: Sequence[int], alpha: Fraction) -> float:
    """The gain in goal points that a test at a level shows with 80 % power, from what was measured by group.

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
    """How many standard errors a gain must be to be shown at a two-sided level with the usual power."""
    return _NORMAL.inv_cdf(1 - level / 2) + _NORMAL.inv_cdf(POWER)


# ---- intervals of means ---------------------------------------------------------------------------

_Z = NormalDist().inv_cdf(0.975)


def mean_interval(
    scores: Iterable[tuple[str, Fraction]], *, low: Fraction, high: Fraction
) -> tuple[Fraction, Fraction] | None:
    """The 95 % interval of a mean, by Wilson's score with as many examples as the groups are worth.

    The variance of the mean is that between groups, or that of independent examples where it is larger; the effective
    number of examples is what a share of this mean would need for it (Korn and Graubard, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24,
    1998; Wilson, "Probable inference", JASA 22, 1927). Where all scores are the same, each group counts as one.
    So it stays inside the range, and has a width where all examples are right.

    Args:
        scores: group and score of each example that was measured.
        low: the least that a score can be.
        high: the most.

    Returns:
        None with fewer than two groups.
    """
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
    mean, worth = float(exact), float(clusters)
    if variance and 0 < exact < 1:
        worth = float(exact * (1 - exact) / variance)
    middle = (mean + _Z**2 / (2 * worth)) / (1 + _Z**2 / worth)
    reach = _Z / (1 + _Z**2 / worth) * math.sqrt(mean * (1 - mean) / worth + (_Z / (2 * worth)) ** 2)
    ends = (max(0.0, middle - reach), min(1.0, middle + reach))
    least, most = (low + Fraction(end) * width for end in ends)
    return least, most
