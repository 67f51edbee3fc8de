"""A long prefix that many calls share is sent once before the rest, so that the provider's prefix cache holds it."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

# Providers keep prefixes from 1,024 tokens on; a token is about four bytes of English.
SHORTEST = 4096
_KEPT = 4096


class Prefixes:
    """The first call of a system message goes alone (ENGINE section 5); all on one event loop.

    A call whose first messages are short, or were sent before, waits for nothing.
    """

    def __init__(self) -> None:
        self._sent: OrderedDict[bytes, asyncio.Event] = OrderedDict()

    @asynccontextmanager
    async def led(self, endpoint: str, arguments: Mapping[str, Any]) -> AsyncIterator[None]:
        """Waits until the first call of the same prefix has ended, well or not, or is that first call."""
        prefix = _prefix(endpoint, arguments)
        if prefix is None:
            yield
            return
        first = self._sent.get(prefix)
        if first is not None:
            self._sent.move_to_end(prefix)
            await first.wait()
            yield
            return
        ended = self._sent[prefix] = asyncio.Event()
        if len(self._sent) > _KEPT:
            self._sent.popitem(last=False)
        try:
            yield
        finally:
            ended.set()


def _prefix(endpoint: str, arguments: Mapping[str, Any]) -> bytes | None:
    """Names the system message of a call; None where it is too short to be kept."""
    first = arguments["messages"][0] if arguments["messages"] else None
    text = first.get("content") if first is not None and first.get("role") == "system" else None
    if not isinstance(text, str) or len(text) < SHORTEST:
        return None
    return hashlib.sha256(f"{endpoint}\n{arguments['model']}\n{text}".encode("utf-8", "surrogatepass")).digest()
