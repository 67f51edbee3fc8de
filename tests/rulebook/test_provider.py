from __future__ import annotations

import asyncio

import pytest

from skillc.models.backends.litellm import load_litellm

MESSAGES = [
    {"role": "system", "content": 'Answer with one of: a, b.\nIf it mentions "x", answer b.'},
    {"role": "user", "content": "x"},
]


@pytest.fixture(scope="module")
def litellm():
    return load_litellm()


def test_it_is_registered_once(litellm) -> None:
    from skillc.models.rulebook import provider

    provider.register()
    provider.register()
    assert [entry["provider"] for entry in litellm.custom_provider_map].count("rulebook") == 1


def test_completion_and_acompletion_agree_and_report_usage(litellm) -> None:
    first = litellm.completion(model="rulebook/v1", messages=MESSAGES, temperature=0, max_tokens=9)
    second = asyncio.run(litellm.acompletion(model="rulebook/v1", messages=MESSAGES, sample=[1, 2], timeout=5))
    assert first.choices[0].message.content == second.choices[0].message.content == "b"
    assert first.choices[0].finish_reason == "stop"
    assert first.usage.completion_tokens == 1
    assert first.usage.prompt_tokens > 10


def test_parameters_reach_it(litellm) -> None:
    reply = litellm.completion(model="rulebook/v1", messages=MESSAGES, noise=1.0, seed=1)
    assert reply.choices[0].message.content == "a"


def test_unknown_names_are_permanent_errors(litellm) -> None:
    with pytest.raises(litellm.NotFoundError, match="there is no model `rulebook/v9`"):
        litellm.completion(model="rulebook/v9", messages=MESSAGES)
    with pytest.raises(litellm.BadRequestError, match="`noise` is a share"):
        litellm.completion(model="rulebook/v1", messages=MESSAGES, noise=7)
