"""Holm's procedure over paired tests, and the drift of a mean."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillc.outcomes import MICRO
from skillc.stats.drift import drift
from skillc.stats.family import holm, judge_family
from skillc.stats.power import LEVEL
from skillc.stats.verdict import PairedScore, least_p

UNIT = {"low": Fraction(0), "high": Fraction(1)}


def pairs(gains: int, losses: int, groups: int, lost: int = 0) -> list[PairedScore]:
    """So many groups with a gain, with a loss, not measured under the best skill, and the rest equal."""
    moved = [(0, MICRO)] * gains + [(MICRO, 0)] * losses + [(MICRO, None)] * lost
    moved += [(MICRO, MICRO)] * (groups - len(moved))
    return [PairedScore(f"g{i}", before, after) for i, (before, after) in enumerate(moved)]


def test_holm_by_hand() -> None:
    found = {"a": Fraction(1, 100), "b": Fraction(4, 100), "c": Fraction(2, 100)}
    levels, adjusted = holm(found, LEVEL)
    assert levels == {"a": LEVEL / 3, "c": LEVEL / 2, "b": LEVEL}
    assert adjusted == {"a": Fraction(3, 100), "c": Fraction(4, 100), "b": Fraction(4, 100)}
    levels, adjusted = holm({"a": Fraction(1, 100), "b": Fraction(4, 100), "c": Fraction(6, 100)}, LEVEL)
    # After a step that fails, the level stays that of the step.
    assert levels == {"a": LEVEL / 3, "b": LEVEL / 2, "c": LEVEL / 2}
    assert adjusted == {"a": Fraction(3, 100), "b": Fraction(8, 100), "c": Fraction(12, 100)}


@settings(deadline=None)
@given(st.lists(st.fractions(0, 1, max_denominator=500), min_size=1, max_size=12))
def test_what_is_claimed_is_what_its_adjusted_p_says(values: list[Fraction]) -> None:
    found = {str(i): value for i, value in enumerate(values)}
    levels, adjusted = holm(found, LEVEL)
    for name, p in found.items():
        assert (p <= levels[name]) == (adjusted[name] <= LEVEL)
        assert (
            p <= adjusted[name] <= min(Fraction(1), len(found) * p) or p == 0 == adjusted[name] or adjusted[name] >= p
        )
        # Never more than without a correction, never less than Bonferroni's.
        assert LEVEL / len(found) <= levels[name] <= LEVEL


def test_a_further_test_makes_each_claim_harder() -> None:
    alone = judge_family({"rule": pairs(7, 0, 16)}, seed=7, **UNIT)
    assert alone["rule"].verdict.verdict == "improved"
    rest = {f"rule {i}": pairs(1, 1, 16) for i in range(9)}
    among = judge_family({"rule": pairs(7, 0, 16), **rest}, seed=7, **UNIT)
    assert among["rule"].verdict.verdict == "no significant gain"
    assert among["rule"].verdict.interval is not None
    assert among["rule"].verdict.interval[0] <= 0
    assert among["rule"].adjusted > LEVEL


def test_a_member_that_was_not_measured_is_unverified_and_still_counts() -> None:
    found = judge_family({"a": pairs(9, 0, 16), "b": pairs(0, 0, 16, lost=16)}, seed=7, **UNIT)
    assert found["b"].verdict.verdict == "unverified"
    assert found["b"].adjusted == 1
    assert found["a"].verdict.alpha == LEVEL / 2
    partly = judge_family({"a": pairs(8, 0, 16, lost=8)}, seed=7, **UNIT)
    assert partly["a"].verdict.verdict == "unverified"


def test_the_least_p_is_that_of_the_exact_test() -> None:
    for groups in (6, 9, 12):
        (found,) = judge_family({"a": pairs(groups, 0, groups)}, seed=7, **UNIT).values()
        assert found.verdict.p == least_p(groups)
    assert least_p(5) == 1


# ---- drift ----------------------------------------------------------------------------------------


def scores(right: int, wrong: int, lost: int = 0) -> list[tuple[str, Fraction | None]]:
    values = [Fraction(1)] * right + [Fraction(0)] * wrong + [None] * lost
    return [(f"g{i}", value) for i, value in enumerate(values)]


def test_the_interval_of_a_drift_is_newcombes() -> None:
    """His example (1998, table II a): 56/70 against 48/80 has the interval 0.0524 to 0.3339."""
    found = drift(scores(56, 14), then=Fraction(48, 80), count=80, same=True, **UNIT)
    assert found is not None
    assert [round(float(end), 4) for end in found.interval] == [0.0524, 0.3339]
    assert found.word == "better"


@pytest.mark.parametrize(("right", "word"), [(60, "holds"), (58, "holds"), (40, "worse")])
def test_a_drift_is_what_chance_does_not_explain(right: int, word: str) -> None:
    found = drift(scores(right, 60 - right), then=Fraction(1), count=60, same=True, **UNIT)
    assert found is not None
    assert found.word == word


def test_missing_scores_leave_a_drift_open_where_they_could_decide() -> None:
    few = drift(scores(30, 28, 2), then=Fraction(9, 10), count=60, same=True, **UNIT)
    many = drift(scores(30, 10, 20), then=Fraction(9, 10), count=60, same=True, **UNIT)
    assert few is not None and many is not None
    assert (few.word, many.word) == ("worse", "unverified")
    assert drift(scores(0, 0, 9), then=Fraction(1), count=9, same=True, **UNIT) is None


def test_other_examples_are_worth_their_groups() -> None:
    clustered = [(f"g{i // 10}", Fraction(i < 40)) for i in range(60)]
    wide = drift(clustered, then=Fraction(9, 10), count=60, same=False, **UNIT)
    narrow = drift(clustered, then=Fraction(9, 10), count=60, same=True, **UNIT)
    assert wide is not None and narrow is not None
    assert (wide.word, narrow.word) == ("holds", "worse")


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(2, 40), st.integers(0, 40))
def test_the_interval_holds_the_change(right: int, count: int, then: int) -> None:
    right, before = min(right, count), Fraction(min(then, count), count)
    found = drift(scores(right, count - right), then=before, count=count, same=True, **UNIT)
    assert found is not None
    assert found.interval[0] <= found.change <= found.interval[1]
    assert -1 - Fraction(1, 10**9) <= found.interval[0]
    assert found.interval[1] <= 1 + Fraction(1, 10**9)
