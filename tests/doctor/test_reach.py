"""Which models answer, over loopback servers; and that nothing is sent unasked."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from model_plans import Scripted, model, plan_of, reply

from skillc.doctor.reach import CallResults, describe_cost, prepare_calls, send_calls, skip_calls
from skillc.models.backends.litellm import load_litellm
from skillc.models.endpoint import Transport
from skillc.plan.schema import ExecPlan, Plan, PricePlan

HERE = Path()
KEY = "sk-planted-0123456789abcdef"


class Server(ThreadingHTTPServer):
    """Answers each POST with one status and body; `hang` lets it wait for its end instead."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.body, self.hang = 200, json.dumps(reply("ok")), False
        self.seen: list[dict[str, Any]] = []
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.seen.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        if self.server.hang:
            self.server.ended.wait(20)
            return
        sent = self.server.body.encode()
        self.send_response(self.server.status)
        self.send_header("content-type", "application/json")
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
    made.ended.set()
    made.shutdown()
    made.server_close()


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Import all that the first call of litellm imports, which takes seconds on a busy machine."""
    messages = [{"role": "user", "content": "x"}]
    asyncio.run(load_litellm().acompletion(model="openai/x", messages=messages, mock_response="y"))


def reached(plan: Plan, transport: Transport | None = None, *, timeout: float = 20) -> CallResults:
    return asyncio.run(send_calls(prepare_calls(plan, HERE), transport, timeout=timeout))


def test_a_model_that_answers_is_asked_once_and_little(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    found = reached(plan_of(model(base_url=server.url, key_env="TEAM_KEY", parameters={"temperature": 0})))
    (finding,) = found.findings
    assert (finding.level, finding.what, found.roles) == ("ok", "target", {"target"})
    assert "`TEAM_KEY` set" in finding.detail
    assert "answers as `m`" in finding.detail
    assert KEY not in str(found)
    assert [(sent["max_tokens"], sent["model"]) for sent in server.seen] == [(4096, "gpt-4o-mini")]


@pytest.mark.parametrize(
    ("status", "body", "said", "fix"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, "", "`TEAM_KEY`"),
        (404, {"error": {"message": "The model does not exist"}}, "does not exist", "name"),
        (400, {"error": {"message": "max_tokens is too large"}}, "too large", "parameters"),
    ],
)
def test_a_server_that_refuses_says_why_and_what_to_do(
    server: Server, monkeypatch: pytest.MonkeyPatch, status: int, body: dict[str, Any], said: str, fix: str
) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    server.status, server.body = status, json.dumps(body)
    found = reached(plan_of(model(base_url=server.url, key_env="TEAM_KEY")))
    (finding,) = found.findings
    assert (finding.level, found.roles) == ("missing", frozenset())
    assert said in finding.detail
    assert fix in str(finding.fix)
    assert "--offline" in str(finding.fix)
    assert KEY not in str(found)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_is_too_busy_is_there(server: Server, status: int) -> None:
    server.status, server.body = status, json.dumps({"error": {"message": "slow down"}})
    found = reached(plan_of(model(base_url=server.url)))
    (finding,) = found.findings
    assert (finding.level, found.roles) == ("note", {"target"})
    assert "slow down" in finding.detail


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_reply_that_is_cut_or_kept_back_came_from_the_model_all_the_same(server: Server, finish: str) -> None:
    server.body = json.dumps(reply("o", finish=finish))
    assert reached(plan_of(model(base_url=server.url))).roles == {"target"}


def test_nobody_there_and_somebody_who_never_answers(server: Server) -> None:
    server.hang = True
    plan = plan_of(model("here", base_url=server.url), model("nowhere", base_url=closed_port()))
    found = reached(plan, timeout=0.5)
    assert [finding.level for finding in found.findings] == ["missing", "missing"]
    assert all("--offline" in str(finding.fix) for finding in found.findings)
    assert "no reply within 0.5 s" in found.findings[0].detail
    assert "no connection to `127.0.0.1`" in found.findings[1].detail


def test_a_server_that_skillc_starts_may_not_answer_yet() -> None:
    served = model("served", name="hosted_vllm/m", base_url=closed_port(), serve={"max_len": 512})
    (finding,) = reached(plan_of(served)).findings
    assert finding.level == "note"
    ready = prepare_calls(plan_of(model("served", name="hosted_vllm/m", base_url=None, serve={})), HERE)
    assert ready.calls == ()
    assert ready.findings[0].level == "ok"


def test_a_missing_key_or_address_is_found_without_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    plan = plan_of(
        model("keyless", base_url=None),
        model("lost", base_url=None, base_url_env="ADDRESS"),
        model("unserved", name="hosted_vllm/m", base_url=None),
    )
    ready = prepare_calls(plan, HERE)
    assert ready.calls == ()
    assert [finding.level for finding in ready.findings] == ["missing"] * 3
    for finding, said in zip(ready.findings, ("OPENAI_API_KEY", "ADDRESS", "base_url"), strict=True):
        assert said in f"{finding.detail} {finding.fix}"
        assert "--offline" in str(finding.fix)


def test_nothing_is_sent_unasked_and_the_cost_is_said_before(server: Server) -> None:
    price = PricePlan(input=Fraction(1), output=Fraction(4))
    plan = plan_of(model("a", base_url=server.url, price=price), model("b", base_url=server.url, price=price))
    ready = prepare_calls(plan, HERE)
    told = skip_calls(ready)
    assert [finding.level for finding in told.findings] == ["ok", "ok"]
    assert told.roles == frozenset()
    # At most a token for each byte of the question and what stands around it, and a whole reply, for both.
    calls, _, rest = describe_cost(ready).partition(", for at most $")
    assert calls == "sends one test call to 2 models"
    assert 2 * 4096 * 4000 < float(rest.partition(";")[0]) * 10**9 < 2 * 4096 * 4000 + 2 * 400_000
    assert not server.seen
    asyncio.run(send_calls(ready))
    assert len(server.seen) == 2
    unknown = prepare_calls(plan_of(model(name="openai/own", base_url=server.url)), HERE)
    assert "at an unknown price" in describe_cost(unknown)


def test_a_cap_of_the_program_does_not_stop_the_question() -> None:
    transport = Scripted()
    plan = plan_of(model(), calls=0, cost=Fraction(0))
    found = reached(plan, transport)
    assert found.roles == {"target"}


def test_the_rulebook_is_built_in_and_asked_nothing() -> None:
    plan = plan_of(
        model("target", name="rulebook/v1", base_url=None), model("optimizer", name="rulebook/v1", base_url=None)
    )
    ready = prepare_calls(plan, HERE)
    assert [finding.level for finding in ready.findings] == ["ok", "ok"]
    assert ready.calls == ()


def test_a_command_is_looked_for_and_never_run(tmp_path: Path) -> None:
    tool = tmp_path / "tool.sh"
    tool.write_text("#!/bin/sh\ntouch ran\necho ok\n")
    own = model(name="exec/tool", base_url=None, exec=ExecPlan(command=("./tool.sh", "{prompt}")))
    missing = prepare_calls(plan_of(own), tmp_path)
    assert missing.findings[0].level == "missing"
    assert "chmod" in str(missing.findings[0].fix)
    tool.chmod(0o755)
    ready = prepare_calls(plan_of(own), tmp_path)
    assert (ready.calls, ready.findings[0].level) == ((), "ok")
    assert not (tmp_path / "ran").exists()


def test_a_name_that_the_environment_does_not_hold_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_MODEL", raising=False)
    ready = prepare_calls(plan_of(model(name="", model_env="SHOP_MODEL", base_url=None)), HERE)
    assert "SHOP_MODEL" in ready.findings[0].detail
    assert "--offline" in str(ready.findings[0].fix)
