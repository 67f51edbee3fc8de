"""A loopback server that plays the model: the Responses API for Codex, chat completions for opencode and Hermes.

It first calls the agent's shell with a command that writes a file, and then answers by what it has read of the skill.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMAND = "echo made-by-a-tool > made.txt"
PROMPT, CACHED, COMPLETION = 100, 40, 10
_SHELLS = ("bash", "terminal")


class ModelServer(ThreadingHTTPServer):
    """Records the bodies of all requests for replies."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict] = []
        self.keys: set[str] = set()
        self.refuses = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def read(self) -> str:
        """All that agents sent, as text."""
        return "\n".join(json.dumps(request, ensure_ascii=False) for request in self.requests)


@contextmanager
def model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def answer_to(text: str) -> str:
    """Answer by the first rule in a request that applies to its ticket: `mentions "a" or "b"`."""
    text = text.replace("\\n", "\n").replace('\\"', '"')
    ticket = (re.findall(r"^## ticket\n(.*)$", text, re.MULTILINE) or [""])[-1].lower()
    for rule in re.finditer(r'mentions (.*?)(?:, unless it mentions (.*?))?, answer "?([\w-]+)', text):
        wanted, unwanted = (re.findall(r'"([^"]+)"', part or "") for part in rule.groups()[:2])
        if any(word in ticket for word in wanted) and not any(word in ticket for word in unwanted):
            return rule[3]
    return "nowhere"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._reply("application/json", json.dumps({"object": "list", "data": [{"id": "tiny", "object": "model"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.refuses:
            self._reply("application/json", json.dumps({"error": {"message": "no such account"}}), 401)
        elif self.path.endswith("/responses"):
            self._record(body)
            self._reply("text/event-stream", _events(_responses(body)))
        elif self.path.endswith("/chat/completions"):
            self._record(body)
            chat = _chat(body)
            if body.get("stream"):
                self._reply("text/event-stream", _chunks(body["model"], chat))
            else:
                choice = {"index": 0, "message": {"role": "assistant", **chat[0]}, "finish_reason": chat[1]}
                reply = {"id": "c", "object": "chat.completion", "model": body["model"], "choices": [choice]}
                self._reply("application/json", json.dumps({**reply, "created": 1, "usage": _chat_usage()}))
        else:
            self._reply("application/json", "{}", 404)

    def _record(self, body: dict) -> None:
        self.server.requests.append(body)
        self.server.keys.add(self.headers.get("authorization", ""))

    def _reply(self, kind: str, text: str, status: int = 200) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _responses(body: dict) -> list[dict]:
    """The events of a reply of the Responses API."""
    events: list[dict] = [{"type": "response.created", "response": {"id": "r"}}]
    if not any(item.get("type") == "function_call_output" for item in body["input"]):
        call = {"type": "function_call", "id": "f", "call_id": "call", "name": "exec_command"}
        item = {**call, "arguments": json.dumps({"cmd": COMMAND})}
        events.append({"type": "response.output_item.added", "output_index": 0, "item": item})
    else:
        text = answer_to(json.dumps(body))
        item = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        events.append({"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}})
        delta = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0}
        events.append({**delta, "delta": text})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    usage = {
        "input_tokens": PROMPT,
        "input_tokens_details": {"cached_tokens": CACHED},
        "output_tokens": COMPLETION,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": PROMPT + COMPLETION,
    }
    return [*events, {"type": "response.completed", "response": {"id": "r", "usage": usage}}]


def _events(events: list[dict]) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _chat(body: dict) -> tuple[dict, str]:
    """The message of a chat completion, and why it ended."""
    tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    shell = next((name for name in _SHELLS if name in tools), None)
    if shell is None or any(message["role"] == "tool" for message in body["messages"]):
        return {"content": answer_to(json.dumps(body))}, "stop"
    arguments = {"command": COMMAND, **({"description": "write a file"} if shell == "bash" else {})}
    function = {"name": shell, "arguments": json.dumps(arguments)}
    return {
        "content": None,
        "tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}],
    }, "tool_calls"


def _chat_usage() -> dict:
    counts = {"prompt_tokens": PROMPT, "completion_tokens": COMPLETION, "total_tokens": PROMPT + COMPLETION}
    return {**counts, "prompt_tokens_details": {"cached_tokens": CACHED}}


def _chunks(model: str, chat: tuple[dict, str]) -> str:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
    deltas = [({"role": "assistant", **chat[0]}, None), ({}, chat[1])]
    chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]
    chunks.append({**base, "choices": [], "usage": _chat_usage()})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
