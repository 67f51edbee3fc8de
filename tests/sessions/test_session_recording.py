"""The recording proxy between real clients' requests and servers that play the providers."""

import asyncio
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("detect_secrets")
pytest.importorskip("presidio_analyzer")

from session_files import CHAT, DONE, REPLY, SAID

from skillc.errors import SkillcError
from skillc.sessions.audit import reason_apart
from skillc.sessions.privacy import Cleaner
from skillc.sessions.readers import recorded
from skillc.sessions.readers.registry import recognise
from skillc.sessions.recording import Recorder, serve
from skillc.sessions.session import Tokens
from skillc.sessions.streams import whole_reply
from skillc.trajectories.trajectory import Message

KEY = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"


class Provider:
    """A server on the loopback interface that answers each path with a prepared body, and keeps what it was sent."""

    def __init__(self):
        self.bodies, self.seen = {}, []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                provider.seen.append((self.path, dict(self.headers), json.loads(body)))
                status, kind, pieces = provider.bodies[self.path.split("?")[0]]
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("X-Request-Id", "r1")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in pieces:
                    if piece is None:
                        self.connection.shutdown(socket.SHUT_RDWR)
                        return
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, path, value, status=200):
        self.bodies[path] = (status, "application/json", [json.dumps(value).encode()])

    def stream(self, path, events, cut=False):
        pieces = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
        self.bodies[path] = (200, "text/event-stream", [*pieces, *([None] if cut else [b"data: [DONE]\n\n"])])

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def provider():
    made = Provider()
    yield made
    made.close()


class Proxy:
    """The recording proxy in a thread."""

    def __init__(self, upstream, path):
        self.warnings, self._stop = [], None
        self.recorder = Recorder(path, "rec", "/srv/shop", self.warnings.append, Cleaner())
        started = threading.Event()

        async def run():
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()

            def ready(port):
                self.address = f"http://127.0.0.1:{port}"
                started.set()

            await serve(self.recorder, upstream, 0, ready, self._stop)

        self._thread = threading.Thread(target=lambda: asyncio.run(run()))
        self._thread.start()
        assert started.wait(20)

    def post(self, path, value, **headers):
        data = json.dumps(value).encode()
        with urlopen(
            Request(self.address + path, data, {"Content-Type": "application/json", **headers}), timeout=20
        ) as got:
            return got.status, got.headers, got.read()

    def close(self):
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def sessions(self):
        self.close()
        return list(recorded.read(self.recorder.path))


@pytest.fixture
def proxy(provider, tmp_path):
    made = Proxy(provider.address, tmp_path / "recordings" / "rec.jsonl")
    yield made
    made.close()


def kinds(session):
    return [type(step).__name__ for step in session.steps]


def chat_reply(message):
    return {
        "model": "gpt-test",
        "choices": [{"message": message}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 5},
    }


def test_requests_and_replies_pass_unchanged_and_become_one_session(provider, proxy):
    provider.answer("/v1/chat/completions", chat_reply(CHAT[2]))
    asked = {"model": "gpt-test", "messages": CHAT[:2], "tools": [{}]}
    status, headers, body = proxy.post("/v1/chat/completions?a=1", asked, Authorization="Bearer " + KEY)
    assert (status, headers["X-Request-Id"], json.loads(body)) == (200, "r1", chat_reply(CHAT[2]))
    provider.answer("/v1/chat/completions", chat_reply(REPLY))
    proxy.post("/v1/chat/completions", {**asked, "messages": CHAT})
    path, sent, got = provider.seen[0]
    assert (path, got, sent["Authorization"]) == ("/v1/chat/completions?a=1", asked, "Bearer " + KEY)
    (session,) = proxy.sessions()
    assert [type(step).__name__ for step in session.steps] == [
        "Message",
        "Message",
        "ToolCall",
        "Observation",
        "Message",
    ]
    assert (session.tokens, session.end, session.project) == (Tokens(100, 0, 10), "finished", "/srv/shop")
    assert session.system == "Be brief."
    assert recognise(proxy.recorder.path) == "recorded"
    # Headers are not kept.
    assert KEY not in proxy.recorder.path.read_text()


def test_nothing_secret_is_written_and_a_conversation_with_marks_is_still_joined(provider, proxy):
    ask = [{"role": "user", "content": f"Use {KEY} for jo@acme.com."}]
    first = {"role": "assistant", "content": f"I use {KEY}."}
    provider.answer("/v1/chat/completions", chat_reply(first))
    proxy.post("/v1/chat/completions", {"messages": ask})
    provider.answer("/v1/chat/completions", chat_reply(REPLY))
    proxy.post("/v1/chat/completions", {"messages": [*ask, first, {"role": "user", "content": "And now?"}]})
    (session,) = proxy.sessions()
    assert [step.text for step in session.steps] == [
        "Use [github token 1] for [email 1].",
        "I use [github token 1].",
        "And now?",
        DONE,
    ]
    assert KEY not in proxy.recorder.path.read_text()
    assert proxy.recorder.path.stat().st_mode & 0o777 == 0o600


CHAT_EVENTS = [
    {"model": "m", "choices": [{"delta": {"role": "assistant", "content": "I look "}}]},
    {"model": "m", "choices": [{"delta": {"content": "at the log."}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "bash", "arguments": '{"command": '}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"cat log"}'}}]}}]},
    {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 5}},
]
ANTHROPIC_EVENTS = [
    {"type": "message_start", "message": {"role": "assistant", "model": "m", "usage": {"input_tokens": 50}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I look at "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "the log."}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "name": "bash", "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"command":'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ' "cat log"}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]
CALL_ITEM = {"type": "function_call", "name": "bash", "arguments": '{"command": "cat log"}'}
SAID_ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]}
RESPONSE = {"id": "resp1", "model": "m", "output": [SAID_ITEM, CALL_ITEM]}
RESPONSES_EVENTS = [
    {"type": "response.created", "response": {"id": "resp1"}},
    {"type": "response.output_text.delta", "delta": "I look"},
    {"type": "response.output_item.done", "item": SAID_ITEM},
    {"type": "response.output_item.done", "item": CALL_ITEM},
    {"type": "response.completed", "response": {**RESPONSE, "usage": {"input_tokens": 50, "output_tokens": 5}}},
]
STREAMS = {
    "/v1/chat/completions": (CHAT_EVENTS, {"messages": [{"role": "user", "content": "go"}]}),
    "/v1/messages": (ANTHROPIC_EVENTS, {"system": "Be brief.", "messages": [{"role": "user", "content": "go"}]}),
    "/v1/responses": (RESPONSES_EVENTS, {"instructions": "Be brief.", "input": "go"}),
}


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_passes_and_is_recorded_whole(provider, proxy, path):
    events, asked = STREAMS[path]
    provider.stream(path, events)
    _, headers, body = proxy.post(path, {**asked, "stream": True})
    assert headers["Content-Type"] == "text/event-stream"
    assert body == b"".join(provider.bodies[path][2])
    (session,) = proxy.sessions()
    user, said, call = session.steps
    assert (user, said, call.tool, call.arguments) == (
        Message("go", "user"),
        Message(SAID),
        "bash",
        {"command": "cat log"},
    )
    assert (session.tokens, session.model) == (Tokens(50, 0, 5), "m")


def test_a_response_that_names_an_earlier_one_continues_it(provider, proxy):
    provider.answer("/v1/responses", {**RESPONSE, "usage": {}})
    proxy.post("/v1/responses", {"input": "go"})
    output = {"type": "function_call_output", "output": "SyntaxError"}
    done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": DONE}]}
    provider.answer("/v1/responses", {"id": "resp2", "model": "m", "output": [done]})
    proxy.post("/v1/responses", {"previous_response_id": "resp1", "input": [output]})
    (session,) = proxy.sessions()
    assert [type(step).__name__ for step in session.steps] == [
        "Message",
        "Message",
        "ToolCall",
        "Observation",
        "Message",
    ]


@pytest.mark.parametrize("protocol_path", STREAMS)
def test_a_stream_that_breaks_off_is_a_session_without_an_end(provider, proxy, protocol_path):
    events, asked = STREAMS[protocol_path]
    provider.stream(protocol_path, events[:3], cut=True)
    with pytest.raises(Exception, match=r"(?i)incomplete|reset|closed|chunk"):
        proxy.post(protocol_path, {**asked, "stream": True})
    (session,) = proxy.sessions()
    assert session.end == "failed"
    assert reason_apart(session) in ("no end", "empty")


def test_an_error_of_the_provider_passes_and_is_no_answer(provider, proxy):
    provider.answer("/v1/chat/completions", {"error": {"message": "slow down"}}, status=429)
    with pytest.raises(HTTPError) as refused:
        proxy.post("/v1/chat/completions", {"messages": CHAT[:2]})
    assert (refused.value.code, json.loads(refused.value.read())["error"]["message"]) == (429, "slow down")
    (session,) = proxy.sessions()
    assert reason_apart(session) == "empty"


def test_a_provider_out_of_reach_is_named(tmp_path):
    proxy = Proxy("http://127.0.0.1:9", tmp_path / "rec.jsonl")
    try:
        with pytest.raises(HTTPError) as refused:
            proxy.post("/v1/chat/completions", {"messages": []})
        assert refused.value.code == 502
        assert "cannot be reached" in json.loads(refused.value.read())["error"]["message"]
    finally:
        proxy.close()


def test_a_recording_that_cannot_be_written_fails_no_call(provider, proxy):
    provider.answer("/v1/chat/completions", chat_reply(REPLY))
    proxy.recorder.path.unlink()
    proxy.recorder.path.mkdir()
    for _ in range(3):
        assert proxy.post("/v1/chat/completions", {"messages": CHAT})[0] == 200
    proxy.close()
    assert (proxy.recorder.calls, proxy.recorder.lost) == (0, 3)
    assert len(proxy.warnings) == 1


def test_other_paths_pass_and_are_not_recorded(provider, proxy):
    provider.answer("/v1/embeddings", {"data": []})
    assert proxy.post("/v1/embeddings", {"input": "x"})[0] == 200
    assert proxy.sessions() == []


def test_a_port_in_use_is_a_message(tmp_path):
    taken = Provider()
    recorder = Recorder(tmp_path / "r.jsonl", "r", "", print)

    async def run():
        await serve(recorder, "http://x", taken.server.server_address[1], print, asyncio.Event())

    with pytest.raises(SkillcError, match="is in use"):
        asyncio.run(run())
    taken.close()


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"data: {\n\ndata: [1]\n\n", b"[1, 2]", b'{"choices": 3}'])
def test_hostile_bodies_give_an_empty_reply(body):
    for protocol in ("chat", "responses", "anthropic"):
        assert isinstance(dict(whole_reply(protocol, body)), dict)
