"""`skillc new --model`: a first program for a model that skillc serves, or that a provider has."""

import json

import pytest
from clients import stop_all
from conftest_cli import skillc

from skillc.frontend import plan_file


def plan_of_new(place, model):
    done = skillc("new", "things.jsonl", "--model", model, "--force", folder=place.folder)
    assert done.returncode == 0, done.stderr
    assert "no findings" in skillc("check", "things.skill", folder=place.folder).stdout
    return plan_file(place.folder / "things.skill").plan.models


def test_a_served_model_is_compiled_as_the_first_program_says(place, monkeypatch):
    (place.folder / "models" / "tiny").rename(place.folder / "models" / "Qwen3-tiny")
    models = plan_of_new(place, "hosted_vllm/./models/Qwen3-tiny")
    assert models["target"].serve == models["optimizer"].serve == {"max_len": 16384, "gpu_share": 0.8, "keep": True}
    assert (models["target"].max_reply, models["optimizer"].max_reply) == (500, 4000)
    monkeypatch.setenv("FAKE_ASKED", str(place.folder / "asked.jsonl"))
    done = skillc("compile", "things.skill", "--set", "budget.steps=1", folder=place.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (start,) = place.starts
    argv = start["argv"]
    assert argv[argv.index("--max-model-len") + 1] == "16384"
    assert argv[argv.index("--gpu-memory-utilization") + 1] == "0.8"
    asked = [json.loads(line) for line in (place.folder / "asked.jsonl").read_text().splitlines()]
    # Top level, as vLLM reads it: not inside of `extra_body`.
    assert all(body["chat_template_kwargs"] == {"enable_thinking": False} for body in asked)
    assert {(body["max_tokens"], body["temperature"]) for body in asked} == {(500, 0), (4000, 0.7)}
    stop_all(place)


def test_thinking_is_left_alone_for_models_that_do_not_know_the_switch(place):
    models = plan_of_new(place, "hosted_vllm/org/another")
    assert "chat_template_kwargs" not in models["target"].parameters
    assert "# chat_template_kwargs { enable_thinking = off }" in (place.folder / "things.skill").read_text()


@pytest.mark.parametrize(
    ("model", "variable"),
    [("openai/gpt-5-mini", "OPENAI_API_KEY"), ("anthropic/claude-x", "ANTHROPIC_API_KEY"), ("bedrock/x", None)],
)
def test_a_providers_model_has_its_key_from_the_environment(place, model, variable):
    models = plan_of_new(place, model)
    for role, reply in (("target", 2000), ("optimizer", 8000)):
        assert (models[role].model, models[role].key_env, models[role].max_reply) == (model, variable, reply)
        assert models[role].serve is None


@pytest.mark.parametrize("model", ["gpt-5", "openai/", "/x", 'openai/a"b'])
def test_what_is_no_model_is_refused(place, model):
    done = skillc("new", "things.jsonl", "--model", model, folder=place.folder)
    assert done.returncode == 2
    assert "is not a model" in done.stderr and "provider/name" in done.stderr
    assert not (place.folder / "things.skill").exists()
