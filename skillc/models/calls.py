"""One call to a model, and its reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from skillc.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; the content is a text, or parts in the OpenAI chat format.

    Attributes:
        tool_calls: of an assistant, in the OpenAI chat format.
        tool_call_id: the call that a message of the role `tool` answers.
    """

    role: str
    content: str | tuple[dict[str, Any], ...]
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str | None = None

    def as_sent(self) -> dict[str, Any]:
        """Return the message in the OpenAI chat format."""
        content = self.content if isinstance(self.content, str) else [dict(part) for part in self.content]
        sent: dict[str, Any] = {"role": self.role, "content": content}
        if self.tool_calls:
            sent["tool_calls"] = [dict(call) for call in self.tool_calls]
            # Some providers refuse an empty text beside calls.
            sent["content"] = content or None
        if self.tool_call_id is not None:
            sent["tool_call_id"] = self.tool_call_id
        return sent


@dataclass(frozen=True, slots=True)
class Call:
    """One logical call.

    Attributes:
        role: `target`, `optimizer`, or a judge's name.
        stage: for the ledger: `baseline`, `rollout`, `reflect`, ...
        sample: index of a repeated call; part of the cache key, never sent to a language model.
        response_format: in the OpenAI chat format, as are `tools`.
        parameters: settings of this call, which override those of the role.
        judges: whether it judges an output, so that the caps on judges count it.
    """

    role: str
    stage: str
    messages: tuple[Message, ...]
    sample: int | tuple[int, ...] = 0
    response_format: Mapping[str, Any] | None = None
    tools: tuple[Mapping[str, Any], ...] | None = None
    parameters: Mapping[str, JsonValue] | None = None
    judges: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply; `cached` is a part of `prompt`, `reasoning` a part of `completion`.

    With `bound` these are upper bounds, because the usage was not reported.
    """

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0
    bound: bool = False

    @classmethod
    def of(cls, counts: Sequence[int], bound: object) -> Usage:
        """Create from `counts` and `bound`."""
        prompt, cached, completion, reasoning = counts
        return cls(prompt, cached, completion, reasoning, bool(bound))

    @property
    def total(self) -> int:
        """Prompt and completion together."""
        return self.prompt + self.completion

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The four token counts, in the order of the fields."""
        return self.prompt, self.cached, self.completion, self.reasoning


@dataclass(frozen=True, slots=True)
class Completion:
    """A complete reply.

    Attributes:
        text: empty only with tool calls.
        finish: the provider's reason, usually `stop`.
        usage: as reported, else the worst case.
        cost: nano-dollars at list price without a discount for cached prompts; None if the price is unknown.
        model: as the reply names it.
        cached: whether it is from skillc's cache.
        tool_calls: in the OpenAI chat format.
        seconds: that the model took when the call was sent, without waiting for a slot or for retries; None for a
            cached reply of an earlier version.
        waited: wall time of the call here, cache and queue included.
    """

    text: str
    finish: str
    usage: Usage
    cost: int | None
    model: str
    cached: bool = False
    tool_calls: tuple[dict[str, Any], ...] = ()
    seconds: float | None = None
    waited: float = 0.0


def well_formed(text: str) -> str:
    """Replace lone surrogates, which no file and no further prompt can contain."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
