"""Calls that need no litellm: they send what litellm sends, and read replies and errors as it does."""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from faulty_server import Asked, Exchange, FaultyServer, Step, answer, late, refuse, say
from model_plans import model, plan_of
from whole_compiles import compile_here, compiled, shop, well
from wire_calls import KEY, ask, at

from skillc.models.attempts import read_reply
from skillc.models.backends import connections, openai
from skillc.models.backends.litellm import load_litellm, price_list, send_by_litellm
from skillc.models.backends.registry import connect
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.endpoint import Transport
from skillc.models.failures import WireFailure
from skillc.redaction import NOTHING

TEXTS = [{"role": "system", "content": "skäll"}, {"role": "user", "content": "hi \U0001f600"}]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
TOOL_CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGES: dict[str, list[dict[str, Any]]] = {
    "image": [{"role": "user", "content": [{"type": "text", "text": "a"}, IMAGE]}],
    "tools": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "r"},
    ],
    "developer": [{"role": "developer", "content": "c"}, {"role": "user", "content": "c"}],
}


def tool(**schema: Any) -> dict[str, Any]:
    function = {"name": "f", "description": "d", "strict": True, "parameters": {"type": "object", **schema}}
    return {"type": "function", "function": function}


STRICT = tool(properties={"x": {"type": "string", "pattern": "^a"}}, additionalProperties=False)
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
PARAMETERS: dict[str, dict[str, Any]] = {
    "none": {},
    "sampling": {"temperature": 0, "top_p": 0.5, "seed": 7, "stop": ["a"], "presence_penalty": 0.1},
    "engines": {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}, "min_p": 0.1, "guided_json": {"a": 1}},
    "every engine's": dict.fromkeys(sorted(openai._ENGINES), 1),
    "extra body": {"temperature": 0, "min_p": 0.2, "extra_body": {"top_k": 5, "temperature": 1}},
    "tools": {"tools": [STRICT], "tool_choice": "auto", "parallel_tool_calls": False},
    "schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}},
    "probabilities": {"logprobs": True, "top_logprobs": 3, "n": 2, "service_tier": "auto", "store": False},
    "effort": {"reasoning_effort": "low"},
    "limit": {"max_completion_tokens": 9},
    "headers": {"extra_headers": {"x-team": "b"}},
}
MODELS = ("openai/some-model", "openai/gpt-4o-mini", "openai/gpt-5-mini", "hosted_vllm/some/model")
ALIKE = tuple(f"{provider}/some" for provider in sorted(openai._ALIKE))
# A few of litellm's own refusals, which it has to give itself.
LEFT = {
    ("openai/gpt-4o-mini", "effort"),
    *(("openai/gpt-5-mini", name) for name in ("sampling", "extra body", "tools", "probabilities")),
}
HEADERS = ("authorization", "content-type", "openai-organization", "openai-project", "x-team")


async def exchanged(send: Transport, server: FaultyServer, name: str, sent: Mapping[str, Any]) -> tuple[Any, Any]:
    """What was sent, and what became of it."""
    before = server.total
    envelope = {"model": name, "messages": TEXTS, "api_base": server.url, "api_key": KEY, "timeout": 20.0}
    try:
        # litellm changes what it is given.
        found: Any = read_reply(await send(json.loads(json.dumps({**envelope, **sent}))), NOTHING)
    except WireFailure as failed:
        found = failed.kind, failed.detail, failed.status_code, failed.code
    except Exception as failed:
        found = getattr(failed, "detail", type(failed))
    asked = server.asked[-1]
    said = (asked.method, asked.path, asked.body, [asked.headers.get(header) for header in HEADERS])
    return said if server.total > before else None, found


async def litellm_is_not_wanted(arguments: Mapping[str, Any]) -> Any:
    raise AssertionError(f"litellm was asked: {arguments}")


def compared(monkeypatch: pytest.MonkeyPatch, script: Any, cases: list[tuple[str, Mapping[str, Any]]]) -> list[Any]:
    """What both send and read, for each case."""
    load_litellm()
    monkeypatch.setattr(openai, "send_by_litellm", litellm_is_not_wanted)

    async def both() -> list[Any]:
        with FaultyServer(script) as server:
            found = []
            for name, sent in cases:
                own = await exchanged(openai.send, server, name, sent)
                found.append((name, sent, own, await exchanged(send_by_litellm, server, name, sent)))
            await connections.disconnect()
            return found

    return asyncio.run(both())


def test_it_sends_what_litellm_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORGANIZATION", "org-x")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-x")
    limit = {"max_tokens": 99}
    cases: list[tuple[str, Mapping[str, Any]]] = [
        (name, {**({} if case == "limit" else limit), **sent})
        for name in MODELS
        for case, sent in PARAMETERS.items()
        if (name, case) not in LEFT
    ]
    cases += [(name, {**limit, "messages": messages}) for name in MODELS for messages in MESSAGES.values()]
    found = compared(monkeypatch, lambda asked: say("yes", model="m-1", cached=4), cases)
    assert len(found) > 40
    for name, sent, own, theirs in found:
        assert own == theirs, (name, sent)
        assert own[0] is not None


def test_it_sends_plain_calls_to_other_providers_as_litellm_does(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(name, {"max_tokens": 99, "temperature": 0, "top_p": 0.5}) for name in ALIKE]
    for name, _, own, theirs in compared(monkeypatch, lambda asked: say("yes", model="m-1", cached=4), cases):
        assert own == theirs, name
        assert own[0] is not None


def test_no_other_provider_learns_the_organization_at_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORGANIZATION", "org-x")
    with FaultyServer(lambda asked: say()) as server:
        for name in ("openai/x", "hosted_vllm/x", "together_ai/x"):
            asyncio.run(exchanged(openai.send, server, name, {}))
        assert [asked.headers.get("openai-organization") for asked in server.asked] == ["org-x", None, None]


def _choice(finish: Any = "stop", **message: Any) -> dict[str, Any]:
    return {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": None, **message}}


def _called(**call: Any) -> dict[str, Any]:
    return _choice("tool_calls", tool_calls=[{"id": "1", "type": "function", **call}])


CHOICES: list[Any] = [
    *(_choice(content=text) for text in ("a", "<think>t</think>\n\na", " <think>t</think>a", "<think>t", "t</think>a")),
    *(_choice(content="<think>t</think>a", **{name: None}) for name in ("reasoning_content", "reasoning")),
    *(_choice(reason, content="a") for reason in (None, "", "odd", "abort", "eos_token", "length", "max_tokens")),
    *(_choice(reason, content="a") for reason in ("SAFETY", "content_filter", "refusal", "function_call", "tool_use")),
    _choice(),
    _choice(content=[{"type": "text", "text": "p"}]),
    _choice(content=5),
    _choice(content="a", tool_calls=[]),
    _choice("stop", content="t", tool_calls=[TOOL_CALL]),
    _choice("length", content="t", tool_calls=[TOOL_CALL]),
    *(_called(function={"name": "f", "arguments": given}) for given in ("{}", "{", "", None, {"a": 1})),
    _called(function={"name": "f"}),
    _called(function={"arguments": "{}"}),
    _called(function={"name": "f", "arguments": "{}"}, index=0, extra=1),
    _called(
        function={
            "name": "multi_tool_use.parallel",
            "arguments": json.dumps({"tool_uses": [{"recipient_name": "functions.g", "parameters": {"a": 1}}]}),
        }
    ),
    _choice(tool_calls="x"),
    _choice(tool_calls=["x"]),
    {"index": 0, "finish_reason": "stop", "text": "a"},
    {**_choice(content="a"), "logprobs": {"content": [{"token": "a", "logprob": -1.0, "top_logprobs": []}]}},
    "x",
]
COUNTS = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
USAGES: list[Any] = [
    *(None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 11}, [1], COUNTS),
    *(
        {**COUNTS, "prompt_tokens_details": details}
        for details in (None, {}, {"cached_tokens": 4}, {"cached_tokens": None})
    ),
    *({**COUNTS, "completion_tokens_details": details} for details in (None, {"reasoning_tokens": 2})),
    {**COUNTS, "reasoning_tokens": 2},
    {**COUNTS, "prompt_cache_hit_tokens": 5},
    {**COUNTS, "cache_read_input_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1}},
    *({**COUNTS, "prompt_tokens": count} for count in (None, "11", 11.0, 11.5, True)),
]
ERRORS: list[Any] = [
    *(None, {}, "", "bad", {"type": "x"}, {"message": "no"}),
    {"message": "slow down", "code": 429},
    {"message": "", "code": 500},
]


def bodies() -> list[dict[str, Any]]:
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m-1", "usage": COUNTS}
    plain = [_choice(content="a")]
    return [
        *({**whole, "choices": [choice]} for choice in CHOICES),
        {**whole, "choices": []},
        {**whole, "choices": [_choice(content="a"), _choice(content="b")]},
        *({**whole, "choices": plain, "usage": usage} for usage in USAGES),
        *({**whole, "choices": plain, "model": name} for name in (None, "", "a/b")),
        *({**whole, "choices": plain, "error": error} for error in ERRORS),
        {"choices": plain},
    ]


@pytest.mark.filterwarnings("ignore:Pydantic serializer")
def test_it_reads_replies_as_litellm_does(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [step for body in bodies() for step in [answer(200, json.dumps(body))] * 4]
    cases = [(name, {"max_tokens": 99}) for _ in bodies() for name in ("openai/x", "hosted_vllm/x")]
    for (_, _, own, theirs), body in zip(compared(monkeypatch, replies, cases), _twice(bodies()), strict=True):
        assert own[1] == theirs[1], body


def _twice(items: list[Any]) -> list[Any]:
    return [item for item in items for _ in range(2)]


REFUSALS: list[Step] = [
    *(refuse(status, "not so") for status in (400, 401, 403, 404, 408, 422, 500, 503)),
    refuse(429, "slow down", headers={"retry-after": "7"}),
    refuse(400, "filtered", code="content_filter"),
    refuse(400, "This model's maximum context length is 9 tokens", code="context_length_exceeded"),
    answer(502, "<html>bad gateway</html>", "text/html"),
    answer(200, "<html>hello</html>", "text/html"),
    answer(204, ""),
    answer(500, ""),
]


def test_it_reads_errors_as_litellm_does(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [("hosted_vllm/x", {"max_tokens": 99})] * (len(REFUSALS) - 1)
    for _, _, own, theirs in compared(monkeypatch, _twice(REFUSALS[:-1]), cases):
        assert own == theirs
    # litellm says the name of its exception.
    [(_, _, own, _)] = compared(monkeypatch, _twice(REFUSALS[-1:]), cases[:1])
    assert own[1] == ("refused", "nothing", 500, "")


def test_a_tool_call_without_an_id_gets_the_same_one_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"choices": [_choice(tool_calls=[{"function": {"name": "f", "arguments": "{}"}}])], "model": "m"}
    [(_, _, own, theirs)] = compared(monkeypatch, lambda _: answer(200, json.dumps(body)), [("openai/x", {})])
    assert own[1].tool_calls[0]["id"] == "call_0"
    assert {**own[1].tool_calls[0], "id": ""} == {**theirs[1].tool_calls[0], "id": ""}


CHANGED: list[dict[str, Any]] = [
    *({name: value} for name, value in {"metadata": {"a": "b"}, "user": "u", "tags": ["a"], "made_up": 1}.items()),
    {"thinking": {"type": "enabled", "budget_tokens": 9}},
    {"temperature": None},
    {"tool_choice": "auto"},
    {"tools": [{"type": "custom", "custom": {"name": "f"}}]},
    {"tools": [{**tool(), "cache_control": {"type": "ephemeral"}}]},
    {"extra_headers": {"a": 1}},
    {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "x"}}]}]},
    {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "a"}]}]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}]}]},
    {"messages": [{"role": "user", "content": "a", "name": "b"}]},
    {"messages": [{"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "a"}]}]},
]


@pytest.mark.parametrize("changed", CHANGED, ids=str)
@pytest.mark.parametrize("name", ["openai/some", "hosted_vllm/some"])
def test_what_litellm_changes_in_other_ways_is_left_to_it(name: str, changed: dict[str, Any]) -> None:
    sent = {"model": name, "messages": TEXTS, "api_base": "http://h/v1", "timeout": 1.0}
    assert openai.body_of(sent) is not None
    assert openai.body_of({**sent, **changed}) is None


def test_a_tool_that_openai_refuses_is_left_to_litellm() -> None:
    sent = {"model": "openai/gpt-4o", "messages": TEXTS, "timeout": 1.0}
    assert openai.body_of({**sent, "tools": [tool()]}) is not None
    assert openai.body_of({**sent, "tools": [tool(anyOf=[{}])]}) is None
    assert openai.body_of({**sent, "tools": [tool(anyOf=[{}])], "api_base": "http://here/v1"}) is not None
    assert openai.body_of({**sent, "tools": [tool(properties={"a": {"pattern": "(?<n>a)"}})]}) is None


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        *((name, "openai") for name in ("openai/gpt-4o", "openai/gpt-5", "openai/mine", "gpt-4o", "hosted_vllm/a/b")),
        *((name, "openai") for name in ("vllm/a", "together_ai/a", "lm_studio/a")),
        *((name, "openai") for name in ("openai/o1-pro", "openai/responses/gpt-4o", "openai/gpt-5-codex")),
        *((name, "litellm") for name in ("openai/o3-mini", "made-up")),
        *((name, "litellm") for name in ("anthropic/claude-x", "openrouter/a", "ollama_chat/a", "azure/a", "groq/a")),
    ],
)
def test_who_answers(name: str, backend: str) -> None:
    assert connect(model(name=name), {}, Path())[0].name == backend
    assert connect(model(name=name), {"SKILLC_LITELLM": "1"}, Path())[0].name == "litellm"


def test_every_chat_model_of_openai_is_known() -> None:
    names = [name for name, row in price_list().items() if row.get("litellm_provider") == "openai" and "/" not in name]
    chat = [name for name in names if openai.speaks_openai(f"openai/{name}", declared=False)]
    assert len(chat) > 50
    assert {price_list()[name]["mode"] for name in chat} == {"chat", "responses"}


def test_parameters_decide_before_the_first_call() -> None:
    assert connect(model(name="openai/x", parameters={"top_k": 3}), {}, Path())[0].name == "openai"
    assert connect(model(name="openai/x", parameters={"made_up": 3}), {}, Path())[0].name == "litellm"


ANSWERED = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "error": None,
    "model": "m-1",
    "incomplete_details": None,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 11,
        "output_tokens": 3,
        "total_tokens": 14,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 2},
    },
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}


def _output(*texts: str) -> dict[str, Any]:
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": parts}


def _incomplete(reason: str, *output: Any) -> dict[str, Any]:
    return {**ANSWERED, "status": "incomplete", "incomplete_details": {"reason": reason}, "output": list(output)}


RESPONSES: list[dict[str, Any]] = [
    *({**ANSWERED, "output": list(output)} for output in ([THOUGHT, _output("a")], [_output("a", "b"), _output("c")])),
    *(
        {**ANSWERED, "output": list(output)}
        for output in ([], [THOUGHT], [_output("")], [_output("<think>a</think>b")])
    ),
    _incomplete("max_output_tokens", THOUGHT),
    _incomplete("max_output_tokens", _output("a")),
    _incomplete("content_filter"),
    {**ANSWERED, "output": [_output("a")], "usage": None},
    {**ANSWERED, "output": [], "status": "failed", "error": {"code": "server_error", "message": "no"}},
    {"choices": []},
]
SPOKEN = [{"role": role, "content": role} for role in ("developer", "system", "user", "assistant", "system", "user")]
RESPONSES_PARAMETERS: list[dict[str, Any]] = [
    {"max_tokens": 9},
    {"max_completion_tokens": 99, "service_tier": "flex", "store": False},
    {"max_tokens": 99, "messages": SPOKEN},
    {"max_tokens": 99, **PARAMETERS["schema"]},
    {"max_tokens": 99, "response_format": {"type": "json_object"}},
]


@pytest.mark.parametrize("name", ["openai/gpt-5-codex", "openai/o1-pro", "openai/responses/gpt-4o-mini"])
def test_models_with_no_other_api_are_called_by_responses(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    calls: list[tuple[str, Mapping[str, Any]]] = [
        (name, sent)
        for sent in RESPONSES_PARAMETERS
        if not (name == "openai/o1-pro" and sent.get("messages") == SPOKEN)
    ]
    steps = [answer(200, json.dumps(RESPONSES[0]))] * (2 * len(calls))
    for _, sent, own, theirs in compared(monkeypatch, steps, calls):
        assert own == theirs, sent
        assert own[0][1] == "/v1/responses"
    calls = [(name, {"max_tokens": 99})] * len(RESPONSES)
    steps = _twice([answer(200, json.dumps(body)) for body in RESPONSES])
    for (_, _, own, theirs), body in zip(compared(monkeypatch, steps, calls), RESPONSES, strict=True):
        assert own == theirs, body
    for changed in ({"tools": [tool()]}, {"stop": ["a"]}, {"seed": 1}, {"extra_body": {"a": 1}}):
        assert openai.body_of({"model": name, "messages": TEXTS, "timeout": 1.0, **changed}) is None


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h", "http://h/chat/completions"),
        ("http://h/v1?version=2#x", "http://h/v1/chat/completions?version=2"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
    ],
)
def test_the_path_of_an_address(base: str, path: str) -> None:
    assert openai._url(base, "hosted_vllm/x") == path


# ---- connections ----------------------------------------------------------------------------------


async def _ask(url: str, text: str = "a") -> str:
    sent = {"model": "openai/x", "messages": [{"role": "user", "content": text}], "api_key": "k", "timeout": 20.0}
    return str((await openai.send({**sent, "api_base": url}))["choices"][0]["message"]["content"])


async def _say_and_leave(exchange: Exchange) -> None:
    await say("first")(exchange)
    exchange.hang_up()


def test_a_connection_that_the_server_closed_costs_no_attempt() -> None:
    async def scenario(server: FaultyServer) -> None:
        assert await _ask(server.url) == "first"
        await asyncio.to_thread(server.is_left)
        assert await _ask(server.url) == "second"
        assert await _ask(server.url) == "third"
        await connections.disconnect()

    with FaultyServer([_say_and_leave, say("second"), say("third")]) as server:
        asyncio.run(scenario(server))
        assert (server.connections, server.total) == (2, 3)


@pytest.mark.filterwarnings("error")
def test_a_large_request_is_sent_whole() -> None:
    async def scenario(server: FaultyServer) -> None:
        assert await _ask(server.url, "a" * 3_000_000) == "yes"
        await connections.disconnect()

    with FaultyServer([say("yes")]) as server:
        asyncio.run(scenario(server))
        assert len(server.asked[0].text) == 3_000_000
        assert int(server.asked[0].headers["content-length"]) > 3_000_000


def test_a_cancelled_call_closes_its_connection_and_no_other() -> None:
    async def scenario(server: FaultyServer) -> None:
        slow = asyncio.ensure_future(_ask(server.url, "slow"))
        await asyncio.to_thread(server.wait_for, 1)
        assert await _ask(server.url) == "quick"
        assert server.open == 2
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        while server.open > 1:
            await asyncio.sleep(0.01)
        assert await _ask(server.url) == "quick"
        await connections.disconnect()

    with FaultyServer(lambda asked: late(600) if asked.text == "slow" else say("quick")) as server:
        asyncio.run(scenario(server))
        assert server.connections == 2


def test_calls_beyond_the_limit_of_open_files_wait_for_a_connection() -> None:
    async def scenario(server: FaultyServer) -> None:
        texts = await asyncio.gather(*(_ask(server.url, str(number)) for number in range(60)))
        assert texts == ["yes"] * 60
        await connections.disconnect()

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = len(list(Path("/dev/fd").iterdir()))
    with FaultyServer(lambda asked: say("yes")) as server:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[0], taken + connections._OTHER_FILES + 8), limits[1]))
        try:
            asyncio.run(scenario(server))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert 1 <= server.connections <= 8


def test_a_process_without_a_free_file_says_so_and_slows_down(monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    import aiohttp

    problem = aiohttp.ClientConnectorError(
        aiohttp.client_reqrep.ConnectionKey("h", 1, False, True, None, None, None), OSError(errno.EMFILE, "Too many")
    )
    failure = connections.classify(problem, "h")
    assert failure is not None
    assert connections.classify(ZeroDivisionError(), "h") is None
    assert (failure.kind, failure.detail) == ("unsent", "no connection to `h`: too many; raise `ulimit -n`")


def test_proxies_of_the_environment_are_used_and_named_when_they_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)

    async def scenario(proxy: FaultyServer) -> None:
        assert await _ask("http://models.invalid/v1") == "through"
        assert proxy.asked[0].path == "http://models.invalid/v1/chat/completions"
        await connections.disconnect()

    with FaultyServer(lambda asked: say("through")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{proxy.port}")
        asyncio.run(scenario(proxy))
        monkeypatch.setenv("NO_PROXY", "models.invalid")
        with pytest.raises(WireFailure, match=r"the host `models.invalid` is unknown"):
            asyncio.run(scenario(proxy))
        monkeypatch.delenv("NO_PROXY")
        monkeypatch.setenv("DISABLE_AIOHTTP_TRUST_ENV", "True")
        with pytest.raises(WireFailure, match=r"the host `models.invalid` is unknown"):
            asyncio.run(scenario(proxy))
        monkeypatch.delenv("DISABLE_AIOHTTP_TRUST_ENV")
        assert proxy.total == 1
    monkeypatch.setenv("HTTP_PROXY", "http://user:pa55word@127.0.0.1:9")
    with pytest.raises(WireFailure, match=r"no connection to the proxy `127.0.0.1`: connection refused") as failed:
        asyncio.run(scenario(proxy))
    assert "pa55word" not in str(failed.value)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with `openssl`")
def test_certificates_are_verified_as_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    body = json.dumps({"choices": [_choice(content="safe")]}).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    async def scenario() -> str:
        server = await asyncio.start_server(serve, "localhost", 0, ssl=context)
        try:
            return await _ask(f"https://localhost:{server.sockets[0].getsockname()[1]}/v1")
        finally:
            await connections.disconnect()
            server.close()

    for name in ("SSL_VERIFY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(WireFailure, match=r"no secure connection to `localhost`: .*self-signed certificate") as failed:
        asyncio.run(scenario())
    assert failed.value.kind == "unreachable"
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert asyncio.run(scenario()) == "safe"
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SSL_VERIFY", "False")
    assert asyncio.run(scenario()) == "safe"


def test_a_client_that_is_left_without_closing_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    with FaultyServer(lambda asked: say("yes")) as server, Client(plan_of(at(server.url))) as client:
        for number in range(2):
            asyncio.run(client.complete(Call("target", "rollout", (Message("user", str(number)),))))
    connections._forget_pools()
    assert not [loop for loop in connections._POOLS if loop.is_closed()]
    assert capfd.readouterr() == ("", "")


def test_neither_litellm_nor_dspy_is_imported() -> None:
    code = (
        "import asyncio, sys\n"
        "sys.path.insert(0, 'tests/models')\n"
        "from faulty_server import FaultyServer, say\n"
        "from model_plans import model, plan_of\n"
        "from skillc.models.calls import Call, Message\n"
        "from skillc.models.client import Client\n"
        "with FaultyServer([say('yes')]) as server, Client(plan_of(model(base_url=server.url))) as client:\n"
        "    client.preload()\n"
        "    asyncio.run(client.complete(Call('target', 'rollout', (Message('user', 'hello'),))))\n"
        "print({'litellm', 'dspy', 'openai', 'httpx'} & set(sys.modules))\n"
    )
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "set()\n", "")


def test_a_compile_writes_the_same_bytes_through_litellm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, prompts = {}, {}
    for way in ("own", "litellm"):
        monkeypatch.setenv("SKILLC_LITELLM", "1" if way == "litellm" else "")
        folder = shop(tmp_path / way, count=40)
        with FaultyServer(well) as server:
            done = compile_here(folder, server.url, KEY)
            prompts[way] = sorted(json.dumps(asked.body, sort_keys=True) for asked in server.asked)
        written[way] = (compiled(folder), done.spent)
    assert written["own"] == written["litellm"]
    assert prompts["own"] == prompts["litellm"]
    assert len(prompts["own"]) > 20


def test_a_call_that_litellm_has_to_change_goes_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Asked] = []

    def script(asked: Asked) -> Step:
        seen.append(asked)
        return say("yes")

    with FaultyServer(script) as server:
        found = ask(server, monkeypatch, "hosted_vllm", parameters={"user": "u"})
    assert found.completion is not None
    assert "litellm" in seen[0].headers["user-agent"]
