"""Hashes: equal for equal meaning, different for different meaning."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_samples import BETTER, plan

from skillc.json_values import canonical, digest
from skillc.language.loop import SchedulePlan
from skillc.plan.digest import plan_digest, redact_plan, run_id, run_parts
from skillc.plan.schema import GatePlan, PacingPlan, Plan, RolloutPlan

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.fractions()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def named(changed: Plan, **changes):
    given = {
        "data_digest": "d",
        "initial_skill": "s",
        "metric_sources": {"m:f": "1"},
        "decision_version": "1",
        **changes,
    }
    return run_id(run_parts(changed, **given))


@given(VALUES)
def test_canonical_is_json_and_stable(value):
    text = canonical(value)
    json.loads(text)
    assert canonical(value) == text


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_count(value):
    assert canonical(dict(reversed(list(value.items())))) == canonical(value)


def test_fractions_are_written_exactly():
    assert canonical({"b": Fraction(1, 3), "a": Fraction(2)}) == '{"a":"2/1","b":"1/3"}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": {1: 2}}, {1, 2}, object(), b"x"])
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        digest(value)


def test_a_plan_survives_json_and_keeps_its_digest():
    again = Plan.model_validate_json(plan().model_dump_json())
    assert again == plan()
    assert plan_digest(again) == plan_digest(plan())


def test_the_wording_of_a_gate_does_not_count():
    gates = tuple(gate.model_copy(update={"text": "other words"}) for gate in plan().gates)
    assert plan_digest(plan(gates=gates)) == plan_digest(plan())
    assert named(plan(gates=gates)) == named(plan())


CHANGES = {
    "gates": {"gates": (GatePlan(name="better", term=BETTER, text="", stage="validation"),)},
    "order of gates": {"gates": tuple(reversed(plan().gates))},
    "epochs": {"budget": {"epochs": 5}},
    "steps": {"budget": {"steps": 5}},
    "batch": {"optimize": {"batch": 20}},
    "edits": {"optimize": {"edits": SchedulePlan(start=5)}},
    "about": {"skill": {"about": "Another."}},
    "seed": {"data": {"seed": 8}},
    "group": {"data": {"group": "product"}},
    "rubrics": {"rubrics": {"good": "5 is good"}},
    "language": {"language": 2},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_decides_is_in_both_hashes(change):
    assert plan_digest(plan(**change)) != plan_digest(plan())
    assert named(plan(**change)) != named(plan())


CAPS = {
    "calls": 5,
    "tokens": 5,
    "cost": Fraction(1),
    "time": Fraction(60),
    "patience": 3,
    "min_gain": Fraction(1, 100),
}


@pytest.mark.parametrize("cap", CAPS)
def test_a_cap_that_only_truncates_is_in_the_plans_hash_and_not_in_the_runs(cap):
    """A raised cap continues the run."""
    changed = plan(budget={cap: CAPS[cap]})
    assert plan_digest(changed) != plan_digest(plan())
    assert named(changed) == named(plan())


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"num_retries": 3}},
        {"parameters": {"max_in_flight": 3}},
        {"pacing": PacingPlan(concurrency=3, rpm=60, tpm=1000, timeout=Fraction(3))},
    ],
)
def test_pacing_and_secrets_are_not_in_the_runs_hash(change):
    target = plan().models["target"]
    parameters = {**target.parameters, **change.get("parameters", {})}
    changed = target.model_copy(update={**change, "parameters": parameters, "key_env": "OTHER_KEY"})
    assert named(plan(models={**plan().models, "target": changed})) == named(plan())


@pytest.mark.parametrize(
    "change",
    [{"model": "openai/other"}, {"parameters": {"temperature": 1}}, {"base_url": "http://x"}, {"max_reply": 9}],
)
def test_what_a_model_is_sent_is_in_the_runs_hash(change):
    changed = plan().models["target"].model_copy(update=change)
    assert named(plan(models={**plan().models, "target": changed})) != named(plan())


def test_the_place_of_the_data_is_not_in_the_runs_hash():
    assert named(plan(data={"source": "elsewhere.jsonl"})) == named(plan())
    assert plan_digest(plan(data={"source": "elsewhere.jsonl"})) != plan_digest(plan())


@pytest.mark.parametrize(
    "other",
    [
        {"data_digest": "other"},
        {"initial_skill": "other"},
        {"metric_sources": {"m:f": "2"}},
        {"metric_sources": {}},
        {"decision_version": "2"},
    ],
)
def test_data_skill_sources_and_code_are_in_the_runs_hash(other):
    assert named(plan(), **other) != named(plan())


def test_digests_never_change_by_accident():
    """A change here makes every lock and every run folder out there a stranger: raise the version on purpose."""
    assert digest({"a": [1, Fraction(1, 2), None, "ü"]}) == (
        "dae50e4a17e8de6ff9e3102c63fa463bb342a3bd5afa85f5d5544b9610dad6b0"
    )


def test_the_address_of_a_tool_keeps_its_secrets_out_of_plans_and_hashes():
    address = "https://user:passw0rd@tools.example.com/mcp?key=abc12345&x=1"
    tools = [{"function": "mcp", "arguments": [address]}, {"function": "python", "arguments": ["shop:find"]}]
    made = plan()
    rollout = RolloutPlan(kind="react", settings={"tools": tools, "turns": 3})
    made = made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})
    settings = redact_plan(made).task.rollout.settings
    assert settings["tools"][0]["arguments"] == ["https://tools.example.com/mcp?x=1"]
    assert (settings["tools"][1], settings["turns"]) == (tools[1], 3)
    other = json.loads(json.dumps(tools).replace("passw0rd", "other").replace("abc12345", "z"))
    rollout = rollout.model_copy(update={"settings": {"tools": other, "turns": 3}})
    assert plan_digest(made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})) == (
        plan_digest(made)
    )
