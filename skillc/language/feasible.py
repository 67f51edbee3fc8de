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

Variable = int
_Key = frozenset[tuple[Variable, Fraction]]
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


def conflict(inequalities: Iterable[Inequality]) -> frozenset[int] | None:
    """The sources of inequalities that exclude each other; None where all can hold together.

    Raises:
        TooLarge: the elimination would make too many inequalities.
    """
    standing: dict[_Key, Inequality] = {}
    for each in inequalities:
        if not each.weights and _false(each):
            return each.sources
        _keep(standing, each)
    while standing:
        chosen = _cheapest(standing.values())
        below = [each for each in standing.values() if each.weights.get(chosen, 0) > 0]
        above = [each for each in standing.values() if each.weights.get(chosen, 0) < 0]
        standing = {key: each for key, each in standing.items() if chosen not in each.weights}
        for low in below:
            for high in above:
                joined = _joined(low, high, chosen)
                if not joined.weights and _false(joined):
                    return joined.sources
                _keep(standing, joined)
        if len(standing) > _MOST:
            raise TooLarge
    return None


def _false(each: Inequality) -> bool:
    return each.constant < 0 or (each.strict and each.constant == 0)


def _keep(standing: dict[_Key, Inequality], each: Inequality) -> None:
    """Adds an inequality; of several with the same variables side by side only the tightest matters."""
    if not each.weights:
        return
    scale = abs(each.weights[min(each.weights)])
    if scale != 1:
        weights = {variable: weight / scale for variable, weight in each.weights.items()}
        each = Inequality(weights, each.constant / scale, each.strict, each.sources)
    key = frozenset(each.weights.items())
    other = standing.get(key)
    if other is None or (each.constant, not each.strict) < (other.constant, not other.strict):
        standing[key] = each


def _cheapest(inequalities: Iterable[Inequality]) -> Variable:
    """The variable whose elimination makes the fewest inequalities."""
    low: dict[Variable, int] = {}
    high: dict[Variable, int] = {}
    for each in inequalities:
        for variable, weight in each.weights.items():
            counts = low if weight > 0 else high
            counts[variable] = counts.get(variable, 0) + 1
    both = [*low, *(each for each in high if each not in low)]
    return min(both, key=lambda v: low.get(v, 0) * high.get(v, 0) - low.get(v, 0) - high.get(v, 0))


def _joined(low: Inequality, high: Inequality, variable: Variable) -> Inequality:
    a, b = -high.weights[variable], low.weights[variable]
    weights = {each: weight * a for each, weight in low.weights.items() if each != variable}
    for each, weight in high.weights.items():
        if each != variable:
            weights[each] = weights.get(each, Fraction(0)) + weight * b
    return Inequality(
        {each: weight for each, weight in weights.items() if weight},
        low.constant * a + high.constant * b,
        low.strict or high.strict,
        low.sources | high.sources,
    )
