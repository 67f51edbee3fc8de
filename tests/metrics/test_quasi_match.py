"""GAIA's quasi exact match against the cases of its official scorer, and what no call of a tool may contain."""

import pytest

from skillc.metrics.primitives import PRIMITIVES, Subject
from skillc.metrics.quasi_match import is_quasi_match
from skillc.plan.schema import TypePlan


@pytest.mark.parametrize(
    ("given", "gold", "right"),
    [
        ("17", "17", True),
        ("17.0", "17", True),
        ("$1,234.50", "1234.5", True),
        ("89 %", "89", True),
        ("17 metres", "17", False),
        ("", "17", False),
        ("nan", "17", False),
        ("seventeen", "17", False),
        ("1e3", "1000", True),
        ("Oslo, Bergen", "Oslo, Bergen", True),
        ("oslo,bergen", "Oslo; Bergen", True),
        ("Bergen, Oslo", "Oslo, Bergen", False),
        ("Oslo, Bergen and Moss", "Oslo, Bergen, Moss", False),
        ("Oslo, Bergen.", "Oslo, Bergen", False),
        ("3, 4.0", "3,4", True),
        ("3, four", "3,4", False),
        ("$3, 4%", "3,4", True),
        ("st petersburg", "St. Petersburg", True),
        ("  St.Petersburg ", "St. Petersburg", True),
        ("Saint Petersburg", "St. Petersburg", False),
        ("sea gull", "seagull", True),
        ("None", "none", True),
        ("unknown", "Infinity", False),
    ],
)
def test_an_answer_is_compared_as_gaia_does(given, gold, right):
    assert is_quasi_match(given, gold) is right


def measured(value, gold, kind="text", reveal=True):
    return PRIMITIVES["quasi_exact_match"](Subject("answer", TypePlan(kind=kind), value, gold, {}, reveal))


@pytest.mark.parametrize(
    ("value", "gold", "kind", "score"),
    [
        (17, "17", "number", 1),
        (17.5, 17.5, "number", 1),
        ("1,000", 1000, "text", 1),
        (None, "none", "text", 1),
        (["3", "4"], ["3", "4"], "list", 1),
        (["4", "3"], ["3", "4"], "list", 0),
        ("Lisbon", ["lisbon", "Lisboa"], "text", 1),
        ("", ["lisbon", "Lisboa"], "text", 0),
    ],
)
def test_the_primitive_reads_values_of_all_types_and_takes_the_best_right_answer(value, gold, kind, score):
    assert measured(value, gold, kind).score == score


def test_the_feedback_names_the_right_answer_only_to_an_optimizer_that_may_see_it():
    assert measured("16", "17").feedback == "expected `17`, got `16`"
    assert measured("16", "17", reveal=False).feedback == "`16` is wrong"
