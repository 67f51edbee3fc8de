"""Before a run spends anything, each model is tried once; what cannot be used is named with its fix."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from faulty_server import FaultyServer, Step, answer, drip, late, redirect, refuse, reset, say
from model_plans import Scripted, model, plan_of, reply
from wire_calls import KEY, PROTOCOLS, address, at, through_litellm  # noqa: F401 - for all tests here

from skillc.language.loop import BudgetPlan
from skillc.models import concurrency
from skillc.models.backends.function import backend
from skillc.models.calls import Call, Completion, Message
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, PermanentFailure
from skillc.models.ledger import Caps, Spending
from skillc.models.preflight import QUESTION, TIMEOUT, PreflightFailed, try_model
from skillc.models.roles import resolve_roles
from skillc.plan.schema import PacingPlan, Plan, PricePlan
from skillc.store import RunStore

ASKED = Call("target", "rollout", (Message("user", "hello"),))
PRICE = PricePlan(input=Fraction(1), output=Fraction(4))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)


def tried(plan: Plan, *calls: Call, **settings: Any) -> Client:
    """A closed client that has made some calls after a preflight."""

    async def scenario() -> None:
        async with client.connected():
            await asyncio.gather(*[client.complete(call) for call in calls or (ASKED,)])

    with Client(plan, preflight=True, **settings) as client:
        asyncio.run(asyncio.wait_for(scenario(), 600))
    return client


def is_trial(sent: Any) -> bool:
    return bool(sent["messages"][-1]["content"] == QUESTION)


# ---- when, and what is sent -----------------------------------------------------------------------


def test_all_models_are_tried_side_by_side_before_the_first_call_and_once_in_a_session() -> None:
    transport = Scripted()
    plan = plan_of(model(), model("optimizer", "openai/big"), model("judge", "openai/small"))
    calls = [Call("target", "rollout", (Message("user", f"question {i}"),)) for i in range(5)]
    tried(plan, *calls, transport=transport)
    assert [is_trial(sent) for sent in transport.sent] == [True] * 3 + [False] * 5
    assert [sent["model"] for sent in transport.sent[:3]] == ["openai/gpt-4o-mini", "openai/big", "openai/small"]
    assert transport.most_at_once >= 3


def test_models_are_tried_early_only_if_no_reply_is_kept() -> None:
    transport = Scripted()

    async def scenario(client: Client) -> list[int]:
        sent = []
        async with client.connected():
            for _ in range(2):
                await client.try_early("target")
                sent.append(len(transport.sent))
            await client.complete(ASKED)
            sent.append(len(transport.sent))
        return sent

    with Client(plan_of(model()), preflight=True, transport=transport) as client:
        assert asyncio.run(scenario(client)) == [1, 1, 2]
        assert [is_trial(sent) for sent in transport.sent] == [True, False]
    with Client(plan_of(model()), transport=transport) as client:
        assert asyncio.run(scenario(client))[:2] == [2, 2]


def test_models_are_not_tried_early_where_a_reply_is_cached(tmp_path: Path) -> None:
    transport = Scripted()
    tried(plan_of(model()), transport=transport, cache_folder=tmp_path)
    transport.sent.clear()

    async def scenario() -> None:
        async with client.connected():
            await client.try_early("target")
            await client.complete(ASKED)

    with Client(plan_of(model()), preflight=True, transport=transport, cache_folder=tmp_path) as client:
        asyncio.run(scenario())
    assert transport.sent == []


def test_a_trial_has_all_settings_of_its_role_and_of_no_other() -> None:
    transport = Scripted()
    pacing = PacingPlan(timeout=Fraction(7))
    hot = model(
        parameters={"temperature": 1, "reasoning_effort": "low"}, max_reply=321, pacing=pacing, key_env="TEAM_KEY"
    )
    cold = model("optimizer", "openai/big", base_url="http://localhost:8", parameters={"top_p": 0.5})
    tried(plan_of(hot, cold), transport=transport)
    first, second = transport.sent[:2]
    assert (first["temperature"], first["reasoning_effort"], first["max_tokens"]) == (1, "low", 321)
    assert (first["timeout"], first["api_key"], first["api_base"]) == (20.0, KEY, "http://localhost:9")
    assert (second["top_p"], second["max_tokens"], second["api_base"]) == (0.5, 4096, "http://localhost:8")
    assert not {"temperature", "reasoning_effort"} & set(second)
    assert second["api_key"] != KEY


def test_no_setting_of_one_role_reaches_another_in_real_calls_either() -> None:
    """Address, key, parameters, reply limit and timeout are each role's own."""
    transport = Scripted()
    one = model(parameters={"temperature": 1, "seed": 7}, max_reply=321, key_env="TEAM_KEY")
    other = model("optimizer", base_url="http://localhost:8", pacing=PacingPlan(timeout=Fraction(9)))
    with Client(plan_of(one, other), transport=transport) as client:
        for role in ("target", "optimizer"):
            asyncio.run(client.complete(Call(role, "x", (Message("user", "hello"),))))
    first, second = transport.sent
    assert set(first) - set(second) == {"temperature", "seed"}
    assert (first["max_tokens"], second["max_tokens"]) == (321, 4096)
    assert (first["timeout"], second["timeout"]) == (300.0, 9.0)
    assert first["api_key"] == KEY != second["api_key"]
    assert (first["api_base"], second["api_base"]) == ("http://localhost:9", "http://localhost:8")


def test_roles_that_would_send_the_very_same_are_tried_once() -> None:
    transport = Scripted()
    same = {"parameters": {"temperature": 0}, "price": PRICE}
    plan = plan_of(model(**same), model("judge", **same), model("optimizer"))
    client = tried(plan, transport=transport)
    assert sum(is_trial(sent) for sent in transport.sent) == 2
    assert set(client.ledger.paid.lines) == {("target", "preflight"), ("optimizer", "preflight"), ("target", "rollout")}


def test_what_the_cache_answers_sends_nothing(tmp_path: Any) -> None:
    transport = Scripted()
    for _ in range(2):
        tried(plan_of(), transport=transport, cache_folder=tmp_path)
        assert len(transport.sent) == 2


def test_the_rulebook_needs_no_preflight_and_causes_none() -> None:
    transport = Scripted()
    tried(plan_of(model(name="rulebook/v1", base_url=None), model("optimizer")), transport=transport)
    assert not any(is_trial(sent) for sent in transport.sent)
    tried(plan_of(), offline=True)


def test_a_function_of_the_users_own_is_not_asked_but_waits_until_the_others_are_reached() -> None:
    asked: list[str] = []

    @backend("mine_in_preflight")
    def answer_itself(messages: Any, *_: Any) -> str:
        asked.append(messages[-1]["content"])
        return "yes"

    with FaultyServer([say("ok"), refuse(401, "bad key")]) as server:
        plan = plan_of(model(name="mine_in_preflight/x", base_url=None), at(server.url, role="optimizer"))
        tried(plan)
        assert asked == ["hello"]
        assert server.asked[0].text == QUESTION
        with pytest.raises(PermanentFailure, match="model `optimizer`"):
            tried(plan)
    assert asked == ["hello"]


def test_a_client_tries_nothing_unless_it_is_told_to() -> None:
    transport = Scripted()
    with Client(plan_of(), transport=transport) as client:
        asyncio.run(client.complete(ASKED))
    assert len(transport.sent) == 1


# ---- money ----------------------------------------------------------------------------------------


def test_it_is_paid_and_never_charged_and_never_kept(tmp_path: Any) -> None:
    transport = Scripted()
    plan = plan_of(model(price=PRICE), model("optimizer", "openai/big", price=PRICE))
    client = tried(plan, transport=transport, cache_folder=tmp_path)
    assert [stage for _, stage in client.ledger.charged.lines] == ["rollout"]
    paid = client.ledger.paid.lines
    assert paid["target", "preflight"].calls == paid["optimizer", "preflight"].calls == 1
    assert paid["target", "preflight"].cost == 5 * 1000 + 2 * 4000
    assert client.ledger.paid.reserved == Spending()
    assert sum(QUESTION.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()) == 0


def test_a_cap_as_tight_as_the_plans_most_is_not_felt() -> None:
    """Two models are tried and three calls made: the plan counts five."""
    calls = [Call("target", "rollout", (Message("user", f"question {i}"),)) for i in range(3)]
    plan = plan_of(model(), model("optimizer", "openai/big"), calls=5)
    client = tried(plan, *calls, transport=Scripted())
    assert client.ledger.paid.spent.calls == 5
    assert client.ledger.stopped is None


@pytest.mark.parametrize("cap", [{"calls": 1}, {"tokens": 500}, {"cost": Fraction(1, 10**7)}])
def test_what_no_cap_admits_is_not_tried_and_closes_no_account(cap: dict[str, Any]) -> None:
    transport, seen = Scripted(), []
    plan = plan_of(
        model(price=PRICE, max_reply=300), model("optimizer", "openai/big", price=PRICE, max_reply=300), **cap
    )
    caps = Caps.of(BudgetPlan(**cap))

    async def send(sent: Any) -> Any:
        account = client.ledger.paid
        seen.append(caps.exceeded_by(account.spent.plus(account.reserved)))
        return await transport(sent)

    with Client(plan, preflight=True, transport=send) as client, contextlib.suppress(BudgetReached):
        asyncio.run(client.complete(ASKED))
    assert set(seen) <= {None}


def test_trials_that_do_not_fit_side_by_side_take_turns() -> None:
    transport = Scripted()
    plan = plan_of(model(max_reply=300), model("optimizer", "openai/big", max_reply=300), tokens=600)
    tried(plan, transport=transport)
    assert [is_trial(sent) for sent in transport.sent] == [True, True, False]
    assert transport.most_at_once == 1


def test_a_session_that_goes_on_tries_again_and_adds_to_what_was_paid(tmp_path: Any) -> None:
    for session in (1, 2):
        with (
            closing(RunStore(tmp_path / "run.db")) as store,
            Client(plan_of(), preflight=True, transport=Scripted()) as client,
        ):
            client.bind_store(store, f"salt {session}")
            asyncio.run(client.complete(ASKED))
            assert client.ledger.paid.lines["target", "preflight"].calls == session


def test_a_trial_that_used_more_than_it_reserved_ends_the_run() -> None:
    transport = Scripted(lambda sent: reply(usage=(10, 999_999) if is_trial(sent) else (5, 2)))
    with pytest.raises(PermanentFailure) as failed:
        tried(plan_of(), transport=transport)
    assert "in one call; " in str(failed.value)
    assert all(is_trial(sent) for sent in transport.sent)


def test_the_model_that_a_trial_names_is_no_reply_of_the_run(tmp_path: Any) -> None:
    """A server may name the model otherwise for its first word; only replies that count are held against each other."""

    def named(sent: Any) -> Any:
        return {**reply(), "model": "still-loading" if is_trial(sent) else "m"}

    with (
        closing(RunStore(tmp_path / "run.db")) as store,
        Client(plan_of(), preflight=True, transport=Scripted(named)) as client,
    ):
        client.bind_store(store, "")
        asyncio.run(client.complete(ASKED))
        store.sync()
        assert store.models() == {"target": "m"}


# ---- what counts as reached -----------------------------------------------------------------------

HERE: dict[str, Step] = {
    "a word": say("ok"),
    "cut": say("o", "length"),
    "empty": say(""),
    "filtered": say("", "content_filter"),
    "too many": refuse(429, "slow down", headers={"retry-after": "60"}),
    "overloaded": refuse(529, "overloaded"),
    "busy": refuse(503, "busy"),
    "a fault": refuse(500, "oh"),
    "reset": reset(),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("step", HERE.values(), ids=list(HERE))
def test_somebody_who_is_there_is_reached(protocol: str, step: Step) -> None:
    steps = iter([step, say("yes")])
    with FaultyServer(lambda asked: next(steps)) as server:
        client = tried(plan_of(at(address(server, protocol), protocol)))
        assert server.total == 2
        assert client.ledger.paid.lines["target", "preflight"].calls == 1


REFUSED: list[tuple[str, Step, str, str]] = [
    ("key", refuse(401, f"Incorrect API key provided: {KEY}"), "status 401: ", "check the key in `TEAM_KEY`"),
    ("forbidden", refuse(403, "no"), "status 403: no", "check the key in `TEAM_KEY`"),
    ("name", refuse(404, "no such model"), "status 404: no such model", "check the model's name and `base_url`"),
    ("parameter", refuse(400, "no `top_q`"), "status 400: no `top_q`", "check the model's parameters"),
    ("account", refuse(402, "pay"), "status 402: pay", "the provider's account is used up"),
    ("moved", redirect("/elsewhere"), "redirects to", "if the model is there"),
    ("a page", answer(200, "<html>Welcome</html>", "text/html"), "`Welcome`", "check `base_url`"),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("name", "step", "message", "hint"), REFUSED, ids=[case[0] for case in REFUSED])
def test_what_no_retry_mends_fails_at_once(protocol: str, name: str, step: Step, message: str, hint: str) -> None:
    with FaultyServer(lambda asked: step) as server:
        with pytest.raises(PermanentFailure) as failed:
            tried(plan_of(at(address(server, protocol), protocol)))
        assert server.total == 1
        assert f"model `target` (`{protocol}/" in str(failed.value)
        assert f"127.0.0.1:{server.port}" in str(failed.value)
        assert "cannot be used: " in str(failed.value)
        assert message in str(failed.value)
        assert str(failed.value.hint).startswith(hint)
        assert str(failed.value.hint).endswith(", or run with `--offline`, which uses the embedded rulebook instead")
        assert KEY not in f"{failed.value} {failed.value.hint}"


def test_nobody_there_fails_at_once_without_a_retry() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    with pytest.raises(PermanentFailure) as failed:
        tried(plan_of(at("http://127.0.0.1:9/v1")), sleep=sleep)
    assert "no connection to `127.0.0.1`: connection refused" in str(failed.value)
    assert str(failed.value.hint).startswith("check `base_url`, and that the server runs")
    assert waited == []


def test_every_model_that_failed_is_named() -> None:
    with FaultyServer(lambda asked: refuse(401, "bad key") if asked.body["model"] == "big" else say()) as server:
        same = {"base_url": "http://127.0.0.1:9/v1", "name": "openai/lost"}
        plan = plan_of(
            at(server.url),
            model("optimizer", "openai/big", base_url=server.url, key_env="TEAM_KEY"),
            model("judge", **same),
            model("referee", **same),
        )
        with pytest.raises(PermanentFailure) as failed:
            tried(plan)
    first, *lines = str(failed.value).splitlines()
    assert first == "2 models cannot be used:"
    assert (
        lines[0].strip().startswith(f"model `optimizer` (`openai/big` at `{server.url}`): status 401: bad key; check")
    )
    assert (
        lines[1].strip().startswith("models `judge` and `referee` (`openai/lost` at `http://127.0.0.1:9/v1`): no conn")
    )
    assert failed.value.hint == "run with `--offline`, which uses the embedded rulebook instead"


def test_a_failure_ends_all_calls_and_is_found_out_once() -> None:
    with FaultyServer(lambda asked: refuse(401, "bad key")) as server:

        async def scenario() -> list[Completion | BaseException]:
            async with client.connected():
                calls = [Call("target", "rollout", (Message("user", f"question {i}"),)) for i in range(8)]
                ended = await asyncio.gather(*[client.complete(call) for call in calls], return_exceptions=True)
                return [*ended, *await asyncio.gather(client.complete(ASKED), return_exceptions=True)]

        with Client(plan_of(at(server.url)), preflight=True) as client:
            ended = asyncio.run(scenario())
        assert len(ended) == 9
        assert all(isinstance(problem, PermanentFailure) for problem in ended)
        assert server.total == 1
        assert client.ledger.charged.reserved == client.ledger.paid.reserved == Spending()


def test_one_failure_does_not_wait_for_a_server_that_hangs() -> None:
    began = time.monotonic()
    bad = refuse(401, "bad key")
    with FaultyServer(lambda asked: late(60)) as slow, FaultyServer(lambda asked: bad) as server:
        plan = plan_of(at(server.url), at(slow.url, role="optimizer"))
        with pytest.raises(PermanentFailure) as failed:
            tried(plan)
    assert "bad key" in str(failed.value)
    assert "`optimizer`" not in str(failed.value)
    # The promise is a second; the hanging server would have taken the trial's whole time.
    assert time.monotonic() - began < TIMEOUT


@pytest.mark.parametrize("step", [late(60), drip(0.05)], ids=["headers", "body"])
def test_a_trial_has_a_time_of_its_own_and_says_so(step: Step) -> None:
    with FaultyServer(lambda asked: step) as server, pytest.raises(PreflightFailed) as failed:
        role = Client(plan_of(at(server.url))).roles["target"]
        asyncio.run(try_model(role, timeout=0.2))
    assert "no reply within 0.2 s" in str(failed.value)
    assert "still starting" in str(failed.value.hint)


def test_ctrl_c_in_a_trial_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only one who waits is cancelled: so is the trial, and it stays paid with all that it reserved."""
    # Another test may have started the loop that all clients of a process share; a cancel reaches that one later.
    monkeypatch.setattr(concurrency, "SHARED_LOOP", concurrency.BackgroundLoop())
    started = asyncio.Event()

    async def send(sent: Any) -> Any:
        started.set()
        await asyncio.sleep(60)

    async def scenario() -> None:
        task = asyncio.ensure_future(client.complete(ASKED))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with Client(plan_of(), preflight=True, transport=send) as client:
        asyncio.run(scenario())
        assert client.ledger.paid.reserved == Spending()
        assert client.ledger.paid.lines["target", "preflight"].calls == 1
        assert client.ledger.charged.lines == {}


def test_it_is_not_tried_again_on_another_event_loop() -> None:
    transport = Scripted()
    with Client(plan_of(), preflight=True, transport=transport) as client:
        for number in range(3):
            asyncio.run(client.complete(Call("target", "x", (Message("user", f"{number}"),))))
    assert sum(is_trial(sent) for sent in transport.sent) == 1


# ---- one role, for `doctor` -----------------------------------------------------------------------


def test_one_role_is_tried_with_its_model_and_its_tokens() -> None:
    with FaultyServer([say("ok", model="stub-2"), refuse(429, f"slow down {KEY}")]) as server:
        role = Client(plan_of(at(server.url, price=PRICE))).roles["target"]

        async def both() -> Any:
            return await try_model(role), await try_model(role)

        first, second = asyncio.run(both())
    assert (first.model, first.usage.total, first.note) == ("stub-2", 14, None)
    assert (second.model, second.usage.total) == ("openai/gpt-4o-mini", 0)
    assert second.note == "status 429: slow down [secret TEAM_KEY]"


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (lambda: plan_of(model(key_env="NOT_SET")), "`NOT_SET` is not set"),
        (lambda: plan_of(model(name="hosted_vllm/x", base_url=None)), "has no server address"),
    ],
)
def test_what_needs_no_socket_is_checked_without_one(plan: Callable[[], Plan], words: str) -> None:
    with pytest.raises(Exception, match=words):
        resolve_roles(plan())
