from hypothesis import given
from hypothesis import strategies as st

from skillc.optimize.schedule import edit_budget
from skillc.plan.schema import SchedulePlan


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
