"""rulebook as a provider of litellm, so that the path through the code is that of any other model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import litellm
from litellm.llms.custom_llm import CustomLLM, CustomLLMError
from litellm.types.utils import Choices, Message, ModelResponse, Usage

from skillc.errors import SkillcError
from skillc.models.rulebook.model import answer, check_name
from skillc.tokens import count_tokens

PROVIDER = "rulebook"
_BAD_REQUEST = 400
_NOT_FOUND = 404


class Rulebook(CustomLLM):
    """Answers at once, in the calling thread; usage is counted by `skillc.tokens`."""

    def completion(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """One reply.

        Raises:
            CustomLLMError: with status 404 for an unknown name, 400 for a parameter that can't be used.
        """
        names = ("model", "messages")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        return respond(str(given["model"]), given["messages"], given.get("optional_params") or {})

    async def acompletion(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """The same for callers that wait."""
        return self.completion(*args, **kwargs)


def respond(model: str, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> ModelResponse:
    """A reply in the chat format.

    Raises:
        CustomLLMError: see `Rulebook.completion`.
    """
    try:
        check_name(model)
    except SkillcError as error:
        raise _refusal(_NOT_FOUND, f"{error}; {error.hint}") from None
    try:
        text = answer(messages, {**parameters, **(parameters.get("extra_body") or {})})
    except SkillcError as error:
        raise _refusal(_BAD_REQUEST, str(error)) from None
    prompt = sum(count_tokens(str(message.get("content") or "")) for message in messages)
    reply = count_tokens(text)
    return ModelResponse(
        id="rulebook",
        created=0,
        model=f"{PROVIDER}/v1",
        choices=[Choices(index=0, finish_reason="stop", message=Message(role="assistant", content=text))],
        usage=Usage(prompt_tokens=prompt, completion_tokens=reply, total_tokens=prompt + reply),
    )


def _refusal(status: int, message: str) -> Exception:
    error: Exception = CustomLLMError(status_code=status, message=message)  # type: ignore[no-untyped-call]
    return error


def register() -> None:
    """Makes litellm know `rulebook/...`. Once is enough; more often does no harm."""
    known = litellm.custom_provider_map
    if not any(entry["provider"] == PROVIDER for entry in known):
        litellm.custom_provider_map = [*known, {"provider": PROVIDER, "custom_handler": Rulebook()}]
    if PROVIDER not in litellm.provider_list:
        litellm.provider_list.append(PROVIDER)
    if PROVIDER not in litellm._custom_providers:
        litellm._custom_providers.append(PROVIDER)
