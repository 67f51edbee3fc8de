"""Adding a model backend: a file with a `Backend`, and its entry in the registry."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from model_plans import model, plan_of

from skillc.errors import SkillcError
from skillc.models.backends import registry
from skillc.models.calls import Call, Completion, Message
from skillc.models.client import Client
from skillc.models.endpoint import Backend, Endpoint, Transport, key_of
from skillc.plan.schema import ModelPlan

# ---- what the new file holds ----


async def echo(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Answers with the last message."""
    text = arguments["messages"][-1]["content"]
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "model": "echo-1", "usage": None}


def connect(model: ModelPlan, environ: Mapping[str, str], root: Path) -> tuple[Endpoint, Transport] | None:
    if model.provider != "echo":
        return None
    return Endpoint("echo", None, key_of(model, environ, model.key_env), model.key_env), echo


ECHO = Backend("echo", connect)


# ---- what holds for it from then on ----


@pytest.fixture(autouse=True)
def with_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "BACKENDS", (ECHO, *registry.BACKENDS))


def asked(target: ModelPlan) -> Completion:
    plan = plan_of(target, model("optimizer", "rulebook/v1", base_url=None), calls=3)
    with Client(plan, preflight=True) as client:
        done = asyncio.run(client.complete(Call("target", "rollout", (Message("user", "hello"),))))
        assert client.ledger.paid.spent.calls == 1
        assert client.roles["target"].backend is ECHO
    return done


def test_a_model_of_the_new_provider_is_answered_by_the_new_backend() -> None:
    done = asked(model(name="echo/any", base_url=None))
    assert (done.text, done.model) == ("hello", "echo-1")
    assert done.usage.bound


def test_its_keys_are_looked_up_before_the_first_call() -> None:
    with pytest.raises(SkillcError, match="`ECHO_KEY` is not set"):
        asked(model(name="echo/any", base_url=None, key_env="ECHO_KEY"))


def test_the_other_backends_answer_as_before() -> None:
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    backends = [
        registry.connect(model(name=name, base_url=None), keys, Path())[0].name
        for name in ("rulebook/v1", "openai/gpt-4o-mini", "anthropic/claude-3-5-haiku-latest")
    ]
    assert backends == ["rulebook", "openai", "litellm"]
