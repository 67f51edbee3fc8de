from __future__ import annotations

import asyncio
import threading
from fractions import Fraction
from typing import Any

import pytest
from model_plans import Scripted, model, plan_of, reply

from skillc.errors import SkillcError
from skillc.models import concurrency
from skillc.models.calls import Call, Message, Usage
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, CallFailed, PermanentFailure
from skillc.models.pace import RetryPolicy
from skillc.models.roles import resolve_roles
from skillc.plan.schema import PricePlan


def call(text: str = "hello", *, role: str = "target", stage: str = "rollout", sample: Any = 0) -> Call:
    return Call(role, stage, (Message("user", text),), sample)


class HttpError(Exception):
    def __init__(self, status: int, text: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.status_code = status
        self.litellm_response_headers = headers or {}


class Timeout(Exception):  # noqa: N818
    pass


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


def test_a_reply_with_its_usage_price_and_where_it_came_from() -> None:
    price = PricePlan(input=Fraction(1), output=Fraction(4))
    transport = Scripted(lambda sent: reply("yes", usage=(1000, 10)))
    with Client(plan_of(model(price=price)), transport=transport) as client:
        first = asyncio.run(client.complete(call()))
        again = asyncio.run(client.complete(call()))
    assert (first.text, first.finish, first.model, first.cached) == ("yes", "stop", "m", False)
    assert first.usage == Usage(prompt=1000, completion=10)
    assert first.cost == 1_040_000
    assert again.cached
    assert again.cost == first.cost
    assert len(transport.sent) == 1


def test_parameters_are_sent_as_they_are_and_the_replys_limit_is_always_said() -> None:
    transport = Scripted()
    plan = plan_of(model(parameters={"temperature": 0, "top_k": 3}, max_reply=77), model("optimizer"))
    with Client(plan, transport=transport) as client:
        asyncio.run(client.complete(call()))
    sent = transport.sent[0]
    assert (sent["temperature"], sent["top_k"], sent["max_tokens"]) == (0, 3, 77)
    assert sent["messages"] == [{"role": "user", "content": "hello"}]
    assert sent["api_base"] == "http://localhost:9"
    assert "sample" not in sent


def test_only_the_rulebook_is_told_the_sample() -> None:
    transport = Scripted()
    with Client(plan_of(model(name="rulebook/v1", base_url=None)), transport=transport) as client:
        asyncio.run(client.complete(call(sample=(1, 2))))
    assert transport.sent[0]["sample"] == [1, 2]


def test_cache_keys_tell_samples_models_parameters_endpoints_and_salts_apart() -> None:
    transport = Scripted()
    models = [
        model("a"),
        model("b", name="openai/gpt-4.1-mini"),
        model("c", parameters={"temperature": 0.5}),
        model("d", base_url="http://localhost:10"),
        model("e", base_url="http://LOCALHOST:9/"),
    ]
    with Client(plan_of(*models), transport=transport) as client:

        async def all_of_them() -> None:
            for each in (*(call(role=m.role) for m in models), call(role="a", sample=1), call("other", role="a")):
                await client.complete(each)

        asyncio.run(all_of_them())
    assert len(transport.sent) == 6  # `e` is the address of `a`, written differently


def test_one_flight_per_key() -> None:
    transport = Scripted()
    with Client(plan_of(), transport=transport) as client:

        async def many() -> list[Any]:
            return await asyncio.gather(*[client.complete(call(f"q{i % 5}")) for i in range(50)])

        replies = asyncio.run(many())
        books = client.ledger.snapshot()
    assert len(transport.sent) == 5
    assert len(replies) == 50
    assert books["charged"]["total"]["calls"] == 50  # type: ignore[index,call-overload]
    assert books["paid"]["total"]["calls"] == 5  # type: ignore[index,call-overload]


def test_a_flight_goes_on_while_anybody_waits_and_ends_when_nobody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    # The gate belongs to one event loop, so the client must not use the thread that another test has started.
    monkeypatch.setattr(concurrency, "SHARED_LOOP", concurrency.BackgroundLoop())
    gate = asyncio.Event()
    ended: list[str] = []

    async def slow(sent: Any) -> Any:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return reply()

    async def scenario() -> None:
        with Client(plan_of(), transport=slow) as client:
            first, second = (asyncio.create_task(client.complete(call())) for _ in range(2))
            await asyncio.sleep(0.01)
            first.cancel()
            await asyncio.sleep(0)
            gate.set()
            assert (await second).text == "hi"
            gate.clear()
            lone = asyncio.create_task(client.complete(call("another")))
            await asyncio.sleep(0.01)
            lone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await lone
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert client.ledger.charged.reserved.calls == 0
            assert client.ledger.paid.reserved.calls == 0
            assert client.ledger.charged.spent.calls == 1
            assert client.ledger.paid.spent.calls == 2  # the orphan stays paid for

    asyncio.run(scenario())
    assert ended == ["cancelled"]


def test_transient_failures_are_retried_and_then_told_apart() -> None:
    answers = [HttpError(429), HttpError(503), Timeout("slow"), reply("at last")]
    with Client(plan_of(), transport=Scripted(lambda sent: answers.pop(0)), sleep=no_sleep) as client:
        assert asyncio.run(client.complete(call())).text == "at last"
    always = Scripted(lambda sent: HttpError(500))
    with Client(plan_of(), transport=always, sleep=no_sleep, retries=RetryPolicy(attempts=3)) as client:
        with pytest.raises(CallFailed) as failed:
            asyncio.run(client.complete(call()))
        with pytest.raises(CallFailed):
            asyncio.run(client.complete(call()))
    assert failed.value.kind == "transient"
    assert len(always.sent) == 6  # errors are never cached


def test_retry_after_is_honoured() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    answers = [
        HttpError(429, headers={"Retry-After": "17"}),
        HttpError(429, headers={"retry-after-ms": "3000"}),
        reply(),
    ]
    with Client(plan_of(), transport=Scripted(lambda sent: answers.pop(0)), sleep=sleep) as client:
        asyncio.run(client.complete(call()))
    assert 17 <= waited[0] <= 18
    assert 3 <= waited[1] <= 4


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply("half a", finish="length"), "cut"),
        (reply(""), "empty"),
        (reply("  \n"), "empty"),
        (reply("no", finish="content_filter"), "empty"),
        ({"nonsense": 1}, "malformed"),
        ({"choices": [{"message": None}]}, "malformed"),
    ],
)
def test_replies_that_are_not_whole_have_kinds_of_their_own(answer: Any, kind: str) -> None:
    transport = Scripted(lambda sent: answer)
    with Client(plan_of(), transport=transport, sleep=no_sleep) as client, pytest.raises(CallFailed) as failed:
        asyncio.run(client.complete(call()))
    assert failed.value.kind == kind
    assert len(transport.sent) == (1 if kind != "malformed" else RetryPolicy().attempts)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_permanent_failures_name_role_model_endpoint_and_fix(status: int) -> None:
    transport = Scripted(lambda sent: HttpError(status, "no such thing"))
    with Client(plan_of(), transport=transport, sleep=no_sleep) as client, pytest.raises(PermanentFailure) as failed:
        asyncio.run(client.complete(call()))
    for word in ("`target`", "`openai/gpt-4o-mini`", "http://localhost:9", "no such thing"):
        assert word in failed.value.message
    assert failed.value.hint
    assert len(transport.sent) == 1


def test_missing_usage_is_settled_by_the_whole_reservation() -> None:
    with Client(plan_of(), transport=Scripted(lambda sent: reply(usage=None))) as client:
        completion = asyncio.run(client.complete(call("x" * 100)))
        assert completion.usage.completion == 4096
        assert completion.usage.prompt >= 100
        assert client.ledger.charged.spent.tokens == completion.usage.total


def test_usage_above_the_reservation_stops_the_run() -> None:
    transport = Scripted(lambda sent: reply(usage=(5, 10_000)))
    with Client(plan_of(), transport=transport) as client, pytest.raises(PermanentFailure, match="10,005 tokens"):
        asyncio.run(client.complete(call()))


def test_a_cap_ends_a_run_and_the_reserve_for_the_final_test_opens_it_again() -> None:
    transport = Scripted()
    with Client(plan_of(calls=3), transport=transport) as client:
        client.ledger.set_aside(client.ledger.charged.spent._replace(calls=1))

        async def scenario() -> None:
            await client.complete(call("1"))
            await client.complete(call("2"))
            with pytest.raises(BudgetReached) as reached:
                await client.complete(call("3"))
            assert reached.value.cap == "calls"
            assert client.ledger.stopped == "calls"
            client.ledger.open_reserve()
            await client.complete(call("test"))

        asyncio.run(scenario())
    assert len(transport.sent) == 3


def test_calls_are_charged_in_the_order_of_their_turns() -> None:
    """A call whose turn is early and whose prompt is late still comes first, so speed moves no stop."""
    transport = Scripted()

    async def late(client: Client, number: int) -> None:
        with client.ticket():
            await asyncio.sleep(0.02 if number == 0 else 0)
            await client.complete(call(f"q{number}"))

    async def scenario() -> list[Any]:
        with Client(plan_of(calls=2), transport=transport) as client:
            return await asyncio.gather(*[late(client, i) for i in range(4)], return_exceptions=True)

    outcomes = asyncio.run(scenario())
    assert outcomes[:2] == [None, None]
    assert all(isinstance(outcome, BudgetReached) for outcome in outcomes[2:])
    assert sorted(sent["messages"][0]["content"] for sent in transport.sent) == ["q0", "q1"]


def test_turns_hold_for_callers_on_another_loop_too() -> None:
    """After a synchronous call the client lives on a thread, and a run on a loop of its own is as ordered as before."""
    transport = Scripted()
    with Client(plan_of(calls=6), transport=transport) as client:
        assert client.complete_sync(call("first")).text == "hi"

        async def late(number: int) -> None:
            with client.ticket():
                await asyncio.sleep(0.02 if number == 0 else 0)
                await client.complete(call(f"q{number}"))

        async def scenario() -> list[Any]:
            return await asyncio.gather(*[late(i) for i in range(10)], return_exceptions=True)

        outcomes = asyncio.run(scenario())
    assert outcomes[:5] == [None] * 5
    assert all(isinstance(outcome, BudgetReached) for outcome in outcomes[5:])


def test_a_turn_that_makes_no_call_lets_the_next_one_pass() -> None:
    async def scenario() -> str:
        with Client(plan_of(), transport=Scripted()) as client:
            with client.ticket():
                pass
            with client.ticket(), client.ticket():
                pass
            return (await client.complete(call())).text

    assert asyncio.run(scenario()) == "hi"


def test_concurrency_bounds_the_attempts_in_flight() -> None:
    transport = Scripted()
    with Client(plan_of(), transport=transport, concurrency=3) as client:

        async def many() -> None:
            await asyncio.gather(*[client.complete(call(str(i))) for i in range(20)])

        asyncio.run(many())
    assert transport.most_at_once == 3


def test_one_client_serves_loops_and_threads_one_after_another_and_at_once() -> None:
    transport = Scripted()
    with Client(plan_of(), transport=transport) as client:
        assert asyncio.run(client.complete(call("1"))).text == "hi"
        assert asyncio.run(client.complete(call("2"))).text == "hi"
        texts: list[str] = []
        threads = [
            threading.Thread(target=lambda i=i: texts.append(client.complete_sync(call(f"t{i % 3}")).text))
            for i in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == ["hi"] * 12
        assert asyncio.run(client.complete(call("3"))).text == "hi"
    assert len(transport.sent) == 6


def test_a_synchronous_call_on_the_answering_loop_is_an_error_and_no_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "SHARED_LOOP", concurrency.BackgroundLoop())

    async def scenario() -> None:
        with Client(plan_of(), transport=Scripted()) as client:
            await client.complete(call())
            with pytest.raises(RuntimeError, match="acall"):
                client.complete_sync(call())

    asyncio.run(scenario())


def test_an_unknown_role_says_how_to_declare_it() -> None:
    with Client(plan_of(), transport=Scripted()) as client, pytest.raises(SkillcError, match="no model `judge`"):
        asyncio.run(client.complete(call(role="judge")))


def test_a_missing_key_is_an_error_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEAM_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SkillcError, match="`TEAM_KEY` is not set"):
        resolve_roles(plan_of(model(key_env="TEAM_KEY")))
    with pytest.raises(SkillcError, match="`OPENAI_API_KEY` is not set"):
        resolve_roles(plan_of(model(base_url=None)))
    resolve_roles(plan_of(model(key_env="TEAM_KEY")), offline=True)
    with pytest.raises(SkillcError, match="has no server address"):
        resolve_roles(plan_of(model(name="hosted_vllm/Qwen/Qwen3.5-4B", base_url=None)))


def test_a_cost_cap_needs_a_known_price() -> None:
    with pytest.raises(SkillcError, match="price of `openai/never-heard-of`") as missing:
        resolve_roles(plan_of(model(name="openai/never-heard-of"), cost=Fraction(1)))
    assert missing.value.hint
    resolve_roles(plan_of(model(name="openai/never-heard-of")))


def test_a_key_for_a_providers_own_address_never_goes_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-1234567890")
    transport = Scripted()
    with Client(plan_of(model(base_url="http://elsewhere.example")), transport=transport) as client:
        asyncio.run(client.complete(call()))
    assert "planted" not in str(transport.sent)
