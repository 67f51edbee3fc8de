"""A server on the loopback that speaks the OpenAI chat protocol and answers as the rulebook does."""

import contextlib
import hashlib
import json
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from skillc.models.preflight import QUESTION
from skillc.models.rulebook import answer, answer_with_tools
from skillc.tokens import count_tokens


class Loopback(ThreadingHTTPServer):
    """Counts what it is asked.

    Attributes:
        asked: how often each prompt came.
        latency: seconds before an answer.
        fails: given the body, says whether this request gets a 503.
        replies: given the messages, returns a text in place of the rulebook's, or None.
        model: the name that it gives itself; None echoes the one that was asked for.
        dies: given the body and the requests so far, says whether the server dies by this request.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, latency=0.0, port=0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.asked = Counter()
        self.latency = latency
        self.fails = None
        self.replies = None
        self.model = None
        self.dies = None
        self.died = threading.Event()
        self._open = set()
        self._heard = threading.Condition()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def url(self):
        """For `base_url`."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def total(self):
        """Requests so far."""
        return self.asked.total()

    def heard(self, body):
        """Notes a request; the one question of each session's preflight is no part of the run."""
        if body["messages"][-1]["content"] == QUESTION:
            return
        with self._heard:
            self.asked[hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()] += 1
            self._heard.notify_all()
        if self.dies is not None and not self.died.is_set() and self.dies(body, self.total):
            self.kill()

    def kill(self):
        """Dies as a process does: nobody listens any more, and all connections are reset."""
        self.died.set()
        self.shutdown()
        self.server_close()
        for request in list(self._open):
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def revived(self):
        """Another server at the same address, which counts anew."""
        return Loopback(self.latency, self.server_address[1])

    def get_request(self):
        """Keeps the connection, so that `kill` can end it."""
        request, address = super().get_request()
        self._open.add(request)
        return request, address

    def shutdown_request(self, request):
        """The connection is over."""
        self._open.discard(request)
        super().shutdown_request(request)

    def wait_for(self, total, seconds=600):
        """Waits until so many requests have come, in all."""
        with self._heard:
            return self._heard.wait_for(lambda: self.asked.total() >= total, seconds)

    def handle_error(self, request, client_address):
        """A client that was killed is no news."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.died.is_set():
            self.shutdown()
            self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.heard(body)
        time.sleep(self.server.latency)
        if self.server.died.is_set():
            self.close_connection = True
            return
        if self.server.fails and self.server.fails(body):
            self._send(503, {"error": {"message": "overloaded"}})
            return
        parameters = {name: body[name] for name in ("max_tokens", "temperature") if name in body}
        text = self.server.replies(body["messages"]) if self.server.replies else None
        if text is None and not body.get("tools"):
            text = answer(body["messages"], parameters)
        message = {"role": "assistant", "content": text}
        if text is None:
            message = answer_with_tools(body["messages"], body["tools"], parameters)
            text = str(message)
        prompt = sum(count_tokens(str(message["content"])) for message in body["messages"])
        usage = {"prompt_tokens": prompt, "completion_tokens": count_tokens(text)}
        usage["total_tokens"] = sum(usage.values())
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if body.get("tools") else "stop"}
        name = self.server.model or body["model"]
        self._send(200, {"id": "x", "object": "chat.completion", "model": name, "choices": [choice], "usage": usage})

    def _send(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass
