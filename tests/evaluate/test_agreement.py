"""Agreement of two ratings, and means that are corrected by labels: known values, and how often intervals hold."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.stats.agreement import Rated, agreement, correlation_within, pairs_of_repeats, weighted_kappa
from skillc.stats.prediction_powered import LEAST_LABELS, Corrected, corrected_mean

SCALE = (Fraction(0), Fraction(1, 2), Fraction(1))
RATINGS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(SCALE), st.sampled_from(SCALE)), max_size=40)


def rated(rows: list[tuple[str, Fraction, Fraction]]) -> list[Rated]:
    return [Rated(*row) for row in rows]


@given(RATINGS)
def test_shares_and_kappa_are_within_their_intervals_and_do_not_depend_on_the_sides(
    rows: list[tuple[str, Fraction, Fraction]],
) -> None:
    found = agreement(rated(rows), SCALE)
    other = agreement([Rated(group, two, one) for group, one, two in rows], SCALE)
    assert (found.n, found.exact, found.near) == (other.n, other.exact, other.near)
    if not rows:
        assert found.exact is None
        return
    assert found.exact is not None
    assert found.near is not None
    assert 0 <= found.exact <= found.near <= 1
    if found.exact_interval is not None:
        assert found.exact_interval[0] <= found.exact <= found.exact_interval[1]
    if found.kappa is not None:
        assert found.kappa == pytest.approx(other.kappa)
        assert -1 - 1e-9 <= found.kappa <= 1
        assert (found.exact == 1) == (found.kappa == pytest.approx(1))
    if found.kappa_interval is not None and found.kappa is not None:
        assert found.kappa_interval[0] - 1e-9 <= found.kappa <= found.kappa_interval[1] + 1e-9


def test_kappa_is_that_of_a_table_worked_by_hand() -> None:
    # Of 10 items: 4 both 0, 3 both 1, 2 rated 1 and 0, 1 rated 0 and 1. Observed 0.3 apart; by chance 0.5.
    counts = {(0, 0): 4, (1, 1): 3, (1, 0): 2, (0, 1): 1}
    rows = [(Fraction(a), Fraction(b)) for (a, b), many in counts.items() for _ in range(many)]
    kappa, ends = weighted_kappa([Rated(str(i), one, other) for i, (one, other) in enumerate(rows)])
    assert kappa == pytest.approx(1 - 0.3 / 0.5)
    assert ends is not None
    assert ends[0] < 0.4 < ends[1]


def test_a_step_of_half_the_range_counts_a_quarter_of_the_whole() -> None:
    near = [Rated(str(i), SCALE[i % 3], SCALE[min(2, i % 3 + 1)]) for i in range(30)]
    far = [Rated(str(i), SCALE[i % 3], SCALE[2 - i % 3]) for i in range(30)]
    assert (weighted_kappa(near)[0] or 0) > 0 > (weighted_kappa(far)[0] or 0)


@pytest.mark.parametrize("kappa", [0.0, 0.6])
def test_the_interval_of_kappa_holds_what_it_estimates(kappa: float) -> None:
    draw, held = random.Random(3), 0
    for _ in range(200):
        rows = []
        for i in range(60):
            one = draw.choice(SCALE)
            rows.append(Rated(str(i), one, one if draw.random() < kappa else draw.choice(SCALE)))
        ends = weighted_kappa(rows)[1]
        held += ends is not None and ends[0] <= kappa <= ends[1]
    assert held >= 180


def test_one_score_for_all_has_no_kappa() -> None:
    found = agreement([Rated(str(i), Fraction(1), Fraction(1)) for i in range(20)], SCALE)
    assert (found.exact, found.kappa, found.kappa_interval) == (1, None, None)


def test_repeats_are_paired_in_both_orders() -> None:
    found = pairs_of_repeats([("a", [Fraction(0), Fraction(1)]), ("b", [Fraction(1)])])
    assert found == [Rated("a", Fraction(0), Fraction(1)), Rated("a", Fraction(1), Fraction(0))]


def test_correlation_within_labels_leaves_out_what_the_label_explains() -> None:
    # Better answers are longer, and the score is the label: nothing is left at equal label.
    rows = [(SCALE[i % 3], SCALE[i % 3], 10.0 * (i % 3) + i % 7) for i in range(60)]
    assert correlation_within(rows).value is None
    draw = random.Random(1)
    independent = [(SCALE[i % 3], draw.choice(SCALE), 10.0 * (i % 3) + draw.random()) for i in range(90)]
    found = correlation_within(independent)
    assert found.p is not None
    assert found.p > 0.05
    longer = [(label, Fraction(round(length * 100), 10_000), length) for label, _, length in independent]
    assert correlation_within(longer).value == pytest.approx(1, abs=0.01)


# ---- means that are corrected by labels -----------------------------------------------------------


def world(seed: int, *, labels: int, others: int, right: float, bias: float) -> Corrected:
    """A corrected mean of labels that are 1 in 60 %; the judge is right in a share, else it says 1 in a share."""
    draw = random.Random(seed)

    def drawn() -> tuple[Fraction, Fraction]:
        label = Fraction(draw.random() < 0.6)
        return label, label if draw.random() < right else Fraction(draw.random() < bias)

    labelled = [(f"l{i}", *drawn()) for i in range(labels)]
    found = corrected_mean(labelled, [(f"u{i}", drawn()[1]) for i in range(others)])
    assert found is not None
    return found


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("right", "bias"), [(0.9, 1.0), (0.5, 1.0), (0.0, 0.5), (1.0, 0.5)])
def test_the_interval_holds_the_mean_label_however_biased_the_judge_is(right: float, bias: float) -> None:
    found = [world(seed, labels=40, others=300, right=right, bias=bias) for seed in range(300)]
    held = sum(each.interval[0] <= Fraction(6, 10) <= each.interval[1] for each in found)
    # 95 % of 300 is 285; fewer than 274 happen in 1 of 250 such series.
    assert held >= 274
    mean = sum(float(each.mean) for each in found) / len(found)
    assert mean == pytest.approx(0.6, abs=0.02)


@pytest.mark.thorough
def test_a_good_judge_narrows_the_interval_and_a_useless_one_leaves_it() -> None:
    def widths(**judge: float) -> tuple[float, float]:
        found = [world(seed, labels=40, others=400, **judge) for seed in range(60)]  # type: ignore[arg-type]
        ours = sum(float(each.interval[1] - each.interval[0]) for each in found)
        plain = sum(float(each.plain_interval[1] - each.plain_interval[0]) for each in found if each.plain_interval)
        return ours / len(found), plain / len(found)

    good, plain = widths(right=0.9, bias=0.5)
    assert good < 0.7 * plain
    useless, plain = widths(right=0.0, bias=0.5)
    assert useless < 1.06 * plain
    assert sum(world(seed, labels=100, others=400, right=0.0, bias=0.5).factor for seed in range(40)) / 40 < 0.1


def test_the_judge_alone_would_be_off_by_its_bias() -> None:
    found = [world(seed, labels=60, others=500, right=0.5, bias=1.0) for seed in range(30)]
    assert all(each.judged > Fraction(7, 10) for each in found)
    assert all((each.labels, each.unlabelled) == (60, 500) for each in found)
    assert sum(float(each.mean) for each in found) / 30 == pytest.approx(0.6, abs=0.05)


def test_too_few_labels_or_no_other_item_correct_nothing() -> None:
    labelled = [(str(i), Fraction(1), Fraction(1)) for i in range(LEAST_LABELS)]
    assert corrected_mean(labelled[1:], [("x", Fraction(1))]) is None
    assert corrected_mean(labelled, []) is None
    found = corrected_mean(labelled, [("x", Fraction(1))])
    assert found is not None
    assert found.mean == 1
    assert found.interval[0] < 1


def test_items_of_one_group_count_less() -> None:
    draw = random.Random(4)
    values = [Fraction(draw.random() < 0.5) for _ in range(10)]

    def of(groups: int) -> Corrected:
        labelled = [(f"g{i % groups}", values[i % 10], values[i % 10]) for i in range(60)]
        found = corrected_mean(labelled, [(f"g{i % groups}", values[i % 10]) for i in range(100)])
        assert found is not None
        return found

    alone, joined = of(1_000), of(10)
    assert joined.interval[1] - joined.interval[0] > 1.5 * (alone.interval[1] - alone.interval[0])
