"""The whole way through litellm, against a server on this machine."""

from __future__ import annotations

import subprocess
import sys

import pytest
from faulty_server import FaultyServer, answer, refuse, say
from wire_calls import KEY, ask


@pytest.fixture(autouse=True)
def through_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLC_LITELLM", "1")


ENVELOPE = {"sample", "timeout", "num_retries"}


def test_one_attempt_is_one_request_with_what_was_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyServer([say("yes", model="stub-1", cached=4)]) as server:
        completion = ask(server, monkeypatch, parameters={"temperature": 0}).completion
        assert completion is not None
        assert (completion.text, completion.model) == ("yes", "stub-1")
        assert (completion.usage.prompt, completion.usage.cached, completion.usage.completion) == (11, 4, 3)
        asked = server.asked[0]
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.body["model"] == "gpt-4o-mini"
        assert asked.body["messages"] == [{"role": "system", "content": "skill"}, {"role": "user", "content": "hello"}]
        assert (asked.body["temperature"], asked.body["max_tokens"]) == (0, 99)
        assert not ENVELOPE & set(asked.body)


def test_anthropics_protocol_takes_the_same_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyServer([say("yes", model="claude-1", cached=4)]) as server:
        completion = ask(server, monkeypatch, "anthropic").completion
        assert completion is not None
        assert (completion.text, completion.model) == ("yes", "claude-1")
        assert (completion.usage.prompt, completion.usage.cached, completion.usage.completion) == (11, 4, 3)
        asked = server.asked[0]
        assert asked.path == "/v1/messages"
        assert asked.headers["x-api-key"] == KEY
        assert "authorization" not in asked.headers
        assert asked.body["max_tokens"] == 99
        assert not ENVELOPE & set(asked.body)


def test_429_503_and_broken_replies_are_retried_as_the_server_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [
        refuse(429, "slow down", headers={"retry-after": "7"}),
        refuse(503, "overloaded"),
        answer(200, "<html>no json", "text/html"),
        say("at last"),
    ]
    with FaultyServer(steps) as server:
        asked = ask(server, monkeypatch, attempts=6)
        assert asked.completion is not None
        assert asked.completion.text == "at last"
        assert server.total == 4
        assert 7 <= max(asked.waited) <= 8


def test_offline_opens_no_socket_and_says_nothing() -> None:
    code = (
        "import asyncio, socket, sys\n"
        "def refuse(*_):\n    raise AssertionError('a socket was connected')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "sys.path.insert(0, 'tests/models')\n"
        "from model_plans import plan_of\n"
        "from skillc.models.calls import Call, Message\n"
        "from skillc.models.client import Client\n"
        "with Client(plan_of(), offline=True, preflight=True) as client:\n"
        "    asyncio.run(client.complete(Call('target', 'rollout', (Message('user', 'hello'),))))\n"
    )
    done = subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
