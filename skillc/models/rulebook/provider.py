"""rulebook as a provider of litellm, so that the path through the code is that of any other model."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from functools import partial
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

    def acompletion(self, *args: Any, **kwargs: Any) -> Pending:
        """The same for callers that wait."""
        return Pending(partial(self.completion, *args, **kwargs))


class Pending(Coroutine[Any, Any, ModelResponse]):
    """A reply as a coroutine that may be dropped before it is awaited.

    litellm creates the coroutine in a worker thread. If the waiting task is cancelled meanwhile, nothing awaits it, and
    Python would print a warning for one of an `async def`.
    """

    def __init__(self, work: Callable[[], ModelResponse]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, ModelResponse]:
        """Compute the reply."""
        return self._reply().__await__()

    def send(self, value: Any, /) -> Any:
        """Compute the reply, for a task that was made of this."""
        raise StopIteration(self._work())

    def throw(self, kind: Any, value: Any = None, trace: Any = None, /) -> Any:
        """Raise what the task was given."""
        raise kind if value is None else value

    def close(self) -> None:
        """Nothing is open."""

    async def _reply(self) -> ModelResponse:
        return self._work()


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
