"""Every way in which a server fails ends as its kind: retried, permanent, empty, cut or malformed; never as a hang."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import tracemalloc
from email.utils import formatdate
from fractions import Fraction

import pytest
from faulty_server import (
    FaultyServer,
    Step,
    answer,
    close_at_once,
    cut_off,
    drip,
    flood,
    late,
    old_fashioned,
    redirect,
    refuse,
    reset,
    say,
)
from hypothesis import given
from hypothesis import strategies as st
from wire_calls import KEY, PROTOCOLS, ask, at, through_litellm  # noqa: F401 - for all tests here

from skillc.models.backends import openai
from skillc.models.backends.connections import MOST_BYTES
from skillc.models.backends.error_bodies import error_in, excerpt, failure_in
from skillc.models.backends.litellm import WatchedRequest, send_by_litellm
from skillc.models.endpoint import Transport
from skillc.models.failures import PermanentFailure, WireFailure, fix_for, is_transient, retry_after, scrub
from skillc.redaction import Redactor, Secret

# What an attempt was booked with: nothing, its reply's 14 tokens, or all that it had reserved.
NOTHING, REPLY, WHOLE = "nothing", "reply", "whole"

NOT_JSON = (
    answer(200, "{not json"),
    answer(200, "<html><body>hello</body></html>", "text/html"),
    answer(200, "null"),
    answer(200, "[]"),
    answer(200, ""),
    answer(204, ""),
    answer(200, '{"nothing": 1}'),
    answer(200, '{"choices": [], "content": []}'),
    answer(200, '{"error": {"message": "the backend died", "type": "server_error"}}'),
    answer(200, b'{"choices": [{"message": {"content": "a\xff\xfeb"}}]}'),
    answer(200, b"no gzip", **{"content-encoding": "gzip"}),
    answer(304, ""),
    flood(),
    flood(status=500),
    flood(limit=MOST_BYTES + 1),
)
FAULTS: list[tuple[str, Step, str, int, str]] = [
    # name, what the server does every time, kind, requests, booked
    *((f"status {status}", refuse(status, "not now"), "transient", 2, NOTHING) for status in (408, 409, 425)),
    *((f"status {status}", refuse(status, "not now"), "transient", 2, NOTHING) for status in (500, 502, 504)),
    ("page 502", answer(502, "<html>bad gateway</html>", "text/html"), "transient", 2, NOTHING),
    *((f"status {s}", refuse(s, "no"), "permanent", 1, NOTHING) for s in (400, 401, 402, 403, 404, 405, 413, 422)),
    ("too long", refuse(400, "maximum context length is 4096 tokens"), "permanent", 1, NOTHING),
    ("used up", refuse(429, "you exceeded", code="insufficient_quota"), "permanent", 1, NOTHING),
    ("moved", redirect("/v1/elsewhere", 301), "permanent", 1, NOTHING),
    ("moved 307", redirect("/v1/elsewhere", 307), "permanent", 1, NOTHING),
    ("half a body", cut_off(), "transient", 2, WHOLE),
    ("half the chunks", cut_off(chunked=True), "transient", 2, WHOLE),
    ("reset", reset(), "transient", 2, WHOLE),
    ("reset after headers", reset(after_headers=True), "transient", 2, WHOLE),
    ("closed", close_at_once(), "transient", 2, WHOLE),
    *((f"no reply {number}", step, "malformed", 2, WHOLE) for number, step in enumerate(NOT_JSON)),
    ("empty", say(""), "empty", 1, REPLY),
    ("blank", say(" \n"), "empty", 1, REPLY),
    ("filtered", say("", "content_filter"), "empty", 1, REPLY),
    ("filtered text", say("half of", "content_filter"), "empty", 1, REPLY),
    ("cut", say("half of", "length"), "cut", 1, REPLY),
]
# Anthropic has no such code; its own words for it are tried below.
ONLY_OPENAI = {"used up"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("name", "step", "kind", "requests", "booked"), FAULTS, ids=[fault[0] for fault in FAULTS])
@pytest.mark.quick_cases(44)
def test_each_fault_has_its_kind(
    monkeypatch: pytest.MonkeyPatch, protocol: str, name: str, step: Step, kind: str, requests: int, booked: str
) -> None:
    if protocol == "anthropic" and name in ONLY_OPENAI:
        pytest.skip("a code of the OpenAI protocol")
    with FaultyServer(lambda asked: step) as server:
        found = ask(server, monkeypatch, protocol)
        assert found.kind == kind
        # One attempt is one request: nothing is sent that was not reserved.
        assert server.total == requests
        calls, tokens = found.paid
        assert calls == requests
        whole = tokens // requests
        assert tokens == {NOTHING: 0, REPLY: 14, WHOLE: whole * requests}[booked]
        assert booked != WHOLE or whole > 99
        assert KEY not in f"{found.failed} {getattr(found.failed, 'hint', '')}"
        if kind == "permanent":
            message, hint = found.failed.message, found.failed.hint  # type: ignore[union-attr]
            assert "model `target` (`" in message
            assert f"http://127.0.0.1:{server.port}" in message
            assert hint


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_server_that_never_has_room_is_given_up_at_last_and_nothing_is_paid(
    monkeypatch: pytest.MonkeyPatch, protocol: str, status: int
) -> None:
    with FaultyServer(lambda asked: refuse(status, "no room")) as server:
        found = ask(server, monkeypatch, protocol)
        assert found.kind == "transient"
        assert f"status {status}: no room" in str(found.failed)
        assert server.total > 1
        assert found.paid[1] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "step", [late(60), drip(0.05), drip(0.05, size=16, finish=False)], ids=["headers", "body", "endless body"]
)
@pytest.mark.quick_cases(1)
def test_an_attempt_ends_with_its_time_however_the_reply_drips_in(
    monkeypatch: pytest.MonkeyPatch, protocol: str, step: Step
) -> None:
    with FaultyServer(lambda asked: step) as server:
        found = ask(server, monkeypatch, protocol, timeout=Fraction(1))
        assert found.kind == "transient"
        assert "no complete reply within 1 s" in str(found.failed)
        assert server.total == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_slow_reply_within_its_time_is_a_reply(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    with FaultyServer([late(0.1, drip(0.001, size=8, finish=True)), old_fashioned("old")]) as server:
        for text in ("slow", "old"):
            found = ask(server, monkeypatch, protocol)
            assert found.completion is not None
            assert found.completion.text == text


def test_an_endless_reply_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyServer(lambda asked: flood()) as server:
        tracemalloc.start()
        found = ask(server, monkeypatch, attempts=1)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert "longer than 32 MiB" in str(found.failed)
        assert peak < 4 * MOST_BYTES


def test_a_small_body_that_grows_when_it_is_decoded_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    bomb = gzip.compress(b'"' + b"x" * (2 * MOST_BYTES) + b'"')
    assert len(bomb) < MOST_BYTES // 100
    with FaultyServer(lambda asked: answer(200, bomb, **{"content-encoding": "gzip"})) as server:
        found = ask(server, monkeypatch, attempts=1)
        assert "longer than 32 MiB" in str(found.failed)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reply_without_usage_is_booked_with_all_that_it_reserved(
    monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    with FaultyServer(lambda asked: say("hi", usage=None)) as server:
        found = ask(server, monkeypatch, protocol)
        assert found.paid[1] > 99 * server.total
        # Anthropic's protocol asks for it, and litellm with it.
        assert found.kind == ("malformed" if protocol == "anthropic" else "none")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lone_surrogates_are_replaced(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    with FaultyServer([say("a\ud800b")]) as server:
        found = ask(server, monkeypatch, protocol)
        assert found.completion is not None
        assert found.completion.text == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_key_never_travels_to_another_host(monkeypatch: pytest.MonkeyPatch, protocol: str, status: int) -> None:
    with FaultyServer([say("gotcha")]) as other:
        target = f"http://user:pass@127.0.0.1:{other.port}/v1/chat/completions?token=abcdefgh"
        with FaultyServer(lambda asked: redirect(target, status)) as server:
            found = ask(server, monkeypatch, protocol)
            assert (found.kind, server.total, other.total) == ("permanent", 1, 0)
            assert f"redirects to `http://127.0.0.1:{other.port}/v1/chat/completions`" in str(found.failed)
            assert "`base_url`" in str(found.failed.hint)  # type: ignore[union-attr]
            assert "pass" not in str(found.failed)
            assert "abcdefgh" not in str(found.failed)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_filtered_prompt_is_one_examples_trouble(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    if protocol == "anthropic":
        with FaultyServer([say("", "content_filter")]) as server:
            assert ask(server, monkeypatch, protocol).kind == "empty"
        return
    with FaultyServer([refuse(400, "filtered", code="content_filter")]) as server:
        assert ask(server, monkeypatch, protocol).kind == "empty"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (401, "Incorrect API key provided: sk-plant***************cdef", "check the key in `TEAM_KEY`"),
        (403, "not for you", "check the key in `TEAM_KEY`"),
        (404, "The model does not exist", "check the model's name and `base_url`"),
        (400, "Unsupported value", "check the model's parameters"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "the prompt is too long"),
        (400, "Your credit balance is too low to access the API", "the provider's account is used up"),
        (429, "You exceeded your current quota: insufficient_quota", "the provider's account is used up"),
    ],
)
def test_what_is_permanent_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, protocol: str, status: int, message: str, hint: str
) -> None:
    with FaultyServer([refuse(status, message)]) as server:
        failed = ask(server, monkeypatch, protocol).failed
        assert isinstance(failed, PermanentFailure)
        assert str(failed.hint).startswith(hint)
        assert f"refuses: status {status}: " in str(failed)
        assert server.total == 1


WAITS = [
    ({"retry-after": "7"}, 7.0, 7.5),
    ({"retry-after-ms": "1500"}, 1.5, 2.0),
    ({"retry-after-ms": "no", "retry-after": "3"}, 3.0, 3.5),
    ({"retry-after": formatdate(time.time() - 100, usegmt=True)}, 0.0, 0.5),
    ({}, 0.25, 0.5),
    ({"retry-after": "soon"}, 0.25, 0.5),
    ({"retry-after": "nan"}, 0.25, 0.5),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("headers", "least", "most"), WAITS)
def test_a_server_is_waited_for_as_it_asks(
    monkeypatch: pytest.MonkeyPatch, protocol: str, headers: dict[str, str], least: float, most: float
) -> None:
    with FaultyServer([refuse(429, "slow down", headers=headers), say("yes")]) as server:
        found = ask(server, monkeypatch, protocol)
        assert found.completion is not None
        assert least <= sum(found.waited) <= most


@given(st.dictionaries(st.sampled_from(["Retry-After", "retry-after-ms"]), st.text(max_size=20) | st.floats().map(str)))
def test_no_header_makes_a_run_wait_for_ever(headers: dict[str, str]) -> None:
    lower = {name.lower(): value for name, value in headers.items()}
    asked = retry_after(WireFailure("refused", "", status_code=429, headers=lower), time.time())
    assert asked is None or 0 <= asked <= 3600
    assert retry_after(WireFailure("refused", "", headers={"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}), 0) == 3600


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nobody_there_is_transient_and_costs_nothing(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    with FaultyServer() as server:
        url = f"http://127.0.0.1:{unused_port()}/v1"
        found = ask(server, monkeypatch, protocol, url=url)
        assert found.kind == "transient"
        assert "no connection to `127.0.0.1`: connection refused, 2 attempts" in str(found.failed)
        assert found.paid == (2, 0)


@pytest.mark.parametrize("send", [openai.send, send_by_litellm], ids=["own", "litellm"])
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://no-such-name.invalid/v1", "the host `no-such-name.invalid` is unknown"),
        ("https://127.0.0.1:{port}/v1", "no secure connection to `127.0.0.1`"),
        ("nonsense", "the address cannot be used"),
    ],
)
def test_why_there_is_no_connection_is_said(send: Transport, url: str, message: str) -> None:
    async def scenario(port: int) -> None:
        sent = {"model": "openai/x", "messages": [{"role": "user", "content": "a"}], "api_key": "k", "timeout": 10.0}
        with pytest.raises(WireFailure) as failed:
            await send({**sent, "api_base": url.format(port=port)})
        assert failed.value.kind == "unreachable"
        assert message in failed.value.detail

    with FaultyServer(lambda asked: say()) as server:
        asyncio.run(scenario(server.port))


def test_connections_are_pooled_and_closed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from model_plans import plan_of

    from skillc.models.calls import Call, Message
    from skillc.models.client import Client

    monkeypatch.setenv("TEAM_KEY", KEY)

    async def scenario(server: FaultyServer) -> None:
        with Client(plan_of(at(server.url))) as client:
            async with client.connected():
                for number in range(20):
                    await client.complete(Call("target", "rollout", (Message("user", f"question {number}"),)))
                assert server.connections == 1
                assert server.open == 1
            assert await asyncio.to_thread(server.is_left)
            # What was closed opens again.
            await client.complete(Call("target", "rollout", (Message("user", "once more"),)))
            async with client.connected():
                pass

    with FaultyServer(lambda asked: say()) as server:
        asyncio.run(scenario(server))
        assert server.connections == 2


def test_connections_on_the_shared_loop_are_closed_by_the_last_who_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A synchronous first caller binds all clients of a process to one loop on a thread."""
    from model_plans import plan_of

    from skillc.models import concurrency
    from skillc.models.calls import Call, Message
    from skillc.models.client import Client

    monkeypatch.setenv("TEAM_KEY", KEY)
    shared = concurrency.BackgroundLoop()
    monkeypatch.setattr(concurrency, "SHARED_LOOP", shared)

    async def scenario(server: FaultyServer, first: Client, second: Client) -> None:
        said = Call("target", "rollout", (Message("user", "again"),))
        async with first.connected():
            async with second.connected():
                await second.complete(said)
            await asyncio.sleep(0.05)
            assert server.open == 1
            await first.complete(said)
        assert await asyncio.to_thread(server.is_left)

    with FaultyServer(lambda asked: say()) as server:
        with Client(plan_of(at(server.url))) as first, Client(plan_of(at(server.url))) as second:
            first.complete_sync(Call("target", "rollout", (Message("user", "hello"),)))
            asyncio.run(scenario(server, first, second))
        assert server.connections == 1
    loop = shared.running()
    assert loop is not None
    loop.call_soon_threadsafe(loop.stop)


def test_requests_that_are_not_ours_stay_as_they_are() -> None:
    """A user's own litellm calls in the same process follow redirects as litellm does."""
    from skillc.models.backends.connections import disconnect
    from skillc.models.backends.litellm import load_litellm, watched

    async def scenario(server: FaultyServer) -> None:
        litellm = load_litellm()
        sent = {"model": "openai/x", "messages": [{"role": "user", "content": "a"}], "api_key": "k", "max_retries": 0}
        reply = await litellm.acompletion(**sent, api_base=server.url)
        assert reply.choices[0].message.content == "there"
        with watched():
            pass
        await litellm.acompletion(**sent, api_base=server.url)
        await litellm.close_litellm_async_clients()
        await disconnect()

    with FaultyServer([redirect("/v1/chat/there"), say("there"), say("again")]) as server:
        asyncio.run(scenario(server))
        assert server.total == 3


def test_a_client_that_was_closed_is_not_used_by_a_later_loop_with_the_same_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm keeps clients by the id of their loop, which a later loop gets by chance."""
    from skillc.models.backends.litellm import load_litellm

    litellm = load_litellm()
    cache = type(litellm.in_memory_llm_clients_cache)
    monkeypatch.setattr(cache, "update_cache_key_with_event_loop", lambda self, key: f"{key}-id of a loop")
    with FaultyServer([say("first"), say("second")]) as server:
        for text in ("first", "second"):
            monkeypatch.setenv("SKILLC_LITELLM", "1")
            completion = ask(server, monkeypatch).completion
            assert completion is not None
            assert completion.text == text
            asyncio.run(litellm.close_litellm_async_clients())


ERRORS = [
    ({"error": {"message": "no", "code": "c"}}, ("no", "c")),
    ({"error": {"message": "no", "type": "t", "code": None}}, ("no", "t")),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, ("busy", "overloaded_error")),
    ([{"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}], ("slow", "429")),
    ({"detail": "Not Found"}, ("Not Found", "")),
    ({"detail": [{"msg": "field required"}]}, ('[{"msg": "field required"}]', "")),
    ({"message": "no Route matched"}, ("no Route matched", "")),
    ({"error": "model 'x' not found"}, ("model 'x' not found", "")),
    ({"errors": [{"message": "a", "code": 7}]}, ("a", "7")),
    ({"choices": []}, None),
    ("text", None),
]


@pytest.mark.parametrize(("body", "found"), ERRORS)
def test_providers_say_what_is_wrong_in_many_shapes(body: object, found: tuple[str, str] | None) -> None:
    assert error_in(json.dumps(body).encode()) == found


@given(st.binary(max_size=300) | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_no_body_is_too_strange_to_be_told(body: bytes | str) -> None:
    raw = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    told = error_in(raw)
    assert told is None or isinstance(told.message, str)
    assert len(excerpt(raw)) < 200
    assert isinstance(failure_in(200, {}, raw), WireFailure)


def test_a_status_in_the_body_of_a_200_counts() -> None:
    wire = WatchedRequest()
    wire.status, wire.body = 200, b'{"error": {"message": "slow down", "code": 429}}'
    told = wire.error_behind(ValueError())
    assert is_transient(told)
    assert getattr(told, "status_code", None) == 429


def test_an_error_before_anything_was_sent_is_litellms_own() -> None:
    problem = ValueError("no such provider")
    assert WatchedRequest().error_behind(problem) is problem


def test_a_fix_never_shows_what_the_server_said() -> None:
    problem = WireFailure("refused", KEY, status_code=401)
    assert KEY not in fix_for(problem, "TEAM_KEY")
    assert KEY not in scrub(str(problem), Redactor([Secret("KEY", KEY)]))
