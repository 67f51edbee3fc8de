"""One call to a model, and its reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; the content is a text, or parts as the OpenAI chat format has them."""

    role: str
    content: str | tuple[dict[str, Any], ...]

    def as_sent(self) -> dict[str, Any]:
        """The message as a provider reads it."""
        content = self.content if isinstance(self.content, str) else [dict(part) for part in self.content]
        return {"role": self.role, "content": content}


@dataclass(frozen=True, slots=True)
class Call:
    """One logical call.

    Attributes:
        role: whose model answers: `target`, `optimizer`, or a judge's name.
        stage: what asks, for the ledger: `baseline`, `rollout`, `reflect`, ...
        messages: the prompt, in order.
        sample: the index of a repeated call; part of the cache key, never sent to a language model.
        response_format: as the OpenAI chat format has it.
        tools: likewise.
        parameters: settings of this very call; they win over those of the role.
    """

    role: str
    stage: str
    messages: tuple[Message, ...]
    sample: int | tuple[int, ...] = 0
    response_format: Mapping[str, Any] | None = None
    tools: tuple[Mapping[str, Any], ...] | None = None
    parameters: Mapping[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply. `cached` is a part of `prompt`, `reasoning` a part of `completion`.

    Attributes:
        bound: whether the usage was not reported, so that these are upper bounds.
    """

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0
    bound: bool = False

    @classmethod
    def of(cls, counts: Sequence[int], bound: object) -> Usage:
        """From the four numbers of `counts`, and whether they are a bound."""
        prompt, cached, completion, reasoning = counts
        return cls(prompt, cached, completion, reasoning, bool(bound))

    @property
    def total(self) -> int:
        """Prompt and completion together."""
        return self.prompt + self.completion

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The four numbers of tokens, in the order of the fields."""
        return self.prompt, self.cached, self.completion, self.reasoning


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole reply.

    Attributes:
        text: what the model wrote; empty only where it called tools.
        finish: the provider's reason, `stop` as a rule.
        usage: as reported, else the whole reservation.
        cost: nano-dollars at list price without a discount for cached prompts; None where no price is known.
        model: the name that the provider gave itself.
        cached: whether it came from skillc's own cache.
        tool_calls: as the OpenAI chat format has them.
    """

    text: str
    finish: str
    usage: Usage
    cost: int | None
    model: str
    cached: bool = False
    tool_calls: tuple[dict[str, Any], ...] = ()


def well_formed(text: str) -> str:
    """The text without lone surrogates, which no file and no further prompt can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
