"""Whole compiles through DSPy and litellm against a server on this machine that fails as servers do."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from whole_runs import PROGRAM, no_wait, planned_job
from worlds import ANSWERS, World, coin, proposer

from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.models.pace import RetryPolicy
from skillc.optimize.host import SilentObserver
from skillc.outcomes import Example
from skillc.pipeline.compile import Compiled, Job, compile_job

SETTINGS = ("budget.steps=3", "optimize.batch=6")
WORLD = World(share=0.4, worth=0.5)


class Server(ThreadingHTTPServer):
    """A target and an optimizer; `fails` names how the target fails on a question, or None."""

    daemon_threads = True

    def __init__(self, fails: Callable[[str, str], str | None]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.fails = fails
        self.propose = proposer("server", edits=2, helpful=0.9)
        self.asked = 0
        self.failed: Counter[str] = Counter()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = [str(message["content"]) for message in body["messages"]]
        if body["model"] == "sage":
            self.server.asked += 1
            rules = self.server.propose((self.server.asked,))
            edits = [{"op": "add", "section": "rules", "text": rule, "cures": ["t1", "t2", "t3"]} for rule in rules]
            self.say(json.dumps({"summary": "-", "edits": edits}))
            return
        found = re.search(r"question (\d+) of \d+", texts[-1])
        assert found is not None
        question = found[0]
        how = self.server.fails(question, texts[0])
        if how is not None:
            self.server.failed[how] += 1
        if how == "503":
            self.answer(503, {"error": {"message": "the server is overloaded", "type": "server_error"}})
        elif how == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif how == "garbage":
            self.answer(200, {"nothing": "of use"})
        elif how == "empty":
            self.say("")
        elif how == "cut":
            self.say("[[ ## answer ## ]]\nri", finish="length")
        else:
            example = Example(question, {}, {}, {}, question)
            answer = ANSWERS[0] if WORLD.right(texts[0], example, 0) else ANSWERS[1]
            self.say(f"[[ ## answer ## ]]\n{answer}\n\n[[ ## completed ## ]]")

    def say(self, text: str, finish: str = "stop") -> None:
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 300, "completion_tokens": 9, "total_tokens": 309}
        choices = [{"index": 0, "finish_reason": finish, "message": message}]
        whole = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "stub",
            "choices": choices,
            "usage": usage,
        }
        self.answer(200, whole)

    def answer(self, status: int, value: Any) -> None:
        sent = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[str, str], str | None]], Server]]:
    servers: list[Server] = []

    def start(fails: Callable[[str, str], str | None]) -> Server:
        server = Server(fails)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def compiled(folder: Path, server: Server, examples: int = 60) -> tuple[Compiled, SilentObserver, Job]:
    address = f"http://127.0.0.1:{server.server_port}/v1"
    program = PROGRAM.replace("http://localhost:9", address)
    job = planned_job(folder, examples=examples, program=program, settings=SETTINGS)
    watch = SilentObserver()
    with Client(job.planned.plan, retries=RetryPolicy(2, 0, 0, patience=0), sleep=no_wait, concurrency=8) as client:
        return compile_job(job, watch, client), watch, job


WAYS = ("503", "drop", "garbage", "empty", "cut")


def by_hash(share: float, only_with_rules: bool = False) -> Callable[[str, str], str | None]:
    """Fails for good on a share of (skill, question), and in one way for each."""

    def fails(question: str, skill: str) -> str | None:
        rules = "Mind point" in skill or "Read the second" in skill
        told = skill if only_with_rules else ""
        if (only_with_rules and not rules) or coin("server", question, told) >= share:
            return None
        return WAYS[int(coin("way", question) * len(WAYS))]

    return fails


def test_thirty_percent_that_fail_for_good_stop_the_run_with_a_message_that_says_what_failed(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(by_hash(0.3))
    with pytest.raises(SkillcError) as stopped:
        compiled(tmp_path, server)
    message = str(stopped.value)
    found = re.match(
        r"(\d+) of (\d+) validation examples could not be measured with the initial skill: .*?failed \((\d.*?)\)",
        message,
    )
    assert found is not None, message
    counts = {kind: int(count) for count, kind in (part.split(" ") for part in found[3].split(", "))}
    assert sum(counts.values()) == int(found[1])
    assert set(counts) <= {"transport", "empty", "cut"}
    assert ": model `target` (`openai/stub`) failed (" in message
    assert "Traceback" not in message
    assert not (tmp_path / "skills").exists()
    assert server.asked == 0


@pytest.mark.parametrize(
    ("way", "kind", "words"),
    [
        ("503", "transport", r": status 503: the server is overloaded, 2 attempts$"),
        ("drop", "transport", r": the connection closed before the reply was complete, 2 attempts$"),
        ("empty", "empty", r"the reply contains no text"),
        ("cut", "cut", r"the reply was cut at its limit, after 9 tokens$"),
    ],
)
def test_each_way_to_fail_is_named(
    tmp_path: Path, serve: Callable[..., Server], way: str, kind: str, words: str
) -> None:
    server = serve(lambda question, skill: way)
    with pytest.raises(SkillcError) as stopped:
        compiled(tmp_path, server, examples=20)
    message = str(stopped.value)
    total = message.split(" of ")[1].split(" ")[0]
    assert message.startswith(f"{total} of {total} validation examples could not be measured")
    assert f"({total} {kind})" in message
    assert re.search(words, message), message


def test_failures_of_candidates_leave_no_trace_in_accepts_and_rejects(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    """Five percent fail under each text with rules: decisions are made on what was measured, the test says how much."""
    lost: dict[str, set[str]] = {}
    hashed = by_hash(0.05, only_with_rules=True)

    def fails(question: str, skill: str) -> str | None:
        how = hashed(question, skill)
        if how is not None:
            lost.setdefault(skill, set()).add(question)
        return how

    result, watch, job = compiled(tmp_path, serve(fails))
    assert lost
    results = [record["result"] for record in watch.decisions]
    assert set(results) <= {"accept", "reject", "undecided", "empty"}
    test = {str(example.inputs["question"]) for example in job.estimated.dataset.test}
    verdict = result.tested.verdict
    assert verdict.n in {len(test - questions) for questions in lost.values()} | {0, len(test)}
    assert result.lock.quarantined == ()


@pytest.mark.thorough
def test_a_target_that_recovers_leaves_the_same_bytes_as_one_that_never_failed(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    seen: Counter[str] = Counter()

    def first_only(question: str, skill: str) -> str | None:
        key = f"{question}\0{skill}"
        seen[key] += 1
        return "503" if seen[key] == 1 and coin("once", key) < 0.3 else None

    calm, stormy = serve(lambda question, skill: None), serve(first_only)
    for name, server in (("calm", calm), ("stormy", stormy)):
        compiled(tmp_path / name, server, examples=40)
    assert stormy.failed["503"]
    for name in ("guess/SKILL.md", "guess.history.jsonl"):
        left, right = (tmp_path / run / "skills" / name for run in ("calm", "stormy"))
        ours, theirs = left.read_text(), right.read_text()
        if name == "guess.history.jsonl":
            # The run's name holds the server's address, which differs, and the links begin with that name.
            ours, theirs = (re.sub(r'"(run|link)": ?"[0-9a-f]+"', "", text) for text in (ours, theirs))
        assert ours == theirs
