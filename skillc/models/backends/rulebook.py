"""Backend for `rulebook/v1`, the embedded model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillc.errors import SkillcError
from skillc.models.endpoint import Backend, Endpoint, Transport, provider_of
from skillc.plan.schema import ModelPlan
from skillc.tokens import count_tokens

PROVIDER = "rulebook"
_MODEL = "rulebook/v1"
_BAD_REQUEST, _NOT_FOUND = 400, 404


class RequestError(ValueError):
    """A request that the rulebook cannot answer, with the HTTP status that a provider would send."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status


async def send(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Reply as a chat model does; usage is counted by `skillc.tokens`.

    Raises:
        RequestError: with status 404 for an unknown name, 400 for an invalid parameter.
    """
    from skillc.models.rulebook import answer

    messages, name = arguments["messages"], str(arguments["model"])
    if name != _MODEL:
        raise RequestError(_NOT_FOUND, f"unknown model `{name}`; the embedded model is `{_MODEL}`")
    try:
        text = answer(messages, {**arguments, **(arguments.get("extra_body") or {})})
    except SkillcError as error:
        raise RequestError(_BAD_REQUEST, str(error)) from None
    prompt = sum(count_tokens(str(message.get("content") or "")) for message in messages)
    return {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": count_tokens(text)},
        "model": _MODEL,
    }


def _connect(model: ModelPlan, environ: Mapping[str, str], root: Path) -> tuple[Endpoint, Transport] | None:
    return (Endpoint(PROVIDER), send) if provider_of(model.model) == PROVIDER else None


RULEBOOK = Backend("rulebook", _connect, embedded=True)
