from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from skillc.document.skill import document_of
from skillc.language.loop import SchedulePlan
from skillc.optimize.schedule import edit_budget, filled


def test_cosine_goes_from_start_to_end_and_is_slow_at_both_ends():
    plan = SchedulePlan(kind="cosine", start=8, end=2)
    budgets = [edit_budget(plan, step, 9) for step in range(9)]
    assert budgets == [8, 8, 7, 6, 5, 4, 3, 2, 2]


def test_linear_and_constant():
    linear = SchedulePlan(kind="linear", start=5, end=1)
    assert [edit_budget(linear, step, 5) for step in range(5)] == [5, 4, 3, 2, 1]
    assert edit_budget(SchedulePlan(kind="constant", start=3, end=3), 7, 9) == 3


@given(
    st.sampled_from(["constant", "linear", "cosine"]),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(1, 50),
    st.integers(0, 60),
)
def test_a_budget_stays_between_its_ends(kind, start, end, steps, step):
    plan = SchedulePlan(kind=kind, start=start, end=start if kind == "constant" else end)
    assert min(start, plan.end) <= edit_budget(plan, step, steps) <= max(start, plan.end)


def test_a_budget_does_not_decay_while_the_skill_is_empty():
    plan = SchedulePlan(kind="cosine", start=8, end=2)
    assert [edit_budget(plan, step, 9, Fraction(0)) for step in range(12)] == [8] * 12
    half = [edit_budget(plan, step, 9, Fraction(1, 2)) for step in range(9)]
    assert half == [8, 8, 7, 6, 5, 5, 5, 5, 5]
    assert edit_budget(plan, 0, 9, Fraction(1)) == 8


def test_a_skill_is_filled_by_the_share_of_the_limits_that_its_rules_use():
    rules = ("rules", "trainable", "- one two three four", 40)
    skill = document_of("s", "", [("role", "frozen", "Many words that do not count here.", None), rules])
    used = skill.section("rules").tokens
    assert filled(skill) == Fraction(used, 40)
    assert filled(document_of("s", "", [("rules", "trainable", "", 40)])) == 0
    assert filled(document_of("s", "", [("rules", "trainable", "- one two three four", 2)])) == 1
