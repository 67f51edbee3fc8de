"""How fast endpoints are called: whole clients in virtual time against servers that admit only so much."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from email.utils import formatdate
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import virtual_time
from hypothesis import given, settings
from hypothesis import strategies as st
from model_plans import Scripted, model, plan_of, reply
from thorough import example_count
from virtual_time import (
    Admission,
    Refusal,
    Server,
    Told,
    bucket,
    milliseconds,
    nothing,
    sliding,
    whole_seconds,
    windows,
)

from skillc.models import concurrency
from skillc.models.calls import Call, Completion, Message
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, CallFailed, outcome_of
from skillc.models.pace import START, Pace, Quota, RetryPolicy
from skillc.models.pacing import prefetching
from skillc.plan.schema import PacingPlan
from skillc.store import RunStore


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same jitter each time, and no loop of an earlier test."""
    random.seed(7)
    monkeypatch.setattr(concurrency, "SHARED_LOOP", concurrency.BackgroundLoop())


def call(text: object, role: str = "target") -> Call:
    return Call(role, "rollout", (Message("user", str(text)),))


async def asked(client: Client, count: int, at_once: int = 10**6, role: str = "target") -> list[Any]:
    """So many calls, at most so many of them at once; what each ended with."""
    free = asyncio.Semaphore(at_once)

    async def one(number: int) -> Completion:
        async with free:
            return await client.complete(call(number, role))

    return await asyncio.gather(*[one(number) for number in range(count)], return_exceptions=True)


def measured(ends: list[Any]) -> int:
    return sum(isinstance(end, Completion) for end in ends)


TEN: dict[str, Callable[[], Admission]] = {
    "one at a time": lambda: bucket(10, 1),
    "a second's worth": lambda: bucket(10, 10),
    "by the clock's second": lambda: windows(10, 1),
    "refusals count too": lambda: sliding(10, 1, refusals_count=True),
}


@pytest.mark.parametrize("told", [nothing, whole_seconds, milliseconds])
@pytest.mark.parametrize("at_once", [1, 32, 256])
@pytest.mark.parametrize("admission", TEN)
@pytest.mark.quick_cases(12)
def test_a_server_of_ten_requests_a_second_measures_every_call(admission: str, at_once: int, told: Told) -> None:
    server = Server(TEN[admission](), told)
    with Client(plan_of(), transport=server) as client:
        ends, seconds = virtual_time.run(asked(client, 600, at_once))
    assert measured(ends) == 600
    began = min(server.served)
    late = [moment for moment in server.served if moment > began + seconds / 2]
    assert len(late) >= 0.8 * 10 * seconds / 2
    refused = [moment for moment in server.refused if moment > began + 3]
    assert len(refused) < 0.05 * len(server.served)


@pytest.mark.parametrize("told", [nothing, whole_seconds])
@pytest.mark.parametrize(("room", "seconds"), [(16, 1.0), (64, 10.0)])
def test_a_server_with_little_room_is_kept_nearly_full_and_seldom_overrun(
    room: int, seconds: float, told: Told
) -> None:
    server = Server(told=told, room=room, status=503, seconds=lambda: random.uniform(0.5, 1.5) * seconds)
    with Client(plan_of(), transport=server) as client:
        ends, took = virtual_time.run(asked(client, 2000))
    assert measured(ends) == 2000
    assert 2000 * seconds / room / took > 0.6
    assert len(server.refused) < 0.02 * 2000


def test_a_slow_server_without_a_limit_gets_as_many_as_may_be_in_flight() -> None:
    server = Server(seconds=5)
    with Client(plan_of(), transport=server) as client:
        ends, seconds = virtual_time.run(asked(client, 2560))
    assert measured(ends) == 2560
    assert server.most == 256
    assert seconds <= 5 * (2560 / 256 + 5)


def test_a_server_that_is_down_for_minutes_and_recovers_loses_no_call() -> None:
    def down(now: float) -> float | None:
        return 1.0 if now < 1300 else None

    server = Server(down, status=503)
    with Client(plan_of(), transport=server) as client:
        ends, seconds = virtual_time.run(asked(client, 100))
    assert measured(ends) == 100
    assert 300 <= seconds < 400
    assert len(server.refused) <= 2 * START + 16
    assert client.ledger.paid.spent.calls == 100


@pytest.mark.parametrize("told", [nothing, whole_seconds])
def test_an_endpoint_that_lets_nothing_through_is_given_up_for_all_that_wait(told: Told) -> None:
    server = Server(lambda now: 1.0, told, status=529)

    async def scenario() -> tuple[list[Any], int, list[Any]]:
        first = await asked(client, 100)
        so_far = len(server.refused)
        return first, so_far, await asked(client, 10)

    with Client(plan_of(), transport=server) as client:
        (first, so_far, then), seconds = virtual_time.run(scenario())
    assert all(isinstance(end, CallFailed) and end.kind == "transient" for end in (*first, *then))
    assert "slow down" in str(first[-1])
    assert so_far <= 2 * START + 30
    assert len(server.refused) == so_far + 1  # one probe speaks for all ten
    assert 400 < seconds < 1000
    assert client.ledger.paid.reserved.calls == 0


def test_a_server_that_asks_for_more_patience_than_there_is_is_given_up_at_once() -> None:
    server = Server(lambda now: 3600.0, whole_seconds)
    with Client(plan_of(), transport=server) as client:
        ends, seconds = virtual_time.run(asked(client, 50))
    assert not measured(ends)
    assert len(server.refused) <= START
    assert seconds < 1


def test_one_call_that_is_always_refused_fails_alone() -> None:
    server = Server()

    async def picky(sent: Any) -> Any:
        if sent["messages"][0]["content"] == "13":
            raise Refusal(503, {})
        return await server(sent)

    with Client(plan_of(), transport=picky, retries=RetryPolicy(refusals=5)) as client:
        ends, _ = virtual_time.run(asked(client, 100))
    assert measured(ends) == 99
    assert isinstance(ends[13], CallFailed)


def test_a_call_that_is_refused_while_others_are_let_through_gives_up_after_so_many_times() -> None:
    async def picky(sent: Any) -> Any:
        if sent["messages"][0]["content"] == "never":
            raise Refusal(503, {})
        return reply()

    async def scenario() -> Any:
        never = asyncio.ensure_future(client.complete(call("never")))
        for number in range(10**6):
            if never.done():
                break
            await client.complete(call(number))
        return never.exception()

    with Client(plan_of(), transport=picky, retries=RetryPolicy(refusals=5)) as client:
        problem, seconds = virtual_time.run(scenario())
    assert isinstance(problem, CallFailed)
    assert seconds < 60


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "30"},
        {"retry-after-ms": "30000"},
        {"Retry-After": "DATE"},
    ],
)
def test_what_a_refusal_asks_for_pauses_the_endpoint_for_all_its_roles_and_no_other(headers: dict[str, str]) -> None:
    sent: list[tuple[str, float]] = []
    headers = {
        name: value.replace("DATE", formatdate(time.time() + 31, usegmt=True)) for name, value in headers.items()
    }

    async def transport(arguments: Any) -> Any:
        text = arguments["messages"][0]["content"]
        sent.append((text, asyncio.get_running_loop().time() - 1000))
        if len(sent) == 1:
            raise Refusal(429, headers)
        return reply()

    async def scenario() -> None:
        first = asyncio.ensure_future(client.complete(call("a")))
        await asyncio.sleep(1)
        others = [client.complete(call("b", "optimizer")), client.complete(call("c", "judge"))]
        await asyncio.gather(first, *others)

    elsewhere = model("judge", base_url="http://localhost:10")
    with Client(plan_of(model(), model("optimizer"), elsewhere), transport=transport) as client:
        virtual_time.run(scenario())
    moments = dict(sent)
    assert moments["c"] == 1
    assert 29 <= moments["a"] <= 34
    assert sorted(text for text, _ in sent) == ["a", "a", "b", "c"]
    assert [text for text, _ in sent[:2]] == ["a", "c"]


def test_a_sign_of_overload_halves_the_concurrency_once_per_window() -> None:
    pace = Pace(256, RetryPolicy())
    sent = [pace.sent(0.0) for _ in range(START)]
    for left, epoch in zip(range(START, 0, -1), sent, strict=True):
        pace.strained(epoch, left)
    assert pace.limit == START // 2
    again = [pace.sent(1.0) for _ in range(START // 2)]
    for epoch in again:
        pace.served(epoch, pace.limit)
    assert pace.limit > START // 2  # it doubles to near where it was
    assert pace.limit < START
    before = pace.limit
    pace.refused(pace.sent(2.0), 2.0, before, 3.0)
    assert pace.limit == before // 2
    assert pace.wait(2.0, 0) == pytest.approx(3.0, abs=0.3)
    assert pace.wait(2.0, 100) == math.inf


def test_ends_that_tell_nothing_of_the_endpoint_change_nothing() -> None:
    answers: list[Any] = [ValueError("no"), {"choices": []}, reply("")]
    transport = Scripted(lambda sent: answers.pop() if answers else reply())
    with Client(plan_of(), transport=transport) as client:
        virtual_time.run(asked(client, 3))
        virtual_time.run(asked(client, 3 + START))
        assert START <= transport.most_at_once <= START + 2


@pytest.mark.parametrize("problem", [TimeoutError("slow"), ConnectionError("reset"), Refusal(500, {})])
def test_other_transient_failures_use_up_attempts(problem: Exception) -> None:
    transport = Scripted(lambda sent: problem)
    with Client(plan_of(), transport=transport, retries=RetryPolicy(attempts=4)) as client:
        ends, _ = virtual_time.run(asked(client, 1))
    assert isinstance(ends[0], CallFailed)
    assert len(transport.sent) == 4


@pytest.mark.parametrize(
    ("problem", "end"),
    [
        (Refusal(429, {}), "refused"),
        (Refusal(503, {}), "refused"),
        (Refusal(529, {}), "refused"),
        (Refusal(500, {}, "overloaded_error: Overloaded"), "refused"),
        (Refusal(500, {}), "answered"),
        (Refusal(429, {}, "insufficient_quota"), "answered"),
        (Refusal(401, {}), "answered"),
        (ConnectionRefusedError("nobody"), "unreachable"),
        (TimeoutError("slow"), "strained"),
        (ConnectionResetError("gone"), "strained"),
        (ValueError("no"), "other"),
    ],
)
def test_what_a_failure_tells_of_its_endpoint(problem: Exception, end: str) -> None:
    assert outcome_of(problem) == end


def test_work_ahead_of_need_waits_behind_all_else_also_where_an_endpoint_is_paused() -> None:
    sent: list[str] = []

    async def transport(arguments: Any) -> Any:
        sent.append(arguments["messages"][0]["content"])
        if len(sent) == 1:
            raise Refusal(429, {"retry-after": "5"})
        await asyncio.sleep(1)
        return reply()

    async def scenario() -> None:
        first = asyncio.ensure_future(client.complete(call("first")))
        await asyncio.sleep(1)
        with prefetching():
            early = asyncio.ensure_future(asked(client, 5))
        await asyncio.sleep(1)
        await asyncio.gather(first, early, *[client.complete(call(f"need {i}")) for i in range(5)])

    with Client(plan_of(), transport=transport) as client:
        virtual_time.run(scenario())
    assert [text.startswith("need") or text == "first" for text in sent[1:]] == [True] * 6 + [False] * 5


def test_declared_requests_a_minute_are_even_and_bind_their_role_alone() -> None:
    sent: dict[str, list[float]] = {"target": [], "optimizer": []}

    async def transport(arguments: Any) -> Any:
        role = "optimizer" if arguments["model"].endswith("mini-2") else "target"
        sent[role].append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.2)
        return reply()

    async def scenario() -> None:
        await asyncio.gather(asked(client, 300), asked(client, 300, role="optimizer"))

    plan = plan_of(model(pacing=PacingPlan(rpm=120)), model("optimizer", name="openai/gpt-4o-mini-2"))
    with Client(plan, transport=transport) as client:
        _, seconds = virtual_time.run(scenario())
    assert seconds == pytest.approx(300 / 2, rel=0.05)
    gaps = [later - earlier for earlier, later in zip(sent["target"], sent["target"][1:], strict=False)]
    assert min(gaps) > 0.49
    assert sent["optimizer"][-1] - sent["optimizer"][0] < 30


def test_declared_tokens_a_minute_count_reservations_first_and_usage_afterwards() -> None:
    server = Server(seconds=0.01)
    plan = plan_of(model(pacing=PacingPlan(tpm=60_000), max_reply=1000))

    async def transport(arguments: Any) -> Any:
        await server(arguments)
        return reply(usage=(100, 400))

    with Client(plan, transport=transport) as client:
        ends, seconds = virtual_time.run(asked(client, 600))
    assert measured(ends) == 600
    assert 300 * 0.9 < seconds < 300 * 1.2
    for moment in server.served:
        assert sum(500 for other in server.served if moment <= other < moment + 60) <= 60_000


@given(
    rpm=st.integers(1, 5000),
    tpm=st.integers(1000, 10**6),
    sends=st.lists(st.tuples(st.sampled_from([0.0, 0.0, 0.1, 7.0, 90.0]), st.floats(0, 1)), min_size=1, max_size=80),
)
def test_no_minute_takes_more_than_the_declared_requests_and_tokens(
    rpm: int, tpm: int, sends: list[tuple[float, float]]
) -> None:
    quota = Quota(PacingPlan(rpm=rpm, tpm=tpm))
    now, sent = 0.0, deque[tuple[float, int]]()
    for gap, size in sends:
        now += gap
        tokens = int(size * tpm / 20)
        now += quota.wait(now, 0, tokens)
        assert quota.wait(now, 0, tokens) <= 1e-6
        quota.sent(now, tokens)
        sent.append((now, tokens))
        in_minute = [each for when, each in sent if when > now - 59.99]
        assert len(in_minute) <= rpm
        assert sum(in_minute) <= tpm * 1.0001


def test_a_declared_concurrency_bounds_its_role_and_lifts_the_clients() -> None:
    server = Server(seconds=1)
    plan = plan_of(model(pacing=PacingPlan(concurrency=300)), model("optimizer", pacing=PacingPlan(concurrency=3)))
    with Client(plan, transport=server, concurrency=8) as client:
        virtual_time.run(asked(client, 40, role="optimizer"))
        assert server.most == 3
        virtual_time.run(asked(client, 3000))
        assert server.most == 300


def test_a_held_endpoint_sends_nothing_until_it_is_freed_and_is_as_new_then() -> None:
    server = Server(seconds=1)

    async def scenario() -> tuple[int, int, list[Any]]:
        calls = asyncio.ensure_future(asked(client, 100))
        await asyncio.sleep(0.5)
        client.hold("target")
        await asyncio.sleep(100)
        held = len(server.served)
        other = len(await asked(client, 5, role="optimizer"))
        client.free("target")
        client.hold("optimizer")
        return held, other, await calls

    plan = plan_of(model(), model("optimizer", base_url="http://localhost:10"))
    with Client(plan, transport=server) as client:
        (held, other, ends), _ = virtual_time.run(scenario())
        assert (held, other, measured(ends)) == (START, 5, 100)


def test_holding_works_from_another_thread_and_before_any_loop() -> None:
    transport = Scripted()
    with Client(plan_of(), transport=transport) as client:
        client.hold("target")
        texts: list[str] = []
        asking = threading.Thread(target=lambda: texts.append(client.complete_sync(call("x")).text))
        asking.start()
        asking.join(0.2)
        assert not texts
        assert not transport.sent
        client.free("target")
        asking.join(10)
    assert texts == ["hi"]


def test_what_was_learned_of_an_endpoint_outlives_the_event_loop() -> None:
    server = Server(bucket(10, 1), whole_seconds)
    with Client(plan_of(), transport=server) as client:
        virtual_time.run(asked(client, 200))
        before = len(server.refused)
        server.admits = bucket(10, 1)

        async def more() -> list[Any]:
            return await asyncio.gather(*[client.complete(call(f"more {i}")) for i in range(50)])

        virtual_time.run(more())
        assert len(server.refused) - before <= 3


def test_refused_attempts_count_for_no_cap_and_served_ones_do(tmp_path: Path) -> None:
    server = Server(bucket(10, 1))
    with closing(RunStore(tmp_path / "run.db")) as store, Client(plan_of(calls=100), transport=server) as client:
        client.bind_store(store, "")
        ends, _ = virtual_time.run(asked(client, 101))
    assert measured(ends) == 100
    assert sum(isinstance(end, BudgetReached) for end in ends) == 1
    assert server.refused
    with closing(RunStore(tmp_path / "run.db")) as store, Client(plan_of(calls=200), transport=server) as again:
        assert sum(attempt.state == "refused" for attempt in store.attempts()) == len(server.refused)
        again.bind_store(store, "")
        assert again.ledger.paid.spent.calls == 100
        assert again.ledger.paid.reserved.calls == 0


@settings(max_examples=example_count(120))
@given(
    seed=st.integers(0, 10**6),
    limit=st.integers(1, 12),
    declared=st.none() | st.integers(1, 4),
    patience=st.sampled_from([1.0, 600.0]),
)
def test_never_more_in_flight_than_the_limit_and_never_a_lost_slot_whatever_is_cancelled(
    seed: int, limit: int, declared: int | None, patience: float
) -> None:
    draw = random.Random(seed)
    flying: dict[str, int] = {"a": 0, "b": 0}
    most: dict[str, int] = {"a": 0, "b": 0, "all": 0}

    async def transport(arguments: Any) -> Any:
        role = str(arguments["messages"][0]["content"])[0]
        flying[role] += 1
        most[role] = max(most[role], flying[role])
        most["all"] = max(most["all"], sum(flying.values()))
        try:
            await asyncio.sleep(draw.choice([0, 0.01, 1]))
            luck = draw.random()
            if luck < 0.2:
                raise Refusal(429, draw.choice([{}, {"retry-after-ms": "700"}]))
            if luck < 0.3:
                raise TimeoutError("slow")
            if luck < 0.35:
                raise Refusal(500, {})
            return reply()
        finally:
            flying[role] -= 1

    async def scenario() -> None:
        tasks = []
        for number in range(60):
            with prefetching() if draw.random() < 0.3 else contextlib.nullcontext():
                tasks.append(
                    asyncio.ensure_future(client.complete(call(f"{(role := draw.choice('ab'))}{number}", role)))
                )
            if draw.random() < 0.3:
                draw.choice(tasks).cancel()
            if draw.random() < 0.1:
                client.hold("a")
            if draw.random() < 0.3:
                client.free("a")
            await asyncio.sleep(draw.choice([0, 0, 0.005, 0.3]))
        client.free("a")
        await asyncio.gather(*tasks, return_exceptions=True)
        queue = client.pacing.queue("a")
        assert queue.in_flight == 0
        for account in (client.ledger.charged, client.ledger.paid):
            assert account.reserved.calls == account.reserved.tokens == 0

    plan = plan_of(model("a", pacing=PacingPlan(concurrency=declared)), model("b"), cost=Fraction(10))
    with Client(plan, transport=transport, concurrency=limit, retries=RetryPolicy(patience=patience)) as client:
        virtual_time.run(scenario())
    assert most["all"] <= max(limit, declared or 0)
    assert declared is None or most["a"] <= declared


def test_a_real_server_of_two_hundred_a_second_answers_all_of_sixty_four_in_flight() -> None:
    """Over sockets, through litellm."""
    admits = bucket(200, 20)
    refused = [0]
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "stub"}
    message = {"role": "assistant", "content": "yes"}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    whole = {**body, "choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                await reader.readexactly(int(length[1]) if length else 0)
                admitted = admits(time.monotonic()) is None
                refused[0] += not admitted
                said = json.dumps(whole if admitted else {"error": {"message": "slow down"}}).encode()
                status = b"200 OK" if admitted else b"429 Too Many Requests"
                kind = b"content-type: application/json\r\n"
                writer.write(b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\n\r\n%b" % (status, kind, len(said), said))
        writer.close()

    async def scenario() -> list[Any]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        with Client(plan_of(model(base_url=url))) as client:
            ends = await asked(client, 200, 64)
        server.close()
        return ends

    assert measured(asyncio.run(scenario())) == 200
    assert refused[0] < 200
