"""The whole way through litellm, against a server on this machine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from model_plans import model, plan_of

from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed, PermanentFailure

KEY = "sk-planted-0123456789abcdef"


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, dict[str, str], Any]] = []
        self.seen: list[tuple[dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((dict(self.headers), body))
        status, headers, answer = self.server.answers.pop(0)
        sent = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


def whole(text: str, finish: str = "stop") -> dict[str, Any]:
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "stub-1",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": {
            "prompt_tokens": 11,
            "completion_tokens": 3,
            "total_tokens": 14,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    }


def error(text: str) -> dict[str, Any]:
    return {"error": {"message": text, "type": "x", "code": None}}


def ask(server: Server, monkeypatch: pytest.MonkeyPatch, waited: list[float] | None = None) -> Any:
    monkeypatch.setenv("TEAM_KEY", KEY)

    async def sleep(seconds: float) -> None:
        if waited is not None:
            waited.append(seconds)

    plan = plan_of(model(base_url=server.url, key_env="TEAM_KEY", parameters={"temperature": 0}, max_reply=99))
    with Client(plan, sleep=sleep) as client:
        call = Call("target", "rollout", (Message("system", "skill"), Message("user", "hello")))
        return asyncio.run(client.complete(call))


def test_one_attempt_is_one_request_with_what_was_declared(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers = [(200, {}, whole("yes"))]
    completion = ask(server, monkeypatch)
    assert (completion.text, completion.model) == ("yes", "stub-1")
    assert (completion.usage.prompt, completion.usage.cached, completion.usage.completion) == (11, 4, 3)
    headers, body = server.seen[0]
    assert headers["authorization"] == f"Bearer {KEY}" or headers["Authorization"] == f"Bearer {KEY}"
    assert body["model"] == "gpt-4o-mini"
    assert body["messages"] == [{"role": "system", "content": "skill"}, {"role": "user", "content": "hello"}]
    assert (body["temperature"], body["max_tokens"]) == (0, 99)
    assert not {"sample", "timeout", "num_retries"} & set(body)


def test_429_503_and_broken_replies_are_retried_as_the_server_asks(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = [
        (429, {"retry-after": "7"}, error("slow down")),
        (503, {}, error("overloaded")),
        (200, {}, "<html>no json"),
        (200, {}, whole("at last")),
    ]
    waited: list[float] = []
    assert ask(server, monkeypatch, waited).text == "at last"
    assert len(server.seen) == 4
    assert 7 <= waited[0] <= 8


@pytest.mark.parametrize(
    ("status", "text", "hint"),
    [
        (401, f"Incorrect API key provided: {KEY}", "`TEAM_KEY`"),
        (404, "The model does not exist", "model's name"),
        (400, "Unsupported value", "parameters"),
        (429, "You exceeded your current quota: insufficient_quota", "account"),
    ],
)
def test_permanent_errors_stop_at_once_and_keep_the_secret(
    server: Server, monkeypatch: pytest.MonkeyPatch, status: int, text: str, hint: str
) -> None:
    server.answers = [(status, {}, error(text))]
    with pytest.raises(PermanentFailure) as failed:
        ask(server, monkeypatch)
    assert hint in str(failed.value.hint)
    assert server.url in failed.value.message
    assert KEY not in failed.value.message
    assert len(server.seen) == 1


def test_a_cut_and_an_empty_reply_have_their_kinds(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers = [(200, {}, whole("half", "length")), (200, {}, whole(""))]
    kinds = []
    for _ in range(2):
        with pytest.raises(CallFailed) as failed:
            ask(server, monkeypatch)
        kinds.append(failed.value.kind)
    assert kinds == ["cut", "empty"]


def test_a_server_that_is_not_there_is_transient(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.server_close()
    with pytest.raises(CallFailed) as failed:
        ask(server, monkeypatch)
    assert failed.value.kind == "transient"


def test_offline_opens_no_socket_and_says_nothing() -> None:
    code = (
        "import asyncio, socket, sys\n"
        "def refuse(*_):\n    raise AssertionError('a socket was connected')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "sys.path.insert(0, 'tests/models')\n"
        "from model_plans import plan_of\n"
        "from skillc.models.calls import Call, Message\n"
        "from skillc.models.client import Client\n"
        "with Client(plan_of(), offline=True) as client:\n"
        "    asyncio.run(client.complete(Call('target', 'rollout', (Message('user', 'hello'),))))\n"
    )
    done = subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
