"""Scores of question answering, against cases that were worked out by hand."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.metrics.primitives import PRIMITIVES, Subject
from skillc.metrics.questions import edit_distance, similarity
from skillc.plan.schema import TypePlan


def measured(name, answer, gold):
    return PRIMITIVES[name](Subject("answer", TypePlan(kind="text"), answer, gold, {}))


@pytest.mark.parametrize(
    ("answer", "golds", "expected"),
    [
        ("12 March 1998", ["12 March 1998"], 1),
        ("  12  MARCH 1998 ", ["12 March 1998"], 1),
        ("12 March 1989", ["12 March 1998"], 1 - Fraction(2, 13)),
        # The best of several right answers.
        ("$1,240", ["1240", "$1,240.00"], 1 - Fraction(3, 9)),
        # Exactly one half of the longer text differs: 0, as the definition has `< 0.5`.
        ("ab", ["abcd"], 0),
        ("abc", ["abcd"], Fraction(3, 4)),
        ("abcxyz", ["abc"], 0),
        ("", ["abc"], 0),
        ("", [""], 1),
        (None, ["abc"], 0),
        ("ÅSE", ["åse"], 1),
    ],
)
def test_anls_is_the_similarity_to_the_nearest_right_answer(answer, golds, expected):
    found = measured("anls", answer, golds)
    assert found.score == expected
    assert (found.feedback == "right") is (expected == 1)


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("The Danube!", "danube", 1),
        ("a thesis", "Thesis", 1),
        ("theory", "ory", 0),
        ("Danube river", "Danube", 0),
        ("", "the", 1),
        (None, "Danube", 0),
    ],
)
def test_squad_match_ignores_case_punctuation_and_articles(answer, gold, expected):
    assert measured("squad_match", answer, gold).score == expected


@given(st.text("abc", max_size=7), st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_the_edit_distance_is_a_distance(one, other, third):
    assert edit_distance(one, other) == edit_distance(other, one)
    assert (edit_distance(one, other) == 0) is (one == other)
    assert edit_distance(one, third) <= edit_distance(one, other) + edit_distance(other, third)
    assert abs(len(one) - len(other)) <= edit_distance(one, other) <= max(len(one), len(other))
    near = 1 - Fraction(edit_distance(one, other), max(len(one), len(other), 1))
    assert similarity(one, other) == (near if near > Fraction(1, 2) else 0)


def test_a_long_answer_is_wrong_without_work():
    assert similarity("x" * 2_000_000, "a date") == 0
