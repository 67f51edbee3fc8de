"""Exact binomial tails and intervals: how surprising a count would be."""

from __future__ import annotations

from math import comb


def at_least(hits: int, tries: int, chance: float) -> float:
    """The probability of so many hits or more."""
    return sum(comb(tries, i) * chance**i * (1 - chance) ** (tries - i) for i in range(hits, tries + 1))


def at_most(hits: int, tries: int, chance: float) -> float:
    """The probability of so many hits or fewer."""
    return sum(comb(tries, i) * chance**i * (1 - chance) ** (tries - i) for i in range(hits + 1))


def interval(hits: int, tries: int, level: float = 0.95) -> tuple[float, float]:
    """The interval of Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 26 (1934)."""
    half = (1 - level) / 2
    low = 0.0 if hits == 0 else _root(lambda p: at_least(hits, tries, p) - half)
    high = 1.0 if hits == tries else _root(lambda p: half - at_most(hits, tries, p))
    return low, high


def most_in(tries: int, chance: float, doubt: float) -> int:
    """The count that is passed with a probability of at most `doubt`."""
    return next(hits for hits in range(tries + 1) if at_least(hits + 1, tries, chance) <= doubt)


def _root(rising: object) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)  # type: ignore[operator]
    return (low + high) / 2
