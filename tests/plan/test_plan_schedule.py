"""The edit schedule follows the share of the steps that a program allows, and no cap that may be raised."""

from plan_samples import SIZES, plan

from skillc.budget.bounds import bounds
from skillc.budget.render import as_text
from skillc.budget.steps import scheduled_steps
from skillc.optimize.schedule import edit_budget


def edits_of(count, **budget):
    """The edit budgets of the first steps of a run, at ten steps an epoch."""
    found = plan(budget={"epochs": None, "cost": None, **budget})
    whole = scheduled_steps(found, 400)
    return [edit_budget(found.optimize.edits, step, whole) for step in range(count)]


def test_a_run_that_only_caps_end_goes_through_its_schedule_in_four_epochs():
    assert edits_of(60, calls=5000) == edits_of(60, epochs=4)
    assert edits_of(60, calls=5000)[39:] == [2] * 21


def test_a_raised_cap_changes_no_edit_budget():
    assert edits_of(60, calls=3000, cost=2, time=60) == edits_of(60, calls=9000, cost=9, tokens=10**6)


def test_the_tighter_of_steps_and_epochs_counts():
    assert edits_of(9, epochs=4, steps=7) == [4, 4, 4, 3, 2, 2, 2, 2, 2]
    assert edits_of(12, epochs=1, steps=70)[9:] == [2, 2, 2]


def test_plan_says_when_the_schedule_is_through():
    capped = plan(budget={"epochs": None, "cost": None, "calls": 5000})
    assert "at most 4 a step; as sections fill, 2 by step 16 (cosine)" in as_text(capped, bounds(capped, SIZES, {}))
