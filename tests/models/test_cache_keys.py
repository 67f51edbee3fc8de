"""What tells two calls apart in the cache, and what does not."""

from __future__ import annotations

import asyncio
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_plans import Scripted, endpoint_of, model, plan_of, reply

from skillc.errors import SkillcError
from skillc.models import concurrency
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.dspy_lm import make_lm
from skillc.models.roles import call_key, resolve_roles
from skillc.plan.schema import PacingPlan, PricePlan

PIXELS = [
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==",
    "iVBORw0KGgoB",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def key_of(call: Call, environ: dict[str, str] | None = None, salt: str = "", **settings: Any) -> str:
    role = resolve_roles(plan_of(model(**settings)), offline=False, environ=environ or {})["target"]
    return call_key(role, role.arguments(call), call.sample, salt)


def ask(content: Any = "hello", **more: Any) -> Call:
    return Call("target", "rollout", (Message("user", content),), **more)


def picture(data: str) -> tuple[dict[str, Any], ...]:
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return ({"type": "text", "text": "what is this?"}, url)


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


DIFFERENT = {
    "text": ask("hullo"),
    "role of the message": Call("target", "rollout", (Message("system", "hello"),)),
    "one message in two": Call("target", "rollout", (Message("user", "hel"), Message("user", "lo"))),
    "parts": ask(({"type": "text", "text": "hello"},)),
    "an image": ask(picture(PIXELS[0])),
    "another image": ask(picture(PIXELS[1])),
    "a tool": ask(tools=(tool("look"),)),
    "another tool": ask(tools=(tool("find"),)),
    "two tools": ask(tools=(tool("look"), tool("find"))),
    "no tools": ask(tools=()),
    "json": ask(response_format={"type": "json_object"}),
    "a schema": ask(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}),
    "temperature": ask(parameters={"temperature": 1}),
    "sample": ask(sample=1),
    "samples": ask(sample=(0, 1)),
}


def test_each_part_of_a_call_is_in_its_key() -> None:
    keys = {name: key_of(call) for name, call in DIFFERENT.items()}
    plain = keys.pop("no tools")
    assert plain == key_of(ask())
    assert len({plain, *keys.values()}) == len(keys) + 1


def test_endpoint_model_parameters_and_salt_are_in_the_key() -> None:
    other = [
        key_of(ask(), base_url="http://localhost:10"),
        key_of(ask(), base_url="https://localhost:9"),
        key_of(ask(), base_url="http://localhost:9/v1"),
        key_of(ask(), base_url="http://localhost:9?deployment=a"),
        key_of(ask(), base_url="http://localhost:9?deployment=b"),
        key_of(ask(), {"ADDRESS": "http://elsewhere"}, base_url=None, base_url_env="ADDRESS"),
        key_of(ask(), name="openai/gpt-4.1"),
        key_of(ask(), name="hosted_vllm/gpt-4o-mini"),
        key_of(ask(), parameters={"temperature": 0}),
        key_of(ask(), max_reply=77),
        key_of(ask(), salt="fresh"),
    ]
    assert len({key_of(ask()), *other}) == len(other) + 1


def test_pacing_timeout_price_role_stage_and_the_secret_key_are_not_in_it() -> None:
    plain = key_of(ask())
    pacing = PacingPlan(concurrency=3, rpm=5, tpm=7, timeout=Fraction(9))
    assert key_of(ask(), pacing=pacing) == plain
    assert key_of(ask(), price=PricePlan(input=Fraction(1), output=Fraction(2))) == plain
    assert key_of(Call("target", "reflect", ask().messages)) == plain
    keys = {key_of(ask(), {"TEAM_KEY": secret}, key_env="TEAM_KEY") for secret in ("sk-one", "sk-two")}
    assert keys == {plain}
    assert key_of(ask(), base_url="http://LOCALHOST:9/") == plain
    assert key_of(ask(), base_url="http://user:pass@localhost:9?api_key=sk-three") == plain


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("anthropic/claude", "ANTHROPIC_BASE_URL"),
        ("fireworks_ai/x", "FIREWORKS_API_BASE"),
        ("huggingface/x", "HF_API_BASE"),
        ("mistral/x", "MISTRAL_API_BASE"),
        ("ollama/llama3", "OLLAMA_API_BASE"),
        ("ollama_chat/llama3", "OLLAMA_API_BASE"),
        ("vertex_ai/x", "VERTEXAI_API_BASE"),
    ],
)
def test_two_addresses_that_litellm_takes_from_the_environment_are_two_endpoints(name: str, variable: str) -> None:
    keys = {"ANTHROPIC_API_KEY": "k", "FIREWORKS_AI_API_KEY": "k", "MISTRAL_API_KEY": "k"}
    ids = {
        endpoint_of(model(name=name, base_url=None), {**keys, **where}).id
        for where in ({}, {variable: "http://one"}, {variable: "http://two"})
    }
    assert len(ids) == 3


@given(JSON, JSON)
def test_two_values_share_a_key_where_they_are_the_same_on_the_wire(one: Any, two: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    for put in (
        lambda value: ask(({"type": "text", "text": value},)),
        lambda value: ask(tools=({"function": value},)),
        lambda value: ask(response_format={"schema": value}),
        lambda value: ask(parameters={"stop": value}),
    ):
        assert (key_of(put(one)) == key_of(put(two))) == same


class Abbreviated:
    def __str__(self) -> str:
        return "[0 1 2 ... 997 998 999]"


def test_a_value_that_is_no_json_is_refused_and_never_abbreviated() -> None:
    with pytest.raises(SkillcError, match="`Abbreviated`") as refused:
        key_of(ask(({"type": "image_url", "image_url": {"url": Abbreviated()}},)))
    assert refused.value.hint


@pytest.mark.filterwarnings("ignore:Passing OpenAI-style:DeprecationWarning")
def test_through_dspy_two_images_that_differ_in_bytes_alone_are_two_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A call without a loop starts the shared one, on which the calls of later tests would run.
    monkeypatch.setattr(concurrency, "SHARED_LOOP", concurrency.BackgroundLoop())
    transport = Scripted(lambda sent: reply("a cat"))
    with Client(plan_of(), cache_folder=tmp_path, transport=transport) as client:
        lm = make_lm(client, "target")
        for data in (*PIXELS, *PIXELS):
            message = {"role": "user", "content": list(picture(data))}
            assert lm(messages=[message]) == ["a cat"]
    assert len(transport.sent) == 2


def test_two_endpoints_that_serve_one_model_name_never_share_a_reply(tmp_path: Path) -> None:
    transport = Scripted(lambda sent: reply(sent["api_base"]))
    plan = plan_of(model("one", base_url="http://localhost:1"), model("two", base_url="http://localhost:2"))
    for _ in range(2):
        with Client(plan, cache_folder=tmp_path, transport=transport) as client:
            texts = [
                asyncio.run(client.complete(Call(role, "rollout", (Message("user", "hello"),)))).text
                for role in ("one", "two")
            ]
        assert texts == ["http://localhost:1", "http://localhost:2"]
    assert len(transport.sent) == 2
