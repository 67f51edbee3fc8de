"""Which model a user means."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest_cli import PROGRAM
from hypothesis import given
from hypothesis import strategies as st

from skillc.errors import SkillcError
from skillc.evaluate.measuring import check_places, chosen_models, labels_of, plan_with
from skillc.frontend import plan_file
from skillc.plan.models import override_models
from skillc.plan.schema import Plan

MODELS = """model target = "openai/small" { temperature = 0.5; base_url = "http://127.0.0.1:1/v1" }
model optimizer = "openai/large"
model noisy = "rulebook/v1" { noise = 0.3 }
model same = "openai/small" { temperature = 0.5; base_url = "http://127.0.0.1:1/v1"; rpm = 5 }
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path = tmp_path_factory.mktemp("models") / "things.skill"
    lines = [line for line in PROGRAM.splitlines() if not line.startswith("model ")]
    path.write_text("\n".join(lines).replace("data {", MODELS + "data {"))
    return plan_file(path, complete=False).plan


def chosen(plan: Plan, *texts: str, offline: bool = False) -> list[tuple[str, str]]:
    return [(model.role, model.model) for model in chosen_models(plan, texts, offline=offline)]


def test_nothing_means_the_target(plan: Plan) -> None:
    assert chosen(plan) == [("target", "openai/small")]


def test_a_role_is_taken_with_its_settings(plan: Plan) -> None:
    (noisy,) = chosen_models(plan, ["noisy"], offline=False)
    assert noisy == plan.models["noisy"]


def test_a_name_that_a_role_has_is_that_role(plan: Plan) -> None:
    assert chosen(plan, "openai/small", "openai/large") == [("target", "openai/small"), ("optimizer", "openai/large")]


@pytest.mark.parametrize(("text", "place"), [("openai/other", "target"), ("noisy=rulebook/v2", "noisy")])
def test_another_name_takes_a_roles_place_as_a_compile_puts_it_there(plan: Plan, text: str, place: str) -> None:
    (model,) = chosen_models(plan, [text], offline=False)
    name = text.rpartition("=")[2]
    assert model.role == name
    assert model.model_copy(update={"role": place}) == override_models(plan, {place: name}).models[place]


def test_settings_of_another_provider_stay_behind(plan: Plan) -> None:
    (model,) = chosen_models(plan, ["anthropic/x"], offline=False)
    assert (model.base_url, model.parameters) == (None, {"temperature": 0.5})


def test_what_is_the_same_is_tried_once(plan: Plan) -> None:
    assert chosen(plan, "target", "openai/small", "target=openai/small", "same") == [("target", "openai/small")]


def test_one_name_with_two_settings_is_two_models_under_two_roles(plan: Plan) -> None:
    found = chosen_models(plan, ["openai/x", "optimizer=openai/x"], offline=False)
    assert [model.role for model in found] == ["openai/x", "openai/x #2"]
    assert len(set(labels_of(found).values())) == 2


def test_offline_leaves_the_rulebook_with_its_own_settings(plan: Plan) -> None:
    assert chosen(plan, "openai/y", "target", "noisy", offline=True) == [
        ("rulebook/v1", "rulebook/v1"),
        ("noisy", "rulebook/v1"),
    ]


@pytest.mark.parametrize("text", ["nosy", "nobody", "x=openai/y", "target=y", "", "="])
def test_what_is_no_model_is_an_error_with_a_fix(plan: Plan, text: str) -> None:
    with pytest.raises(SkillcError) as error:
        chosen(plan, text)
    assert error.value.hint


@given(texts=st.lists(st.sampled_from(["target", "noisy", "a/b", "a/c", "noisy=a/b", "optimizer"]), max_size=6))
def test_the_plan_has_the_chosen_models_and_no_other(plan: Plan, texts: list[str]) -> None:
    found = chosen_models(plan, texts, offline=False)
    assert list(plan_with(plan, found).models) == [model.role for model in found]
    assert len({model.role for model in found}) == len(found)


def test_a_servers_model_without_an_address_says_how_it_gets_one(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOSTED_VLLM_API_BASE", raising=False)
    found = chosen_models(plan, ["hosted_vllm/x/y"], offline=False)
    with pytest.raises(SkillcError, match="has no server address") as error:
        check_places(plan, found, Path())
    assert 'model other = "hosted_vllm/x/y"' in str(error.value.hint)
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", "http://127.0.0.1:1/v1")
    check_places(plan, found, Path())
