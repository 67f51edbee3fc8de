from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from model_plans import model, plan_of, reply

from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.concurrency import SHORTEST, PrefixWarmup
from skillc.models.endpoint import Transport

LONG = "rule " * SHORTEST


def asked(system: str, model: str = "m") -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "system", "content": system}, {"role": "user", "content": "q"}]}


async def sent(prefixes: PrefixWarmup, calls: list[tuple[str, dict[str, Any]]], *, fails: bool = False) -> list[int]:
    """How many were in flight when each began, the first of them failing if asked to."""
    flying = 0
    seen: list[int] = []

    async def one(number: int, endpoint: str, arguments: dict[str, Any]) -> None:
        nonlocal flying
        async with prefixes.warmed(endpoint, arguments):
            flying += 1
            seen.append(flying)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            flying -= 1
            if fails and not number:
                raise ConnectionError

    await asyncio.gather(*(one(i, *call) for i, call in enumerate(calls)), return_exceptions=True)
    return seen


@pytest.mark.parametrize("fails", [False, True])
def test_the_first_call_of_a_long_prefix_goes_alone_and_the_rest_together(fails: bool) -> None:
    async def run() -> None:
        prefixes = PrefixWarmup()
        assert await sent(prefixes, [("here", asked(LONG))] * 4, fails=fails) == [1, 1, 2, 3]
        assert await sent(prefixes, [("here", asked(LONG))] * 3) == [1, 2, 3]

    asyncio.run(run())


@pytest.mark.parametrize(
    "calls",
    [
        [("here", asked("short"))] * 3,
        [("here", asked(LONG)), ("there", asked(LONG)), ("here", asked(LONG, "n"))],
        [("here", {"model": "m", "messages": [{"role": "user", "content": LONG}]})] * 3,
        [("here", {"model": "m", "messages": []})] * 3,
    ],
)
def test_calls_that_share_no_long_prefix_wait_for_nothing(calls: list[tuple[str, dict[str, Any]]]) -> None:
    assert asyncio.run(sent(PrefixWarmup(), calls)) == [1, 2, 3]


def test_a_first_call_that_is_given_up_lets_the_rest_go() -> None:
    async def run() -> bool:
        prefixes = PrefixWarmup()

        async def first() -> None:
            async with prefixes.warmed("here", asked(LONG)):
                await asyncio.Event().wait()

        async def second() -> bool:
            async with prefixes.warmed("here", asked(LONG)):
                return True

        leader = asyncio.create_task(first())
        await asyncio.sleep(0)
        follower = asyncio.create_task(second())
        await asyncio.sleep(0)
        leader.cancel()
        return await follower

    assert asyncio.run(run())


def ask_four(name: str, send: Transport) -> None:
    async def run() -> None:
        messages = [(Message("system", LONG), Message("user", str(number))) for number in range(4)]
        await asyncio.gather(*(client.complete(Call("target", "rollout", each)) for each in messages))

    with Client(plan_of(model(name=name), model("optimizer")), transport=send) as client:
        asyncio.run(run())


def test_a_client_sends_a_long_prefix_once_before_the_rest() -> None:
    begun: list[int] = []
    with_the_first = 0

    async def send(sent: Mapping[str, Any]) -> Any:
        nonlocal with_the_first
        begun.append(len(begun))
        if len(begun) == 1:
            for _ in range(100):
                await asyncio.sleep(0)
            with_the_first = len(begun)
        return reply()

    ask_four("openai/gpt-4o-mini", send)
    assert (with_the_first, len(begun)) == (1, 4)


def test_the_rulebook_keeps_no_prefix_and_nobody_waits_for_one() -> None:
    begun = 0
    all_begun: asyncio.Event | None = None

    async def send(sent: Mapping[str, Any]) -> Any:
        nonlocal begun, all_begun
        all_begun = all_begun or asyncio.Event()
        begun += 1
        if begun == 4:
            all_begun.set()
        await asyncio.wait_for(all_begun.wait(), 600)
        return reply()

    ask_four("rulebook/v1", send)
    assert begun == 4
