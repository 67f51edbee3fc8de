"""What a peer's method may do under a plan's caps."""

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_samples import PRICES, SIZES, plan

from skillc.budget.bounds import bounds
from skillc.budget.render import as_text
from skillc.budget.steps import (
    OPEN_ENDED_ROLLOUTS,
    method_counts,
    rollouts_of,
    trials_of,
)

METHODS = ("gepa", "miprov2", "one_shot")


def with_method(method, **optimize):
    return plan(optimize={"method": method, **optimize})


def test_a_method_may_roll_out_what_the_plans_steps_would():
    assert rollouts_of(with_method("gepa"), 160, 80) == 4 * 4 * (40 + 80)
    open_ended = plan(optimize={"method": "gepa"}, budget={"epochs": None, "steps": None})
    assert rollouts_of(open_ended, 160, 80) == OPEN_ENDED_ROLLOUTS
    capped = plan(optimize={"method": "gepa"}, budget={"epochs": None, "steps": None, "calls": 700})
    assert rollouts_of(capped, 160, 80) == 700


@given(rollouts=st.integers(0, 20_000), validation=st.integers(1, 400), sections=st.integers(1, 4))
def test_trials_cost_no_more_than_the_rollouts_and_never_grow_with_dearer_ones(rollouts, validation, sections):
    trials = trials_of(rollouts, validation, sections)
    assert 2 <= trials.candidates <= 18
    assert trials.trials >= 1
    assert trials.minibatch == (validation > 50)
    if not trials.minibatch:
        assert trials.trials == 1 or trials.trials * validation <= rollouts
        assert trials_of(rollouts, validation + 1, sections).trials <= trials.trials or validation == 50


@pytest.mark.parametrize("method", METHODS)
def test_the_bounds_of_a_method_are_those_of_its_search(method):
    found = bounds(with_method(method), SIZES, PRICES)
    names = [stage.name for stage in found.stages]
    assert names == [
        "preflight",
        "baseline",
        "search",
        "propose",
        "gate",
        "final test",
        "no skill",
        *(["null arm"] * (method != "one_shot")),
    ]
    search = found.stage("search").bound
    counts = method_counts(with_method(method), SIZES.train, SIZES.validation)
    assert search.most.calls == counts.rollouts
    assert found.stage("propose").bound.most.calls == 2 * counts.questions
    for stage in found.stages:
        assert stage.bound.least.calls <= stage.bound.estimate.calls or stage.name == "gate"
        assert stage.bound.estimate.calls <= stage.bound.most.calls
    assert found.minimum.total.calls <= found.total.most.calls


@pytest.mark.parametrize("method", METHODS)
def test_the_plan_says_what_the_search_may_do(method):
    made = with_method(method)
    text = as_text(made, bounds(made, SIZES, PRICES))
    assert f"method     {method}" in text
    assert "rollouts and" in text
    assert "edits" not in text.partition("loop")[2].partition("budget")[0]


@pytest.mark.skipif(importlib.util.find_spec("dspy.teleprompt.gepa") is None, reason="dspy's layout changed")
def test_the_numbers_are_those_of_the_installed_optimizers():
    import inspect

    import dspy
    from dspy.teleprompt import mipro_optimizer_v2

    from skillc.budget import steps

    assert max(mode["n"] for mode in mipro_optimizer_v2.AUTO_RUN_SETTINGS.values()) == steps._MOST_CANDIDATES
    assert mipro_optimizer_v2.MIN_MINIBATCH_SIZE == steps._WHOLE_VALIDATION
    compile_ = inspect.signature(dspy.MIPROv2.compile).parameters
    assert compile_["minibatch_size"].default == steps.MINIBATCH
    assert compile_["minibatch_full_eval_steps"].default == steps.FULL_EVERY
    assert inspect.signature(dspy.GEPA.__init__).parameters["reflection_minibatch_size"].default == 3
