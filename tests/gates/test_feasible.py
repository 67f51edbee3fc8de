"""Inequalities that exclude each other, against points that meet them and against cycles of differences."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.gates.prove import Inequality, TooLarge, conflict

_NUMBERS = st.integers(-12, 12).map(lambda quarters: Fraction(quarters, 4))


def inequality(weights: dict[int, int], constant: int, source: int = 0, *, strict: bool = False) -> Inequality:
    found = {variable: Fraction(weight) for variable, weight in weights.items() if weight}
    return Inequality.of(found, Fraction(constant), strict, frozenset([source]))


@st.composite
def systems(draw: st.DrawFn, variables: int = 4, most: int = 9) -> list[Inequality]:
    found = []
    for source in range(draw(st.integers(1, most))):
        weights = {v: draw(_NUMBERS) for v in draw(st.sets(st.integers(0, variables - 1), min_size=1, max_size=3))}
        kept = {v: w for v, w in weights.items() if w}
        found.append(Inequality.of(kept, draw(_NUMBERS), draw(st.booleans()), frozenset([source])))
    return found


def holds(each: Inequality, point: dict[int, Fraction]) -> bool:
    value = each.constant + sum(weight * point[v] for v, weight in each.weights.items())
    return value > 0 or (value == 0 and not each.strict)


@given(systems(), st.lists(_NUMBERS, min_size=4, max_size=4))
def test_what_a_point_meets_has_no_conflict(system: list[Inequality], values: list[Fraction]) -> None:
    point = dict(enumerate(values))
    met = [each for each in system if holds(each, point)]
    assert conflict(met) is None


@given(systems())
def test_the_sources_of_a_conflict_are_a_conflict_by_themselves(system: list[Inequality]) -> None:
    found = conflict(system)
    if found is not None:
        assert conflict([each for each in system if each.sources <= found]) is not None


def _tightest_cycle(bounds: list[tuple[int, int, int, bool]], size: int) -> bool:
    """Whether differences `x - y <= c`, or `< c`, have a cycle that can't be (Bellman and Ford)."""
    # Strictness as a second, smaller place of the weight.
    best = [[(0, 0) if i == j else None for j in range(size)] for i in range(size)]
    for x, y, c, strict in bounds:
        weight = (c, -1 if strict else 0)
        if best[y][x] is None or weight < best[y][x]:
            best[y][x] = weight
    for k in range(size):
        for i in range(size):
            for j in range(size):
                a, b = best[i][k], best[k][j]
                if a is not None and b is not None:
                    through = (a[0] + b[0], a[1] + b[1])
                    if best[i][j] is None or through < best[i][j]:
                        best[i][j] = through
    return any(best[i][i] is not None and best[i][i] < (0, 0) for i in range(size))


_BOUND = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(-3, 3), st.booleans())


@given(st.lists(_BOUND.filter(lambda b: b[0] != b[1]), max_size=14))
@settings(max_examples=example_count(200))
def test_differences_agree_with_shortest_paths(bounds: list[tuple[int, int, int, bool]]) -> None:
    system = [inequality({x: -1, y: 1}, c, i, strict=strict) for i, (x, y, c, strict) in enumerate(bounds)]
    assert (conflict(system) is not None) == _tightest_cycle(bounds, 5)


def test_ends_that_touch_exclude_each_other_only_where_one_is_open() -> None:
    above, below = inequality({0: 1}, -1, 0), inequality({0: -1}, 1, 1)
    assert conflict([above, below]) is None
    assert conflict([above, inequality({0: -1}, 1, 1, strict=True)]) == {0, 1}


def test_nothing_is_no_conflict_and_a_false_number_is_one() -> None:
    assert conflict([]) is None
    assert conflict([inequality({}, 0)]) is None
    assert conflict([inequality({}, -1, 7)]) == {7}
    assert conflict([inequality({}, 0, 7, strict=True)]) == {7}


def test_too_many_are_given_up() -> None:
    import random

    drawn = random.Random(3)
    system = [inequality({v: drawn.randint(-9, 9) for v in range(14)}, 1, i) for i in range(60)]
    with pytest.raises(TooLarge):
        conflict(system)
