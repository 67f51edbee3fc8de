from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skillc.models.attempts import read_reply
from skillc.models.backends.registry import RequestError, answer_by_rulebook
from skillc.redaction import NOTHING

MESSAGES = [
    {"role": "system", "content": 'Answer with one of: a, b.\nIf it mentions "x", answer b.'},
    {"role": "user", "content": "x"},
]


def replied(model: str = "rulebook/v1", **parameters: Any) -> Any:
    return asyncio.run(answer_by_rulebook({"model": model, "messages": MESSAGES, **parameters}))


def test_it_replies_in_the_chat_format_and_reports_usage() -> None:
    text, finish, usage, model, calls = read_reply(
        replied(temperature=0, max_tokens=9, sample=[1, 2], timeout=5), NOTHING
    )
    assert (text, finish, model, calls) == ("b", "stop", "rulebook/v1", ())
    assert usage is not None
    assert usage.completion == 1
    assert usage.prompt > 10


def test_parameters_reach_it() -> None:
    assert read_reply(replied(noise=1.0, seed=1), NOTHING)[0] == "a"
    assert read_reply(replied(extra_body={"noise": 1.0, "seed": 1}), NOTHING)[0] == "a"


@pytest.mark.parametrize(
    ("parameters", "status", "told"),
    [
        ({"model": "rulebook/v9"}, 404, "unknown model `rulebook/v9`"),
        ({"noise": 7}, 400, "`noise` must be a share"),
        ({"seed": "u"}, 400, "`seed` must be a whole number"),
    ],
)
def test_a_request_that_it_cannot_answer_has_a_status(parameters: dict[str, Any], status: int, told: str) -> None:
    with pytest.raises(RequestError, match=told) as failed:
        replied(**parameters)
    assert failed.value.status_code == status
