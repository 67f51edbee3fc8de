"""A reply of the rulebook that a cancelled task never awaits."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest

from skillc.models.rulebook.provider import PROVIDER, Rulebook

MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": "[[ ## ticket ## ]]\nan invoice"}]


def test_a_reply_that_nothing_awaits_prints_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pending = Rulebook().acompletion(f"{PROVIDER}/v1", MESSAGES)
        assert asyncio.iscoroutine(pending)
        del pending
        gc.collect()


def test_a_reply_is_the_same_however_it_is_awaited() -> None:
    async def both() -> list[str | None]:
        plain = await Rulebook().acompletion(f"{PROVIDER}/v1", MESSAGES)
        task = await asyncio.create_task(Rulebook().acompletion(f"{PROVIDER}/v1", MESSAGES))
        return [each.choices[0].message.content for each in (plain, task)]

    expected = Rulebook().completion(f"{PROVIDER}/v1", MESSAGES).choices[0].message.content
    assert asyncio.run(both()) == [expected, expected]


def test_a_task_of_a_reply_can_be_cancelled() -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(Rulebook().acompletion(f"{PROVIDER}/v1", MESSAGES))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
