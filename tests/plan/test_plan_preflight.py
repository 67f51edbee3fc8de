"""The plan counts a run's preflight: one call for each model that is reached over a network."""

from plan_samples import PRICES, SIZES, plan

from skillc.budget.bounds import bounds, preflight_groups
from skillc.plan.schema import ModelPlan


def with_models(*models):
    return plan(models={model.role: model for model in models})


def test_one_call_for_each_model_whose_first_reply_could_differ():
    same = {"model": "openai/small", "key_env": "KEY"}
    one, two = ModelPlan(role="judge", **same), ModelPlan(role="target", **same)
    hot = ModelPlan(role="optimizer", **same, parameters={"temperature": 1})
    assert preflight_groups(with_models(one, two, hot).models) == (("judge", "target"), ("optimizer",))
    assert bounds(with_models(one, two, hot), SIZES, PRICES).stage("preflight").bound.most.calls == 2


def test_the_rulebook_needs_none():
    here = with_models(*(ModelPlan(role=role, model="rulebook/v1") for role in ("target", "optimizer")))
    found = bounds(here, SIZES, PRICES)
    assert found.stages[0].name == "baseline"
    assert found.minimum.preflight.calls == 0


def test_what_skillc_serves_or_the_user_wrote_needs_none():
    served = ModelPlan(role="target", model="hosted_vllm/x", serve={})
    own = ModelPlan(role="optimizer", model="mine/x", backend="my_models:answer")
    assert preflight_groups(with_models(served, own).models) == ()


def test_a_preflight_is_part_of_the_least_and_of_the_most():
    found = bounds(plan(), SIZES, PRICES)
    stage = found.stages[0]
    assert (stage.name, stage.role, stage.bound.most.calls) == ("preflight", "all", 2)
    assert found.minimum.preflight == stage.bound.least
    assert stage.bound.least.tokens < stage.bound.most.tokens
    assert stage.bound.most.reply == sum(model.max_reply for model in plan().models.values())
    assert not stage.each_step
