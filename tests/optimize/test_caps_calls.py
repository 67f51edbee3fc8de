"""No cap is ever passed, whatever calls cost, however they fail, and however many fly at once: the client by itself."""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))

from model_plans import model, plan_of, reply

from skillc.models.calls import Call, Message, Usage
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, CallFailed, PermanentFailure
from skillc.models.ledger import Caps, Spending
from skillc.models.pace import RetryPolicy
from skillc.models.prices import Price
from skillc.plan.schema import PricePlan

MOST_REPLY = 50
ENDS = ("whole", "whole", "whole", "unsaid", "empty", "cut", "malformed", "refused", "lost", "timeout")


class Refused(Exception):  # noqa: N818
    """A server that answers 503."""

    status_code = 503
    response = object()


@dataclass
class Scene:
    """How each attempt ends, by its number."""

    ends: list[str]
    used: list[tuple[int, int]]
    over: int | None  # the attempt that uses more than it reserved
    refused: int = 0

    def answer(self, number: int, sent: dict[str, Any]) -> Any:
        end = self.ends[number % len(self.ends)]
        prompt, completion = self.used[number % len(self.used)]
        usage = (min(prompt, 60), min(completion, MOST_REPLY))
        if number == self.over:
            return reply(usage=(10, 5000), finish=("length" if end == "cut" else "stop"))
        if end == "refused":
            self.refused += 1
            raise Refused("busy")
        if end == "lost":
            raise ConnectionError("gone")
        if end == "timeout":
            raise TimeoutError("slow")
        if end == "malformed":
            return {"choices": []}
        if end == "empty":
            return reply("", usage=usage)
        if end == "cut":
            return reply(finish="length", usage=usage)
        return reply(usage=None if end == "unsaid" or usage == (0, 0) else usage)


class Watched(Client):
    """A client whose accounts are looked at whenever anything is sent, and after each call."""

    def __init__(self, plan: Any, scene: Scene, concurrency: int, pace: int) -> None:
        self.caps = Caps.of(plan.budget)
        self.sent = 0
        self.most_at_once = 0
        self.sent_after_overuse = 0
        self._now = 0
        self._over = False
        self._scene = scene
        self._draw = random.Random(pace)
        retries = RetryPolicy(attempts=3, first=0, most=0)
        super().__init__(plan, transport=self._transport, concurrency=concurrency, retries=retries, sleep=self._no_wait)

    async def _no_wait(self, seconds: float) -> None:
        await asyncio.sleep(0)

    async def _transport(self, sent: Any) -> Any:
        number, self.sent = self.sent, self.sent + 1
        self.sent_after_overuse += self._over
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        self.look()
        try:
            for _ in range(self._draw.randrange(4)):
                await asyncio.sleep(0)
            return self._scene.answer(number, sent)
        finally:
            self._now -= 1
            self._over = self._over or number == self._scene.over

    def look(self) -> None:
        """Reservations count as if they were spent: what may be used up is never above a cap either."""
        if self._over:
            return
        for book in (self.ledger.charged, self.ledger.paid):
            total = book.spent.plus(book.reserved)
            assert self.caps.exceeded_by(total) is None, (total, self.caps)


def all_calls(client: Watched, jobs: list[tuple[str, int]], waves: int) -> list[str]:
    """Sends the jobs in waves, all of a wave at once; how each ended."""

    async def one(role: str, content: int) -> str:
        try:
            await client.complete(Call(role, "rollout", (Message("user", f"question {content}"),)))
        except BudgetReached as cap:
            return f"cap {cap.cap}"
        except PermanentFailure:
            return "stopped"
        except CallFailed as failed:
            return failed.kind
        finally:
            client.look()
        return "whole"

    async def everything() -> list[str]:
        ends: list[str] = []
        size = -(-len(jobs) // waves)
        for start in range(0, len(jobs), size):
            ends += await asyncio.gather(*[one(*job) for job in jobs[start : start + size]])
        return ends

    return asyncio.run(everything())


PRICES = st.sampled_from(
    [
        PricePlan(input=Fraction(0), output=Fraction(0)),
        PricePlan(input=Fraction(1), output=Fraction(10)),
        PricePlan(input=Fraction(1, 100), output=Fraction(40), cached=Fraction(1, 1000)),
        PricePlan(input=Fraction(3), output=Fraction(3), cached=Fraction(4)),
    ]
)
SCENES = st.builds(
    Scene,
    ends=st.lists(st.sampled_from(ENDS), min_size=1, max_size=12),
    used=st.lists(st.tuples(st.integers(0, 60), st.integers(0, MOST_REPLY)), min_size=1, max_size=7),
    over=st.none() | st.integers(0, 8),
)


@settings(max_examples=example_count(200), deadline=None)
@given(
    jobs=st.lists(st.tuples(st.sampled_from(["target", "optimizer"]), st.integers(0, 12)), min_size=1, max_size=40),
    scene=SCENES,
    prices=st.tuples(PRICES, PRICES),
    calls=st.none() | st.integers(0, 50),
    tokens=st.none() | st.integers(0, 6000),
    nano=st.none() | st.integers(0, 3_000_000),
    concurrency=st.integers(1, 64),
    waves=st.integers(1, 4),
    pace=st.integers(0, 99),
)
def test_no_budget_is_passed_by_any_price_usage_failure_retry_or_concurrency(
    jobs: list[tuple[str, int]],
    scene: Scene,
    prices: tuple[PricePlan, PricePlan],
    calls: int | None,
    tokens: int | None,
    nano: int | None,
    concurrency: int,
    waves: int,
    pace: int,
) -> None:
    models = [model(r, price=p, max_reply=MOST_REPLY) for r, p in zip(("target", "optimizer"), prices, strict=True)]
    plan = plan_of(*models, calls=calls, tokens=tokens, cost=None if nano is None else Fraction(nano, 10**9))
    client = Watched(plan, scene, concurrency, pace)
    ends = all_calls(client, jobs, waves)
    caps = client.caps
    assert client.most_at_once <= concurrency
    for book in (client.ledger.charged, client.ledger.paid):
        assert book.reserved == Spending()
        if scene.over is None or client.sent <= scene.over:
            assert caps.exceeded_by(book.spent) is None
    overused = scene.over is not None and client.sent > scene.over
    assert ("stopped" in ends) == overused
    if overused:
        assert client.sent_after_overuse == 0
    else:
        # Each logical call that got through is charged once, from cache or not; each attempt that was served is paid.
        assert client.ledger.charged.spent.calls == sum(not end.startswith("cap") for end in ends)
        assert client.ledger.paid.spent.calls == client.sent - scene.refused


def test_usage_above_a_reservation_stops_every_call_at_once_even_of_a_reply_that_was_cut() -> None:
    for end in ("whole", "cut"):
        client = Watched(plan_of(model(max_reply=MOST_REPLY)), Scene([end], [(5, 5)], over=3), 1, 0)
        ends = all_calls(client, [("target", i) for i in range(20)], 2)
        assert set(ends[3:]) == {"stopped"}
        assert client.sent == 4
        with pytest.raises(PermanentFailure, match=r"used 5,010 tokens in one call; .* were reserved"):
            asyncio.run(client.complete(Call("target", "rollout", (Message("user", "another"),))))


def test_a_reply_that_is_longer_than_declared_cannot_hide_in_a_short_prompt() -> None:
    """The tokens fit the reservation, the money doesn't: a reply's token costs fifty times a prompt's."""
    price = PricePlan(input=Fraction(1), output=Fraction(50))
    text = "word " * 400

    async def transport(sent: Any) -> Any:
        return reply(usage=(400, 1500))

    client = Client(plan_of(model(price=price, max_reply=100), cost=Fraction(1)), transport=transport)
    with pytest.raises(PermanentFailure, match=r"cost \$0\.075400 in one call; \$0\.0\d+ was reserved"):
        asyncio.run(client.complete(Call("target", "rollout", (Message("user", text),))))


def test_a_cached_reply_is_held_against_todays_price(tmp_path: Path) -> None:
    """It was free when it was stored; at today's price it costs more than a call reserves."""

    async def transport(sent: Any) -> Any:
        return reply(usage=(10, 300))

    call = Call("target", "rollout", (Message("user", "word " * 100),))
    gift = PricePlan(input=Fraction(0), output=Fraction(0))
    with Client(plan_of(model(price=gift, max_reply=100)), transport=transport, cache_folder=tmp_path) as free:
        asyncio.run(free.complete(call))
    dear = PricePlan(input=Fraction(0), output=Fraction(50))
    plan = plan_of(model(price=dear, max_reply=100), cost=Fraction(1, 100))
    with Client(plan, transport=transport, cache_folder=tmp_path) as client:
        with pytest.raises(PermanentFailure, match="was reserved"):
            asyncio.run(client.complete(call))
        assert client.ledger.charged.spent == Spending()
        assert client.ledger.charged.reserved == Spending()


def test_a_dear_tier_is_reserved_and_billed() -> None:
    """Some providers bill a long prompt, and its reply, at twice the price."""
    tiers = Price(Fraction(1), Fraction(2), Fraction(1), Fraction(2), Fraction(4), dear_above=1000)
    short, long = Usage(prompt=1000, completion=10), Usage(prompt=1001, cached=500, completion=10)
    assert tiers.cost(short) == 1020
    assert tiers.cost(long) == tiers.discounted(long) == tiers.most(1001, 10) == 2042


def test_litellms_table_knows_where_a_tier_begins() -> None:
    from skillc.models.prices import price_of

    found = price_of(model(name="gemini/gemini-2.5-pro"))
    assert found is not None
    assert found.dear_above == 200_000
    assert found.most_input > found.input
    usage = Usage(prompt=200_001, completion=100)
    assert found.cost(usage) == found.most(usage.prompt, usage.completion)
    flat = price_of(model(name="openai/gpt-4o-mini"))
    assert flat is not None
    assert flat.dear_above is None
