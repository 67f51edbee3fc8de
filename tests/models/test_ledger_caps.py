from __future__ import annotations

import asyncio
import random
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_plans import Scripted, model, plan_of, reply
from thorough import example_count

from skillc.budget.bounds import Bounds
from skillc.budget.spend import Spend
from skillc.errors import SkillcError
from skillc.gates.terms import CallTerm, WordTerm
from skillc.language.loop import BudgetPlan
from skillc.models.calls import Call, Message, Usage
from skillc.models.client import Client
from skillc.models.failures import BudgetReached
from skillc.models.ledger import Account, Caps, ClosingReserve, Ledger, Spending
from skillc.plan.schema import PricePlan

SIZES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), min_size=1, max_size=30)
CAPS = st.none() | st.integers(0, 3000)
WHERE = ("target", "rollout")


def run_calls(
    sizes: list[tuple[int, int]], caps: dict[str, Any], pace: int, concurrency: int
) -> tuple[Client, list[bool]]:
    """Sends all calls at once; `pace` shuffles how long each takes."""
    draw = random.Random(pace)
    turns = [draw.randrange(4) for _ in sizes]
    high = {"calls": 0, "tokens": 0}

    async def transport(sent: Any) -> Any:
        number = int(sent["messages"][0]["content"].split()[0])
        for _ in range(turns[number]):
            await asyncio.sleep(0)
        prompt, completion = sizes[number]
        return reply(usage=(min(prompt, 60), completion) if prompt or completion else (1, 0))

    price = PricePlan(input=Fraction(1, 100), output=Fraction(1, 10))
    plan = plan_of(model(price=price, max_reply=40), **caps)
    client = Client(plan, transport=transport, concurrency=concurrency)

    async def one(number: int) -> bool:
        try:
            with client.ticket():
                for _ in range(turns[-1 - number]):
                    await asyncio.sleep(0)
                await client.complete(Call("target", "rollout", (Message("user", f"{number} hello"),)))
        except BudgetReached:
            return False
        finally:
            for account in (client.ledger.charged, client.ledger.paid):
                total = account.spent.plus(account.reserved)
                high["calls"] = max(high["calls"], total.calls)
                high["tokens"] = max(high["tokens"], total.tokens)
        return True

    async def everything() -> list[bool]:
        return await asyncio.gather(*[one(i) for i in range(len(sizes))])

    done = asyncio.run(everything())
    client.close()
    assert caps.get("calls") is None or high["calls"] <= caps["calls"]
    assert caps.get("tokens") is None or high["tokens"] <= caps["tokens"]
    return client, done


@settings(max_examples=example_count(60), deadline=None)
@given(
    sizes=SIZES,
    calls=st.none() | st.integers(0, 30),
    tokens=CAPS,
    cost=st.none() | st.integers(0, 300),
    pace=st.integers(0, 9),
)
def test_a_declared_cap_is_never_passed_not_by_one_call(
    sizes: list[tuple[int, int]], calls: int | None, tokens: int | None, cost: int | None, pace: int
) -> None:
    dollars = None if cost is None else Fraction(cost, 10_000_000)
    client, _ = run_calls(sizes, {"calls": calls, "tokens": tokens, "cost": dollars}, pace, 5)
    caps = Caps.of(BudgetPlan(calls=calls, tokens=tokens, cost=dollars))
    for book in (client.ledger.charged, client.ledger.paid):
        assert caps.exceeded_by(book.spent) is None
        assert book.reserved == Spending()


@settings(max_examples=example_count(30), deadline=None)
@given(sizes=SIZES, tokens=st.integers(0, 3000), paces=st.tuples(st.integers(0, 99), st.integers(0, 99)))
def test_where_a_cap_stops_depends_on_the_order_of_the_plan_alone(
    sizes: list[tuple[int, int]], tokens: int, paces: tuple[int, int]
) -> None:
    first, done = run_calls(sizes, {"tokens": tokens}, paces[0], 3)
    second, again = run_calls(sizes, {"tokens": tokens}, paces[1], 7)
    assert done == again
    assert done == sorted(done, reverse=True)
    assert first.ledger.snapshot()["charged"] == second.ledger.snapshot()["charged"]


def test_the_head_of_the_queue_waits_for_what_is_in_flight_and_then_closes_the_account() -> None:
    async def scenario() -> None:
        account = Account(Caps(tokens=100))
        await account.reserve(Spending(1, 60, 0))
        head = account.ask(Spending(1, 60, 0))
        small = account.ask(Spending(1, 1, 0))
        assert not head.done()
        assert not small.done()  # nobody overtakes the head
        account.settle(WHERE, Spending(1, 60, 0), Usage(prompt=10), 0)
        assert head.done() and small.done()
        third = account.ask(Spending(1, 95, 0))
        account.settle(WHERE, Spending(1, 60, 0), Usage(prompt=60), 0)
        account.settle(WHERE, Spending(1, 1, 0), Usage(prompt=1), 0)
        assert isinstance(third.exception(), BudgetReached)
        assert account.closed_by == "tokens"

    asyncio.run(scenario())


def test_a_caller_that_gives_up_holds_nothing() -> None:
    async def scenario() -> None:
        account = Account(Caps(calls=1))
        await account.reserve(Spending(1))
        waiting = asyncio.create_task(account.reserve(Spending(1)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        account.release(Spending(1))
        await account.reserve(Spending(1))
        assert account.reserved == Spending(1)

    asyncio.run(scenario())


def test_the_snapshot_is_json_by_role_and_stage() -> None:
    import json

    client, _ = run_calls([(10, 5), (10, 5)], {}, 0, 2)
    books = json.loads(json.dumps(client.ledger.snapshot()))
    assert books["charged"]["lines"] == [
        {
            "role": "target",
            "stage": "rollout",
            "calls": 2,
            "prompt": 20,
            "cached": 0,
            "completion": 10,
            "reasoning": 0,
            "tokens": 30,
            "cost_nano": 2 * (10 * 10 + 5 * 100),
            "bounds": {"calls": 0, "tokens": 0},
        }
    ]
    assert books["stopped"] is None


def reserved(expected: int, taken: int, tokens: int) -> Spending:
    """What is set aside for a test that is estimated at twice its baseline of so many calls of 100 tokens."""
    stages = [
        SimpleNamespace(name=name, bound=SimpleNamespace(estimate=Spend(calls, 80 * calls, 20 * calls, Fraction(0))))
        for name, calls in (("baseline", expected), ("final test", 2 * expected))
    ]
    ledger = Ledger(BudgetPlan(calls=1000))
    for _ in range(taken):
        for account in (ledger.charged, ledger.paid):
            account.settle(("target", "baseline"), Spending(), Usage(prompt=tokens - 20, completion=20), 0)
    ClosingReserve(ledger, cast(Bounds, SimpleNamespace(stages=stages, held={}, judged={}))).set_aside()
    return ledger.charged._aside


def test_the_reserve_for_the_test_grows_with_the_turns_and_tokens_that_the_baseline_took() -> None:
    assert reserved(expected=40, taken=40, tokens=100)[:2] == (80, 8_000)
    assert reserved(expected=40, taken=60, tokens=100)[:2] == (120, 12_000)
    assert reserved(expected=40, taken=60, tokens=200)[:2] == (120, 24_000)
    # A baseline that is cut short says nothing about turns.
    assert reserved(expected=40, taken=20, tokens=200)[:2] == (80, 16_000)


def test_a_cap_on_judges_admits_only_so_many_of_their_calls_and_needs_their_price() -> None:
    plan = plan_of(model(), model("optimizer"), model("referee", "openai/never-heard-of"), judge_calls=2)

    async def ask(client: Client, judges: bool) -> None:
        message = (Message("user", str(len(asked))),)
        asked.append(1)
        await client.complete(Call("referee", "gate", message, judges=judges))

    asked: list[int] = []
    with Client(plan, transport=Scripted()) as client:
        for judges in (True, False, True, False):
            asyncio.run(ask(client, judges))
        assert client.ledger.charged.spent.judge_calls == 2
        with pytest.raises(BudgetReached, match="cap on judges' calls"):
            asyncio.run(ask(client, True))
    metric = plan.metrics[0].model_copy(
        update={"term": CallTerm("judge", (), (("model", WordTerm("referee")),))},
    )
    capped = plan.model_copy(update={"metrics": (metric,), "budget": BudgetPlan(judge_cost=Fraction(1))})
    with pytest.raises(SkillcError, match=r"the price of `openai/never-heard-of` \(model `referee`\) is not known"):
        Client(capped, transport=Scripted())
