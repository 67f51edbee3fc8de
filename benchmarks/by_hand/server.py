"""A loopback chat-completions server that waits for replies in files.

A request becomes FOLDER/NNNN.prompt.md, numbered in order of arrival. The reply is FOLDER/NNNN.reply.md, written by
`python -m benchmarks.by_hand answer`. The server never times out. FOLDER/calls.jsonl records each answered call.

A prompt whose client went away keeps its number: the same prompt sent again takes over that number and its reply.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import select
import socket
import threading
import time
from collections import defaultdict, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.by_hand.recording import Recording, UnknownPromptError, calls_in

POLL = 0.25
PREFLIGHT = "word ok"
PREFLIGHT_LENGTH = 200


def prompt_of(messages: list[dict[str, Any]]) -> str:
    """Render messages as one text, each under its role."""
    return "\n\n".join(f"===== {message['role']} =====\n{_text(message)}" for message in messages)


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class Folder:
    """Prompts and replies of one model as files.

    Prompts that an earlier server left open are orphans: the next identical prompt adopts one.

    Args:
        path: the folder.
        reuse: answer a prompt like an identical one that an earlier server answered.
    """

    def __init__(self, path: Path, *, reuse: bool = False) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.known = {call.prompt: call.reply for call in calls_in(path)} if reuse else {}
        self._lock = threading.Lock()
        self._orphans: dict[str, deque[int]] = defaultdict(deque)
        self._last = 0
        recorded = {json.loads(line)["call"] for line in self._lines()}
        for file in sorted(path.glob("*.prompt.md")):
            number = int(file.name.split(".")[0])
            self._last = max(self._last, number)
            if number not in recorded:
                self._orphans[file.read_text(encoding="utf-8")].append(number)

    def take(self, prompt: str) -> int:
        """Write a prompt and return its number."""
        with self._lock:
            if self._orphans[prompt]:
                return self._orphans[prompt].popleft()
            self._last += 1
            part = self.path / f"{self._last:04}.prompt.part"
            part.write_text(prompt, encoding="utf-8")
            part.rename(part.with_suffix(".md"))
            return self._last

    def leave(self, number: int, prompt: str) -> None:
        """Make a prompt an orphan because its client went away."""
        with self._lock:
            self._orphans[prompt].append(number)

    def reply(self, number: int) -> str | None:
        """Return the reply; None while there is none."""
        try:
            return (self.path / f"{number:04}.reply.md").read_text(encoding="utf-8").rstrip("\n")
        except FileNotFoundError:
            return None

    def record(self, call: dict[str, Any]) -> None:
        """Append an answered call to calls.jsonl."""
        with self._lock, (self.path / "calls.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(call, ensure_ascii=False) + "\n")

    def _lines(self) -> list[str]:
        try:
            return (self.path / "calls.jsonl").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []


class Server(ThreadingHTTPServer):
    """Answers chat completions from a folder, or from a recording.

    Args:
        source: a folder to wait in, or a recording to replay.
        port: 0 takes a free port.
    """

    request_queue_size = 512
    daemon_threads = True

    def __init__(self, source: Folder | Recording, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.source = source

    @property
    def url(self) -> str:
        """The base URL that a program names."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def start(self) -> Server:
        """Serve on a thread."""
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": "person", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = prompt_of(body["messages"])
        if len(prompt) < PREFLIGHT_LENGTH and PREFLIGHT in prompt:
            self._complete(body, prompt, "ok")
        elif isinstance(self.server.source, Recording):
            try:
                self._complete(body, prompt, self.server.source.reply(prompt))
            except UnknownPromptError:
                self._send(400, {"error": {"message": "the recording has no such prompt", "type": "invalid_request"}})
        else:
            self._wait(self.server.source, body, prompt)

    def _wait(self, folder: Folder, body: dict[str, Any], prompt: str) -> None:
        if prompt in folder.known:
            self._complete(body, prompt, folder.known[prompt])
            return
        number, arrived = folder.take(prompt), time.time()
        while (reply := folder.reply(number)) is None:
            time.sleep(POLL)
            if self._gone():
                folder.leave(number, prompt)
                self.close_connection = True
                return
        if not self._complete(body, prompt, reply):
            folder.leave(number, prompt)
            return
        digest = hashlib.sha256(prompt.encode()).hexdigest()[:16]
        seconds = round(time.time() - arrived, 1)
        folder.record(
            {"call": number, "prompt": digest, "arrived": round(arrived, 1), "waited": seconds, **_usage(prompt, reply)}
        )

    def _gone(self) -> bool:
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _complete(self, body: dict[str, Any], prompt: str, reply: str) -> bool:
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
        return self._send(
            200,
            {
                "id": "by-hand",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": body.get("model", "person"),
                "choices": [choice],
                "usage": _usage(prompt, reply),
            },
        )

    def _send(self, status: int, body: dict[str, Any]) -> bool:
        raw = json.dumps(body).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)
            return True
        return False


def _usage(prompt: str, reply: str) -> dict[str, int]:
    """Count tokens at four characters each."""
    sent, got = max(1, len(prompt) // 4), max(1, len(reply) // 4)
    return {"prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got}
