"""`python -m benchmarks.client.server`: an OpenAI-compatible address that answers late, or admits only so many.

A process of its own, as cheap as asyncio allows, so that the client is what is measured. Prints its port; for each
line on standard input it prints one JSON object: the requests served and refused, the processor seconds used, and the
seconds from the first request to the last answer, all since the line before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import sys
import time

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
# As DSPy's adapter reads it.
ANSWER = "[[ ## answer ## ]]\nbilling\n\n[[ ## completed ## ]]"
_REPLY = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "stub",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
    "usage": {"prompt_tokens": 900, "completion_tokens": 1, "total_tokens": 901},
}


def response(status: str, body: object, headers: str = "") -> bytes:
    said = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {len(said)}\r\n\r\n"
    return head.encode() + said


class Counts:
    """What happened since the last look."""

    def __init__(self) -> None:
        self.served = self.refused = 0
        self.first, self.last = math.inf, -math.inf
        self.busy = time.process_time()

    def as_json(self) -> str:
        seconds = max(0.0, self.last - self.first)
        spent = time.process_time() - self.busy
        return json.dumps({"served": self.served, "refused": self.refused, "processor": spent, "seconds": seconds})


class Admission:
    """A token bucket of one second's worth; everything where the rate is 0."""

    def __init__(self, rate: float) -> None:
        self._rate, self._level, self._at = rate, rate, time.monotonic()

    def __call__(self) -> bool:
        if not self._rate:
            return True
        now = time.monotonic()
        self._level = min(self._rate, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True


class Server:
    """Answers of one process."""

    def __init__(self, latency: float, rate: float, retry_after: str) -> None:
        self.latency, self.admits = latency, Admission(rate)
        self.counts = Counts()
        self.yes = response("200 OK", _REPLY)
        hint = f"retry-after: {retry_after}\r\n" if retry_after else ""
        self.no = response("429 Too Many Requests", {"error": {"message": "slow down", "type": "rate"}}, hint)


class Connection(asyncio.Protocol):
    """One connection, kept alive; one request at a time on it, as clients send them."""

    def __init__(self, server: Server) -> None:
        self._server, self._seen = server, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._seen += data
        end = self._seen.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._seen, 0, end)
        whole = end + 4 + (int(length[1]) if length else 0)
        if len(self._seen) < whole:
            return
        self._seen = self._seen[whole:]
        counts = self._server.counts
        counts.first = min(counts.first, time.monotonic())
        admitted = self._server.admits()
        asyncio.get_running_loop().call_later(self._server.latency, self._answer, admitted)

    def _answer(self, admitted: bool) -> None:
        counts = self._server.counts
        counts.served += admitted
        counts.refused += not admitted
        counts.last = time.monotonic()
        if not self._transport.is_closing():
            self._transport.write(self._server.yes if admitted else self._server.no)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--retry-after", default="")
    options = parser.parse_args()
    made = Server(options.latency, options.rate, options.retry_after)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(made), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(made.counts.as_json(), flush=True)
        made.counts = Counts()


if __name__ == "__main__":
    asyncio.run(main())
