"""Questions to a server, straight to its address: no proxy, and never for long."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

_SECONDS = 2.0
_COUNTER = re.compile(r"^vllm:prefix_cache_(queries|hits)(?:_total)?(?:\{[^}]*\})?\s+([0-9.eE+-]+)\s*$", re.MULTILINE)
_REFUSED = (401, 403)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server answers, as litellm takes it: `http://127.0.0.1:8000/v1`, and the key that it wants."""

    url: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Tokens of prompts that were looked up in a server's prefix cache, and those that were found."""

    queries: int = 0
    hits: int = 0

    def since(self, before: PrefixCache) -> PrefixCache:
        """What came after a reading; of a server that began to count anew, all."""
        if self.queries < before.queries:
            return self
        return PrefixCache(self.queries - before.queries, self.hits - before.hits)

    def plus(self, other: PrefixCache) -> PrefixCache:
        """Both together."""
        return PrefixCache(self.queries + other.queries, self.hits + other.hits)


def is_healthy(address: Address) -> bool:
    """Whether `/health` says yes."""
    status, _ = _get(address, "/health", beside=True)
    return status == 200


def verdict(address: Address, names: Iterable[str]) -> Literal["silent", "ours", "foreign"]:
    """Whether the server that answers is the one that was started with this key.

    Ours refuses a caller without the key and shows the models to one with it. A server that is not ready is `silent`.
    """
    refused, _ = _get(Address(address.url, ""), "/models")
    status, known = served_names(address)
    if refused is None or status is None or max(refused, status) >= 500:
        return "silent"
    if refused not in _REFUSED or status != 200:
        return "foreign"
    return "ours" if set(names) <= set(known) and is_healthy(address) else "silent"


def served_names(address: Address) -> tuple[int | None, tuple[str, ...]]:
    """The status of `/v1/models`, None where nobody answers, and the names of the models there."""
    status, body = _get(address, "/models")
    try:
        names = tuple(str(model["id"]) for model in json.loads(body)["data"]) if status == 200 else ()
    except (ValueError, KeyError, TypeError):
        names = ()
    return status, names


def prefix_cache(address: Address) -> PrefixCache | None:
    """What `/metrics` counts, over all engines; None where it counts nothing, as a server that is no vLLM."""
    status, body = _get(address, "/metrics", beside=True)
    if status != 200:
        return None
    found = {"queries": 0.0, "hits": 0.0}
    counters = _COUNTER.findall(body.decode("utf-8", "replace"))
    for name, value in counters:
        found[name] += float(value)
    return PrefixCache(int(found["queries"]), int(found["hits"])) if counters else None


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine, and plain HTTP, so that a server can be started there."""
    parts = urlsplit(url)
    return parts.scheme == "http" and (parts.hostname or "") in _LOOPBACK


def port_of(url: str) -> int:
    """The port of an address."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _get(address: Address, path: str, *, beside: bool = False) -> tuple[int | None, bytes]:
    """Status and body; `beside` asks for a path that stands beside `/v1`, not under it."""
    parts = urlsplit(address.url)
    base = parts.path.rstrip("/")
    base = base.removesuffix("/v1") if beside else base
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", port_of(address.url), timeout=_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
        connection.request("GET", f"{base}{path}", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return None, b""
    finally:
        connection.close()
