"""The test that one form is not worse than another: right where its claim holds, silent where it does not."""

from fractions import Fraction

import numpy as np
import pytest

from skillc.outcomes import MICRO
from skillc.stats.noninferiority import examples_needed, non_inferiority
from skillc.stats.verdict import PairedScore

FIVE = Fraction(1, 20)


def result_of(pairs, margin=FIVE, level=Fraction(1, 20)):
    return non_inferiority(pairs, margin=margin, low=Fraction(0), high=Fraction(1), level=level)


def pairs_of(wins, losses, ties):
    each = [(0, MICRO)] * wins + [(MICRO, 0)] * losses + [(MICRO, MICRO)] * ties
    return [PairedScore(str(i), *scores) for i, scores in enumerate(each)]


def drawn(draw, examples, differing, loss):
    """Right and wrong answers: both differ on a share of the examples, and the form is worse by `loss`."""
    kinds = draw.multinomial(examples, [(differing - loss) / 2, (differing + loss) / 2, 1 - differing])
    return pairs_of(*map(int, kinds))


def share_shown(times, examples, differing, loss, margin=FIVE):
    draw = np.random.default_rng(7)
    return np.mean(
        [result_of(drawn(draw, examples, differing, loss), margin).word == "not worse" for _ in range(times)]
    )


def test_equal_forms_pass_at_the_stated_rate():
    for margin, differing in ((Fraction(1, 10), 0.05), (FIVE, 0.02)):
        needed = examples_needed(float(margin), differing)
        assert 0.74 <= share_shown(300, needed, differing, 0.0, margin) <= 0.9
        assert share_shown(300, needed // 3, differing, 0.0, margin) < 0.4


@pytest.mark.parametrize(("examples", "differing"), [(59, 0.05), (100, 0.05), (100, 0.2), (400, 0.1)])
def test_a_form_that_is_worse_by_the_margin_passes_in_at_most_one_of_twenty(examples, differing):
    assert share_shown(400, examples, differing, 0.05) <= 0.05


def test_a_form_that_is_worse_by_ten_points_is_refused():
    for examples in (60, 400, 1_000):
        assert share_shown(100, examples, 0.15, 0.1) == 0


def test_few_examples_without_a_difference_show_nothing():
    assert result_of(pairs_of(0, 0, 58)).word == "not shown"
    assert result_of(pairs_of(0, 0, 92)).word == "not shown"
    assert result_of(pairs_of(0, 0, 93)).word == "not worse"
    assert examples_needed(0.05, 0.0) == 93
    assert result_of([]).word == "not shown"


def test_a_stricter_level_and_a_smaller_margin_take_more():
    assert examples_needed(0.05, 0.05) < examples_needed(0.05, 0.05, level=0.0125) < examples_needed(0.02, 0.05)
    assert examples_needed(0.0001, 0.2) is None
    assert result_of(pairs_of(0, 0, 100), level=Fraction(1, 80)).word == "not shown"


def test_pairs_of_one_group_are_one_piece_of_evidence():
    alone = pairs_of(0, 0, 120)
    grouped = [PairedScore(str(i // 10), pair.initial, pair.best) for i, pair in enumerate(alone)]
    assert result_of(alone).word == "not worse"
    assert result_of(grouped).e < result_of(alone).e
    assert result_of(grouped).word == "not shown"


def test_correlated_groups_do_not_pass_more_often():
    draw, passed = np.random.default_rng(3), 0
    for _ in range(150):
        lost = draw.random(60) < 0.05
        passed += (
            result_of(
                [PairedScore(str(i), MICRO, 0 if gone else MICRO) for i, gone in enumerate(lost) for _ in range(3)]
            ).word
            == "not worse"
        )
    assert passed / 150 <= 0.05


def test_scores_between_right_and_wrong_count_by_their_size():
    close = [PairedScore(str(i), MICRO // 2, MICRO // 2 - 10_000) for i in range(150)]
    far = [PairedScore(str(i), MICRO // 2, MICRO // 2 - 60_000) for i in range(1_000)]
    assert result_of(close).word == "not worse"
    assert result_of(close).difference == Fraction(-1, 100)
    assert result_of(far).word == "not shown"


def test_unmeasured_pairs_never_count_for_the_form():
    whole = pairs_of(0, 0, 120)
    missing = [PairedScore(f"m{i}", MICRO, None) for i in range(20)]
    found = result_of(whole + missing)
    assert (found.word, found.n, found.difference) == ("unverified", 120, 0)
    assert result_of(pairs_of(0, 10, 90) + missing[:1]).word == "not shown"


@pytest.mark.parametrize("margin", [Fraction(0), Fraction(1), Fraction(-1, 10)])
def test_a_margin_out_of_range_is_an_error(margin):
    with pytest.raises(ValueError, match="is not between"):
        result_of(pairs_of(0, 0, 10), margin)
