"""Bounds of calls, tokens and money, stage by stage."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_samples import PRICES, SIZES, plan

from skillc.budget.bounds import bounds
from skillc.budget.call_sizes import most_calls
from skillc.budget.spend import Extent, Sizes, Spend, one_call
from skillc.budget.steps import (
    decisions_of,
    epochs_of,
    merge_calls,
    most_merge_calls,
    open_ended,
    patience_of,
    steps_of,
    wave_size,
)
from skillc.gates.terms import CallTerm, Constant, MetricTerm, Operation, WordTerm
from skillc.json_values import fields_of
from skillc.language.loop import OptimizePlan, SchedulePlan
from skillc.plan.schema import GatePlan, ModelPlan, PricePlan, RolloutPlan

CURES = GatePlan(
    name="cures",
    term=Operation(
        ">",
        (CallTerm("improved", (MetricTerm("correct"),), (("on", WordTerm("batch")),)), Constant(Fraction(0))),
    ),
    text="",
    stage="batch",
)


# The screen tries each edit alone and no more, and no earlier failures come back.
ALONE = {"control": False, "together": False, "replay": 0}


def calls(found, stage):
    bound = found.stage(stage).bound
    return bound.least.calls, bound.estimate.calls, bound.most.calls


def test_the_calls_of_each_stage():
    found = bounds(plan(), SIZES, PRICES)
    assert found.steps == found.expected_steps == 16
    assert calls(found, "baseline") == (80, 80, 80)
    # Each batch but the first may be sent ahead for a skill that does not stay.
    ahead = 15 * 40
    assert calls(found, "rollout") == (3 * 40, 4 * 160 + 15 * 20 // 4, 4 * 160 + 15 * 20 + ahead)
    assert calls(found, "reflect") == (3 * 5, 16 * 9, 16 * 10 * 2)
    assert calls(found, "aggregate") == (0, 16 * 3, 16 * 3 * 2)
    # 40 edits and 8 from the shelf: 3 failures and 2 right cases each, controls for 60 cures and each breakage; then 60
    # groups, taken apart.
    most = 48 * 5 + 60 + 48 * 2 + 60 + 48 * 3 + 48 + 24
    assert calls(found, "screen") == (0, 16 * 4 * (2 * 5 + 2 + 3), 16 * most)
    assert calls(found, "gate") == (3 * 80, 16 * 50, 16 * 80)
    assert calls(found, "slow update") == (0, 4 * (40 + 50 + 1), 4 * (40 + 80 + 2))
    assert calls(found, "meta skill") == (0, 3, 6)
    assert calls(found, "final test") == (320, 320, 320)
    assert calls(found, "no skill") == (0, 240, 240)


def test_samples_multiply_what_is_compared():
    found = bounds(plan(optimize={"samples": 2}), SIZES, PRICES)
    assert calls(found, "baseline") == (160, 160, 160)
    assert calls(found, "gate")[2] == 16 * 160


def test_a_gate_on_the_batch_runs_the_candidate_on_it():
    found = bounds(plan(gates=(CURES, *plan().gates)), SIZES, PRICES)
    assert calls(found, "gate") == (3 * 120, 16 * 110, 16 * 140)


def test_a_screen_without_controls_and_groups_runs_each_edit_alone():
    found = bounds(plan(optimize=ALONE), SIZES, PRICES)
    assert calls(found, "screen") == (0, 16 * 4 * 2 * 5, 16 * 32 * 5)
    assert calls(found, "rollout") == (3 * 40, 4 * 160, 4 * 160 + 15 * 40)


def test_stages_that_are_turned_off_are_not_there():
    off = {"screen": 0, "slow_update": False, "meta_skill": False, "null_arm": "never"}
    names = [stage.name for stage in bounds(plan(optimize=off), SIZES, PRICES).stages]
    assert names == ["preflight", "baseline", "rollout", "reflect", "aggregate", "gate", "final test", "no skill"]


def test_the_model_as_schedule_is_asked_once_a_step():
    found = bounds(plan(optimize={"edits": SchedulePlan(kind="model")}), SIZES, PRICES)
    assert calls(found, "select") == (0, 16, 32)


def test_a_rewrite_asks_once_for_each_candidate():
    found = bounds(plan(optimize={"update": "rewrite_section", "candidates": 2}), SIZES, PRICES)
    assert calls(found, "rewrite") == (0, 32, 64)


def test_lookups_multiply_the_reflections():
    found = bounds(plan(optimize={"lookups": 2, "replay": 0}), SIZES, PRICES)
    assert calls(found, "reflect") == (3 * 5, 16 * 6 * 2, 16 * 6 * 2 * 3)
    plain = bounds(plan(optimize={"replay": 0}), SIZES, PRICES)
    assert found.stage("reflect").bound.most.prompt > 3 * plain.stage("reflect").bound.most.prompt


def test_accumulated_batches_are_one_step_with_minibatches_of_their_own():
    found = bounds(plan(optimize={"batch": 20, "accumulate": 2, "replay": 0}), SIZES, PRICES)
    assert found.steps == 16
    assert calls(found, "rollout") == (3 * 40, 4 * 160, 4 * 160 + 15 * 40)
    assert calls(found, "reflect") == (3 * 5, 16 * 6, 16 * 8 * 2)


def test_deletions_of_harmful_rules_are_screened_too():
    found = bounds(plan(optimize={"rule_counts": True, **ALONE}), SIZES, PRICES)
    assert calls(found, "screen") == (0, 16 * 4 * 2 * 5, 16 * 36 * 5)


def test_a_growing_edit_budget_is_bounded_by_its_end():
    found = bounds(plan(optimize={"edits": SchedulePlan(kind="linear", start=2, end=4), **ALONE}), SIZES, PRICES)
    assert calls(found, "screen") == (0, 16 * 4 * 2 * 5, 16 * 32 * 5)


def test_without_a_test_split_there_is_no_final_test():
    found = bounds(plan(), replace(SIZES, test=0, groups=0), PRICES)
    assert "final test" not in [stage.name for stage in found.stages]
    assert found.minimum.test == Spend()


def test_steps_are_epochs_of_batches_up_to_their_cap():
    assert steps_of(plan(), 160) == 16
    assert steps_of(plan(), 161) == 20
    assert steps_of(plan(budget={"steps": 7}), 160) == 7
    assert steps_of(plan(budget={"epochs": None, "steps": 7}), 160) == 7
    assert epochs_of(plan(budget={"epochs": None, "steps": 7})) == 7
    assert open_ended(plan(budget={"epochs": None}))


@pytest.mark.parametrize(("validation", "wave"), [(5, 8), (80, 8), (81, 9), (200, 20), (320, 32), (5000, 32)])
def test_a_wave_is_a_tenth_between_8_and_32(validation, wave):
    assert wave_size(plan(), validation) == wave


@pytest.mark.parametrize(
    ("train", "patience", "optimize"),
    [(160, 8, {}), (800, 20, {}), (800, None, {"method": "gepa"}), (60, None, {})],
)
def test_patience_is_an_epoch_of_at_least_8_steps_where_it_can_end_the_run(train, patience, optimize):
    assert patience_of(plan(optimize={"batch": 40, **optimize}), train) == patience


def test_a_declared_patience_wins_and_0_runs_all_steps():
    assert patience_of(plan(budget={"patience": 3}), 800) == 3
    assert patience_of(plan(budget={"patience": 0}), 800) is None


def test_a_declared_wave_wins():
    assert wave_size(plan(optimize={"wave": 50}), 80) == 50


def test_an_open_ended_run_is_estimated_by_what_its_caps_pay():
    found = bounds(plan(budget={"epochs": None, "cost": None, "calls": 3000}), SIZES, PRICES)
    assert found.open_ended
    assert found.expected_steps < found.steps
    assert found.total.estimate.calls <= 3000
    more = bounds(plan(budget={"epochs": None, "cost": None, "calls": 3600}), SIZES, PRICES)
    assert more.expected_steps > found.expected_steps


def test_money_is_exact():
    price = PricePlan(input=Fraction("0.15"), output=Fraction("0.6"))
    assert one_call(1, 1, price).cost == Fraction(3, 4_000_000)
    found = bounds(plan(), SIZES, PRICES)
    target = sum(
        (s.bound.most.prompt * Fraction(1, 4) + s.bound.most.reply * 2) / 1_000_000
        for s in found.stages
        if s.role == "target"
    )
    assert sum((s.bound.most.cost for s in found.stages if s.role == "target"), Fraction(0)) == target


def test_a_declared_price_wins_and_the_rulebook_is_free():
    models = {
        "target": ModelPlan(role="target", model="rulebook/v1"),
        "optimizer": ModelPlan(role="optimizer", model="x/y", price=PricePlan(input=Fraction(1), output=Fraction(1))),
    }
    found = bounds(plan(models=models), SIZES, {"optimizer": None})
    assert found.prices["target"] == PricePlan(input=Fraction(0), output=Fraction(0))
    assert found.prices["optimizer"] == models["optimizer"].price
    assert found.stage("baseline").bound.most.cost == 0


def test_an_unknown_price_makes_the_cost_unknown_and_not_zero():
    found = bounds(plan(), SIZES, {"target": PRICES["target"], "optimizer": None})
    assert found.stage("reflect").bound.estimate.cost is None
    assert found.total.estimate.cost is None
    assert found.stage("baseline").bound.estimate.cost


def test_judges_and_turns_are_counted_with_each_rollout():
    judged = CallTerm("judge", (), (("model", WordTerm("referee")),))
    goal = plan().metrics[0].model_copy(update={"term": judged})
    models = {**plan().models, "referee": ModelPlan(role="referee", model="a/b")}
    found = bounds(plan(metrics=(goal,), models=models), SIZES, PRICES)
    assert calls(found, "baseline") == (160, 160, 240)
    rollout = plan().task.rollout.model_copy(update={"kind": "code", "settings": {"rounds": 5}})
    found = bounds(plan(task={"rollout": rollout}), SIZES, PRICES)
    assert calls(found, "baseline") == (80, 80 * 3, 80 * 6)


def test_few_calls_are_admitted_by_a_small_cap():
    found = bounds(plan(budget={"cost": Fraction(1, 10)}), SIZES, PRICES)
    assert found.in_flight["optimizer"] == 0
    assert bounds(plan(budget={"cost": None}), SIZES, PRICES).in_flight["optimizer"] is None


@pytest.mark.parametrize(("lists", "calls_"), [(0, 0), (1, 0), (2, 1), (8, 1), (9, 2), (16, 3), (64, 9), (65, 10)])
def test_merges_of_a_tree_of_fan_in_8(lists, calls_):
    assert merge_calls(lists, 0) == calls_


def test_kinds_are_merged_by_themselves_until_one_call_holds_all():
    assert merge_calls(5, 3) == 1
    assert merge_calls(5, 4) == 3
    assert merge_calls(8, 1) == 2
    assert merge_calls(1, 16) == 2 + 1
    assert most_merge_calls(9) == 3


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_most_merges_is_the_most(failures, successes):
    assert merge_calls(failures, successes) <= most_merge_calls(failures + successes)


OPTIMIZE = st.builds(
    OptimizePlan,
    batch=st.integers(1, 60),
    minibatch=st.integers(1, 12),
    samples=st.integers(1, 3),
    candidates=st.integers(1, 3),
    screen=st.integers(0, 4),
    control=st.booleans(),
    together=st.booleans(),
    replay=st.integers(0, 30),
    retries=st.integers(0, 2),
    successes=st.booleans(),
    slow_update=st.booleans(),
    meta_skill=st.booleans(),
    tidy=st.booleans(),
    update=st.sampled_from(["edits", "rewrite_section", "rewrite_all"]),
    accumulate=st.integers(1, 4),
    lapses=st.booleans(),
    lookups=st.integers(0, 3),
    rule_counts=st.booleans(),
)
BUDGET = st.fixed_dictionaries(
    {"epochs": st.none() | st.integers(1, 4), "steps": st.none() | st.integers(1, 30), "calls": st.integers(1, 9000)}
)


@given(OPTIMIZE, BUDGET, st.integers(1, 200), st.integers(1, 200), st.integers(0, 200), st.booleans())
def test_the_least_is_below_the_estimate_and_that_below_the_most(optimize, budget, train, validation, test, batch):
    sizes = Sizes(train, validation, test, test, {}, Extent(30, 90), Extent(3, 9))
    gates = (CURES, *plan().gates) if batch else plan().gates
    found = bounds(plan(optimize=fields_of(optimize), budget=budget, gates=gates), sizes, PRICES)
    for stage in found.stages:
        least, estimate, most = stage.bound.least, stage.bound.estimate, stage.bound.most
        assert estimate.calls <= most.calls, stage
        assert estimate.tokens <= most.tokens, stage
        assert estimate.cost <= most.cost, stage
        assert least.calls <= most.calls, stage
        assert least.tokens <= most.tokens, stage
    assert found.minimum.total == found.total.least
    assert found.expected_steps <= found.steps


def test_groups_under_20_are_pooled():
    sizes = replace(SIZES, values={"a": {"x": 50, "y": 19, "z": 3}, "b": {"x": 20, "y": 60}, "c": {}})
    assert sizes.smallest_group("a") == ("other", 22)
    assert sizes.smallest_group("b") == ("x", 20)
    assert sizes.smallest_group("c") is None
    assert sizes.smallest_group("d") is None


def test_extents():
    assert Extent.of([1, 2, 4]) == Extent(3, 4)
    assert Extent.of([]) == Extent()


def test_tidying_may_try_two_candidates_at_each_epochs_end_and_before_the_test():
    found = bounds(plan(optimize={"tidy": True}), SIZES, PRICES)
    assert calls(found, "tidy") == (0, 4 * (120 + 1), 5 * (3 * 80 + 2))
    assert found.held["optimizer"].tokens >= bounds(plan(), SIZES, PRICES).held["optimizer"].tokens
    for off in ({}, {"tidy": True, "accept": "always"}):
        assert "tidy" not in [stage.name for stage in bounds(plan(optimize=off), SIZES, PRICES).stages]


def test_accept_always_runs_the_whole_validation_and_no_batch():
    found = bounds(plan(optimize={"accept": "always"}, gates=(CURES, *plan().gates)), SIZES, PRICES)
    assert calls(found, "gate")[1:] == (16 * 80, 16 * 80)


def test_pairs_that_are_looked_for_may_cost_four_times_as_many():
    found = bounds(plan(optimize={"pairs": "changed", "slow_update_samples": 20}), SIZES, PRICES)
    assert calls(found, "slow update")[2] == 4 * (2 * 80 + 80 + 2)


def test_every_sample_is_tested():
    found = bounds(plan(optimize={"samples": 3}), SIZES, PRICES)
    assert calls(found, "final test") == (960, 960, 960)
    assert found.minimum.test.calls == 960
    assert calls(found, "no skill") == (0, 720, 720)


def test_decisions_beside_the_steps_count_as_planned():
    assert decisions_of(plan(optimize={"slow_update": False}), 160) == 16
    assert decisions_of(plan(), 160) == 16 + 4
    assert decisions_of(plan(optimize={"candidates": 2}), 160) == 32 + 4


def test_a_step_has_drafts_or_edits_and_each_draft_is_tried_and_one_revised():
    without, found = bounds(plan(), SIZES, PRICES), bounds(plan(optimize={"drafts": 2}), SIZES, PRICES)
    # About half of the steps are spent on each; at most all on either.
    assert calls(found, "draft") == (0, 8 * 3, 16 * 3 * 2)
    assert calls(found, "reflect")[1:] == (8 * 9, calls(without, "reflect")[2])
    screened = calls(without, "screen")
    assert calls(found, "screen") == (0, screened[1] // 2 + 8 * 2 * (12 + 6), screened[2])
    assert "draft" not in {stage.name for stage in without.stages}


@pytest.mark.parametrize(
    ("settings", "load", "most"),
    [
        ({"turns": 5}, "always", 5),
        ({"turns": 5}, "on_demand", 5 + 1),
        ({"turns": 5, "agent": "react"}, "always", 5 * (3 + 1)),
        ({"turns": 5, "agent": {"kind": "react", "calls": 2, "result": 500}}, "always", 5 * (2 + 1)),
    ],
)
def test_an_environment_is_bounded_by_its_turns_tools_and_openings(settings, load, most):
    made = plan()
    rollout = RolloutPlan(kind="environment", arguments=("house:House",), settings=settings)
    skill = made.skill.model_copy(update={"load": load})
    made = made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout}), "skill": skill})
    found = bounds(made, SIZES, PRICES)
    assert calls(found, "final test")[2] == 320 * most
    assert most_calls(made, SIZES) == most


def test_the_results_of_tools_are_part_of_the_largest_prompt():
    def largest(settings):
        rollout = RolloutPlan(kind="environment", arguments=("house:House",), settings={"turns": 1, **settings})
        made = plan()
        made = made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})
        return bounds(made, SIZES, PRICES).stage("final test").bound.most.prompt

    few, many = (largest({"agent": {"kind": "react", "calls": 1, "result": size}}) for size in (100, 1_100))
    assert largest({}) < few
    # Two calls in the one turn of each rollout, each with one result.
    assert many - few == 320 * 2 * 1_000
