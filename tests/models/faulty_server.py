"""A server on the loopback that speaks the OpenAI chat protocol and Anthropic's, and fails as servers do.

What it does with a request is a step: `say`, `refuse`, `cut_off`, ... The steps come from a list, one a request, or
from a function of the request. Both protocols are answered by the same step, each in its own words:

    with FaultyServer([refuse(429, headers={"retry-after": "7"}), say("yes")]) as server:
        ... base_url = server.url ("openai/x", "hosted_vllm/x") or server.root ("anthropic/claude-x")
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_REASONS = {200: "OK", 301: "Moved Permanently", 307: "Temporary Redirect", 429: "Too Many Requests"}
_STOPS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
# How a connection with TLS begins.
_HANDSHAKE = b"\x16"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Asked:
    """A request. Names of headers are in lower case; `body` is what was sent as JSON."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def anthropic(self) -> bool:
        """Whether it came in Anthropic's protocol."""
        return self.path.split("?")[0].endswith("/messages")

    @property
    def text(self) -> str:
        """The last message's text."""
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)


@dataclass
class Exchange:
    """One request with the way to answer it."""

    asked: Asked
    server: FaultyServer
    _writer: asyncio.StreamWriter = field(repr=False)
    keeps_open: bool = True

    async def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def head(self, status: int, headers: Mapping[str, str], version: str = "1.1") -> None:
        """The status line and the headers."""
        lines = [f"HTTP/{version} {status} {_REASONS.get(status, 'Told So')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def whole(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A whole answer; JSON unless the headers say otherwise."""
        said = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
        await self.head(status, said)
        await self.send(body)

    def hang_up(self, *, reset: bool = False) -> None:
        """Ends the connection, by a reset where asked."""
        self.keeps_open = False
        if reset:
            peer = self._writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()


# What the server does with one request.
Step = Callable[[Exchange], Awaitable[None]]
Script = Callable[[Asked], Step]


# ---- steps ----------------------------------------------------------------------------------------


def body_of(
    asked: Asked,
    text: str,
    finish: str = "stop",
    usage: tuple[int, int] | None = (11, 3),
    model: str | None = None,
    cached: int = 0,
) -> dict[str, Any]:
    """A whole reply in the protocol of the request; `usage` counts prompt and reply, `cached` a part of the prompt."""
    name = model or str(asked.body.get("model", ""))
    if asked.anthropic:
        reply: dict[str, Any] = {
            "id": "msg_x",
            "type": "message",
            "role": "assistant",
            "model": name,
            "content": [{"type": "text", "text": text}] if text else [],
            "stop_reason": _STOPS.get(finish, finish),
            "stop_sequence": None,
        }
        if usage is not None:
            counts = {"input_tokens": usage[0] - cached, "output_tokens": usage[1]}
            reply["usage"] = {**counts, "cache_read_input_tokens": cached} if cached else counts
        return reply
    reply = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": name,
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
    }
    if usage is not None:
        details = {"prompt_tokens_details": {"cached_tokens": cached}} if cached else {}
        counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        reply["usage"] = {**counts, **details}
    return reply


def say(
    text: str = "hi",
    finish: str = "stop",
    usage: tuple[int, int] | None = (11, 3),
    model: str | None = None,
    cached: int = 0,
    headers: Mapping[str, str] | None = None,
) -> Step:
    """A whole reply. Lone surrogates travel as JSON escapes; without `usage` the reply does not say what it took."""

    async def step(exchange: Exchange) -> None:
        reply = body_of(exchange.asked, text, finish, usage, model, cached)
        await exchange.whole(200, json.dumps(reply).encode(), headers)

    return step


def call_tools(*calls: tuple[str, Any], text: str = "", usage: tuple[int, int] | None = (11, 3)) -> Step:
    """A reply that calls tools: names with arguments, as JSON where they are no text."""

    async def step(exchange: Exchange) -> None:
        reply = body_of(exchange.asked, text, "tool_calls", usage)
        turn = len(exchange.asked.body["messages"])
        named = [(f"call_{turn}_{i}", name, given) for i, (name, given) in enumerate(calls)]
        if exchange.asked.anthropic:
            reply["content"] += [{"type": "tool_use", "id": i, "name": n, "input": given} for i, n, given in named]
        else:
            message = reply["choices"][0]["message"]
            message["content"] = text or None
            message["tool_calls"] = [
                {
                    "id": i,
                    "type": "function",
                    "function": {"name": n, "arguments": given if isinstance(given, str) else json.dumps(given)},
                }
                for i, n, given in named
            ]
        await exchange.whole(200, json.dumps(reply).encode())

    return step


def refuse(
    status: int, message: str = "no", *, code: str | None = None, headers: Mapping[str, str] | None = None
) -> Step:
    """An error of the API."""

    async def step(exchange: Exchange) -> None:
        kind = _KINDS.get(status, "api_error")
        error: dict[str, Any] = {"type": kind, "message": message}
        told = {"type": "error", "error": error} if exchange.asked.anthropic else {"error": {**error, "code": code}}
        await exchange.whole(status, json.dumps(told).encode(), headers)

    return step


def answer(status: int, body: bytes | str, content_type: str = "application/json", **headers: str) -> Step:
    """Any bytes with any status and type."""

    async def step(exchange: Exchange) -> None:
        raw = body.encode() if isinstance(body, str) else body
        await exchange.whole(status, raw, {"content-type": content_type, **headers})

    return step


def redirect(to: str, status: int = 307) -> Step:
    """Another address; `to` may be relative."""

    async def step(exchange: Exchange) -> None:
        await exchange.whole(status, b"", {"location": to})

    return step


def late(seconds: float, then: Step | None = None) -> Step:
    """Nothing for a while, then a step: slow headers."""

    async def step(exchange: Exchange) -> None:
        await asyncio.sleep(seconds)
        await (then or say())(exchange)

    return step


def drip(seconds: float, size: int = 1, finish: bool = False) -> Step:
    """A reply's body, `size` bytes every so many seconds: each chunk comes in time, the whole never does.

    With `finish` it ends where the reply ends; else spaces follow it for ever, which JSON allows.
    """

    async def step(exchange: Exchange) -> None:
        body = json.dumps(body_of(exchange.asked, "slow")).encode()
        await exchange.head(200, {"content-type": "application/json", "transfer-encoding": "chunked"})
        while body or not finish:
            part, body = body[:size] or b" " * size, body[size:]
            await exchange.send(b"%x\r\n%s\r\n" % (len(part), part))
            await asyncio.sleep(seconds)
        await exchange.send(b"0\r\n\r\n")

    return step


def flood(limit: int | None = None, status: int = 200, content_type: str = "application/json") -> Step:
    """Bytes as fast as they are taken, for ever or up to a limit; `server.flooded` counts them."""

    async def step(exchange: Exchange) -> None:
        part = b"x" * 65536
        await exchange.head(status, {"content-type": content_type, "transfer-encoding": "chunked"})
        await exchange.send(b'1\r\n"\r\n')
        sent = 0
        while limit is None or sent < limit:
            await exchange.send(b"%x\r\n%s\r\n" % (len(part), part))
            sent += len(part)
            exchange.server.flooded = max(exchange.server.flooded, sent)
        await exchange.send(b'1\r\n"\r\n0\r\n\r\n')

    return step


def cut_off(*, chunked: bool = False) -> Step:
    """Half a reply, then the end of the connection: less than `content-length` promised, or no last chunk."""

    async def step(exchange: Exchange) -> None:
        body = json.dumps(body_of(exchange.asked, "half of this")).encode()
        half = body[: len(body) // 2]
        if chunked:
            await exchange.head(200, {"content-type": "application/json", "transfer-encoding": "chunked"})
            await exchange.send(b"%x\r\n%s\r\n" % (len(half), half))
        else:
            await exchange.head(200, {"content-type": "application/json", "content-length": str(len(body))})
            await exchange.send(half)
        exchange.hang_up()

    return step


def reset(*, after_headers: bool = False) -> Step:
    """A reset of the connection, before anything is said or after the headers."""

    async def step(exchange: Exchange) -> None:
        if after_headers:
            await exchange.head(200, {"content-type": "application/json", "content-length": "1000"})
            await asyncio.sleep(0.02)
        exchange.hang_up(reset=True)

    return step


def close_at_once() -> Step:
    """An orderly end of the connection without a word."""

    async def step(exchange: Exchange) -> None:
        exchange.hang_up()

    return step


def old_fashioned(text: str = "hi") -> Step:
    """A whole reply as HTTP/1.0 has it: no length, its end is the end of the connection."""

    async def step(exchange: Exchange) -> None:
        await exchange.head(200, {"content-type": "application/json"}, version="1.0")
        await exchange.send(json.dumps(body_of(exchange.asked, text)).encode())
        exchange.hang_up()

    return step


def by_turns(steps: Iterable[Step], then: Script | None = None) -> Script:
    """The steps one after the other, then what a function says; a request too many gets a 418."""
    left = iter(list(steps))

    def script(asked: Asked) -> Step:
        step = next(left, None)
        return step or (then(asked) if then is not None else refuse(418, "the script is at its end"))

    return script


# ---- the server -----------------------------------------------------------------------------------


class FaultyServer:
    """The server, on a thread of its own.

    Args:
        script: the steps, or a function that gives one for a request.
        models: the names that `/v1/models` lists.

    Attributes:
        asked: every request that came to a chat address, in order.
        flooded: the most bytes that one flood could send.
        connections: how many connections were opened.
        open: how many of them are open.
    """

    def __init__(self, script: Script | Iterable[Step] = (), models: Iterable[str] = ("stub-1",)) -> None:
        self.script: Script = script if callable(script) else by_turns(script)
        self.models = list(models)
        self.asked: list[Asked] = []
        self.flooded = 0
        self.connections = 0
        self.open = 0
        self._heard = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, name="faulty server", daemon=True)
        self._thread.start()

    @property
    def root(self) -> str:
        """`base_url` for Anthropic's protocol."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """`base_url` for OpenAI's."""
        return f"{self.root}/v1"

    @property
    def total(self) -> int:
        """Requests so far."""
        return len(self.asked)

    def wait_for(self, total: int, seconds: float = 600) -> bool:
        """Waits until so many requests have come, in all."""
        with self._heard:
            return self._heard.wait_for(lambda: len(self.asked) >= total, seconds)

    def is_left(self, seconds: float = 600) -> bool:
        """Waits until no connection is open any more."""
        end = time.monotonic() + seconds
        while self.open and time.monotonic() < end:
            time.sleep(0.01)
        return not self.open

    def close(self) -> None:
        """Ends the server and every connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> FaultyServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        listening = self._loop.run_until_complete(asyncio.start_server(self._connected, sock=self._socket))
        self._loop.run_forever()
        listening.close()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            with contextlib.suppress(ConnectionError):
                writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; whether the connection stays."""
        first = await reader.read(1)
        if first == _HANDSHAKE:
            # As a server without TLS says to one who speaks it.
            writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            return False
        line = (first + await reader.readline()).decode("latin-1").split()
        if len(line) != 3:
            return False
        headers = {}
        while (header := (await reader.readline()).decode("latin-1").strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        asked = Asked(line[0], line[1], headers, json.loads(raw) if raw else {})
        exchange = Exchange(asked, self, writer)
        if asked.method == "GET":
            await self._get(exchange)
            return True
        with self._heard:
            self.asked.append(asked)
            self._heard.notify_all()
        step = self.script(asked)
        ended = asyncio.ensure_future(step(exchange))
        gone = asyncio.ensure_future(_gone(reader))
        try:
            await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            ended.cancel()
            await asyncio.gather(gone, ended, return_exceptions=True)
        if ended.cancelled():
            return False
        problem = ended.exception()
        if problem is not None:
            raise problem
        return exchange.keeps_open

    async def _get(self, exchange: Exchange) -> None:
        path = exchange.asked.path.split("?")[0]
        if path.endswith("/models"):
            listed = [{"id": name, "object": "model", "type": "model", "owned_by": "here"} for name in self.models]
            await exchange.whole(200, json.dumps({"object": "list", "data": listed}).encode())
        else:
            status = 200 if path == "/health" else 404
            await exchange.whole(status, b"{}")


async def _gone(reader: asyncio.StreamReader) -> None:
    """Returns when the other side has closed; a request on top of an unanswered one is not read."""
    while not reader.at_eof():
        await asyncio.sleep(0.05)
