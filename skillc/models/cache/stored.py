"""The stored form of a reply, and the label beside it that says what the entry is. Neither holds a key or a prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Label:
    """What an entry of the cache is: whose model it was asked for.

    Attributes:
        endpoint: id of the endpoint, as it stands in the key; None where the entry does not say.
        model: `provider/name` as asked for; else as the reply named itself.
    """

    endpoint: str | None
    model: str | None

    def as_text(self) -> str:
        """The form that `read_label` reads."""
        return json.dumps({"endpoint": self.endpoint, "model": self.model})


def read_label(text: Any) -> Label:
    """The label in a text; empty where it holds none."""
    try:
        data = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        data = {}
    data = data if isinstance(data, dict) else {}
    endpoint, model = data.get("endpoint"), data.get("model")
    return Label(endpoint if isinstance(endpoint, str) else None, model if isinstance(model, str) else None)


def whole_reply(stored: str) -> dict[str, Any] | None:
    """The reply in a stored text, None where it is none: damaged, or written by a stranger."""
    try:
        data = json.loads(stored)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    usage, calls = data.get("usage"), data.get("tool_calls", [])
    texts = all(isinstance(data.get(name), str) for name in ("text", "finish", "model"))
    counts = isinstance(usage, list) and len(usage) == 4 and all(type(count) is int and count >= 0 for count in usage)
    return data if texts and counts and isinstance(calls, list) else None
