"""Whether linear inequalities over exact numbers can hold together: Fourier-Motzkin elimination.

Each variable in turn is eliminated by adding every inequality that bounds it from below to every one that bounds it
from above (Schrijver, "Theory of Linear and Integer Programming", 1986, section 12.2). What is left without variables
is false exactly if the whole is, over the rationals, with strict inequalities too. The sources of the false one are
a set of inequalities that cannot hold together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm

Variable = int
_MOST = 400


class TooLarge(Exception):  # noqa: N818
    """More inequalities than are worth the time; nothing is known then."""


@dataclass(frozen=True, slots=True)
class Inequality:
    """`sum of weights[x] * x + constant >= 0`, or `> 0` where it is strict.

    Attributes:
        weights: by variable, none of them 0.
        sources: what it follows from, as the caller names it.
    """

    weights: Mapping[Variable, Fraction]
    constant: Fraction
    strict: bool = False
    sources: frozenset[int] = field(default=frozenset())


@dataclass(frozen=True, slots=True)
class _Whole:
    """An inequality in whole numbers, which is the same for any multiple of it."""

    weights: dict[Variable, int]
    constant: int
    strict: bool
    sources: frozenset[int]

    @property
    def false(self) -> bool:
        return not self.weights and (self.constant < 0 or (self.strict and self.constant == 0))


_Standing = dict[frozenset[tuple[Variable, int]], tuple[_Whole, int]]
"""By their weights as small as whole numbers go, each with what its own are a multiple by."""


def conflict(inequalities: Iterable[Inequality]) -> frozenset[int] | None:
    """The sources of inequalities that exclude each other; None where all can hold together.

    Raises:
        TooLarge: the elimination would make too many inequalities.
    """
    standing: _Standing = {}
    for each in map(_whole, inequalities):
        if each.false:
            return each.sources
        _keep(standing, each)
    while standing:
        chosen = _cheapest(each for each, _ in standing.values())
        below = [each for each, _ in standing.values() if each.weights.get(chosen, 0) > 0]
        above = [each for each, _ in standing.values() if each.weights.get(chosen, 0) < 0]
        standing = {key: kept for key, kept in standing.items() if chosen not in kept[0].weights}
        for low in below:
            for high in above:
                joined = _joined(low, high, chosen)
                if joined.false:
                    return joined.sources
                _keep(standing, joined)
        if len(standing) > _MOST:
            raise TooLarge
    return None


def _whole(each: Inequality) -> _Whole:
    scale = lcm(each.constant.denominator, *(weight.denominator for weight in each.weights.values()))
    weights = {variable: int(weight * scale) for variable, weight in each.weights.items()}
    return _Whole(weights, int(each.constant * scale), each.strict, each.sources)


def _keep(standing: _Standing, each: _Whole) -> None:
    """Adds an inequality; of several with the same variables side by side only the tightest matters."""
    if not each.weights:
        return
    times = gcd(*each.weights.values())
    key = frozenset((variable, weight // times) for variable, weight in each.weights.items())
    known = standing.get(key)
    if known is not None:
        other, others = known
        if (other.constant * times, not other.strict) <= (each.constant * others, not each.strict):
            return
    standing[key] = each, times


def _cheapest(inequalities: Iterable[_Whole]) -> Variable:
    """The variable whose elimination makes the fewest inequalities."""
    low: dict[Variable, int] = {}
    high: dict[Variable, int] = {}
    for each in inequalities:
        for variable, weight in each.weights.items():
            counts = low if weight > 0 else high
            counts[variable] = counts.get(variable, 0) + 1
    both = [*low, *(each for each in high if each not in low)]
    return min(both, key=lambda v: low.get(v, 0) * high.get(v, 0) - low.get(v, 0) - high.get(v, 0))


def _joined(low: _Whole, high: _Whole, variable: Variable) -> _Whole:
    """The sum of a lower and an upper bound of a variable, without it."""
    a, b = -high.weights[variable], low.weights[variable]
    weights = {each: weight * a for each, weight in low.weights.items() if each != variable}
    for each, weight in high.weights.items():
        if each != variable:
            weights[each] = weights.get(each, 0) + weight * b
    kept = {each: weight for each, weight in weights.items() if weight}
    constant = low.constant * a + high.constant * b
    common = gcd(constant, *kept.values())
    if common > 1:
        kept, constant = {each: weight // common for each, weight in kept.items()}, constant // common
    return _Whole(kept, constant, low.strict or high.strict, low.sources | high.sources)
