"""A model's address that cannot be reached: one probe at a time, at no cost, for as long as the role waits."""

from __future__ import annotations

import asyncio
import random
from fractions import Fraction
from typing import Any

import pytest
import virtual_time
from model_plans import model, plan_of, reply
from virtual_time import Refusal

from skillc.models import concurrency
from skillc.models.calls import Call, Completion, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed, EndpointUnreachable, WireFailure
from skillc.models.pace import RetryPolicy
from skillc.plan.schema import PacingPlan

GONE = WireFailure("unreachable", "no connection to `localhost`: connection refused")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    random.seed(7)
    monkeypatch.setattr(concurrency, "SHARED_LOOP", concurrency.BackgroundLoop())


class Gone:
    """A transport that reaches nobody between two moments."""

    def __init__(self, begins: float, ends: float) -> None:
        self.begins, self.ends = begins, ends
        self.served = 0
        self.missed: list[float] = []
        self.most = self._probing = 0

    async def __call__(self, sent: Any) -> Any:
        now = asyncio.get_running_loop().time()
        if self.begins <= now < self.ends:
            self.missed.append(now)
            self._probing += 1
            self.most = max(self.most, self._probing if now > self.begins + 1 else 0)
            await asyncio.sleep(0.2)
            self._probing -= 1
            raise GONE
        await asyncio.sleep(0.1)
        self.served += 1
        return reply()


def client_of(transport: Any, down: int = 60, **options: Any) -> tuple[Client, list[str]]:
    plan = plan_of(model(pacing=PacingPlan(down=Fraction(down))), model("optimizer", base_url="http://other:9"))
    client, notes = Client(plan, transport=transport, **options), list[str]()
    client.pacing.report = notes.append
    return client, notes


def call(text: object, role: str = "target") -> Call:
    return Call(role, "rollout", (Message("user", str(text)),))


async def asked(client: Client, count: int, first: int = 0) -> list[Any]:
    jobs = [client.complete(call(number)) for number in range(first, first + count)]
    return await asyncio.gather(*jobs, return_exceptions=True)


async def twice(client: Client, server: Gone, count: int) -> list[Any]:
    """Some calls that are served, and as many when the server is gone."""
    await asked(client, 4)
    await asyncio.sleep(max(0.0, server.begins - asyncio.get_running_loop().time()))
    return await asked(client, count, 100)


def test_calls_wait_behind_one_probe_and_pay_nothing_for_it() -> None:
    server = Gone(1010, 1040)
    client, notes = client_of(server)
    ends, seconds = virtual_time.run(twice(client, server, 40))
    assert all(isinstance(end, Completion) for end in ends)
    assert server.most == 1
    # 30 s: the calls that were sent at once, then a probe after 1, 2, 4, 8, 10 s or less.
    assert len([moment for moment in server.missed if moment > 1011]) <= 8
    spent = client.ledger.snapshot()
    assert [spent[book]["total"]["calls"] for book in ("charged", "paid")] == [44, 44]  # type: ignore
    assert seconds < 55
    assert notes[0] == (
        "model `target` (`openai/gpt-4o-mini` at `http://localhost:9`) cannot be reached: no connection to "
        "`localhost`: connection refused; its calls wait for up to 1 min"
    )
    assert notes[1].startswith("model `target` (`openai/gpt-4o-mini` at `http://localhost:9`) answers again after 3")
    assert len(notes) == 2


def test_an_endpoint_that_stays_away_ends_every_call_with_one_error() -> None:
    server = Gone(1010, 10**9)
    client, notes = client_of(server)
    ends, seconds = virtual_time.run(twice(client, server, 40))
    assert all(isinstance(end, EndpointUnreachable) for end in ends), ends
    assert 70 <= seconds < 72
    assert client.lost is not None
    assert client.lost.status == 3
    assert client.lost.message == (
        "model `target` (`openai/gpt-4o-mini` at `http://localhost:9`) could not be reached for 1 min: no connection "
        "to `localhost`: connection refused"
    )
    assert "`down = 2 min`" in str(client.lost.hint)
    assert client.ledger.paid.reserved.calls == client.ledger.charged.reserved.calls == 0
    assert len(notes) == 1


def test_one_that_never_answered_has_not_gone_away() -> None:
    server = Gone(0, 10**9)
    client, notes = client_of(server)
    ends, seconds = virtual_time.run(asked(client, 3))
    assert all(isinstance(end, CallFailed) for end in ends)
    assert not notes
    assert client.lost is None
    assert seconds < 60


@pytest.mark.parametrize("problem", [Refusal(429, {}), Refusal(503, {}), Refusal(500, {}), TimeoutError("slow")])
def test_a_busy_or_slow_server_is_not_away(problem: Exception) -> None:
    seen = 0

    async def transport(sent: Any) -> Any:
        nonlocal seen
        seen += 1
        if 4 < seen < 20:
            raise problem
        return reply()

    client, notes = client_of(transport)
    virtual_time.run(asked(client, 30))
    assert not notes
    assert client.lost is None


def test_one_call_that_reaches_nobody_where_others_do_gives_up_alone() -> None:
    async def transport(sent: Any) -> Any:
        await asyncio.sleep(0.1)
        if sent["messages"][-1]["content"] == "7":
            raise GONE
        return reply()

    async def main(client: Client) -> list[Any]:
        await asked(client, 4, 200)
        others = asyncio.create_task(keep_asking(client))
        ends = await asked(client, 10)
        others.cancel()
        return ends

    async def keep_asking(client: Client) -> None:
        for number in range(10**6):
            await client.complete(call(1000 + number))

    client, _ = client_of(transport, retries=RetryPolicy(3))
    ends, _ = virtual_time.run(main(client))
    assert [isinstance(end, CallFailed) for end in ends] == [number == 7 for number in range(10)]


def test_another_endpoint_is_not_held_up() -> None:
    async def transport(sent: Any) -> Any:
        now = asyncio.get_running_loop().time()
        if sent["api_base"] == "http://localhost:9" and 1001 < now < 1030:
            raise GONE
        return reply()

    async def main(client: Client) -> tuple[list[Any], float]:
        await asked(client, 2)
        await asyncio.sleep(2)
        slow = asyncio.create_task(asked(client, 4, 10))
        before = asyncio.get_running_loop().time()
        await asyncio.gather(*[client.complete(call(number, "optimizer")) for number in range(20)])
        passed = asyncio.get_running_loop().time() - before
        return await slow, passed

    client, _ = client_of(transport)
    (ends, passed), _ = virtual_time.run(main(client))
    assert all(isinstance(end, Completion) for end in ends)
    assert passed < 1
