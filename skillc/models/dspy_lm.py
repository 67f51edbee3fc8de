"""DSPy LMs on the client. This module imports dspy, so nothing imports it before a program runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Self

import dspy
from dspy.clients.engines.base import validate_request
from dspy.clients.lm15_boundary import request_kwargs
from dspy.lm15 import Message as Lm15Message
from dspy.lm15 import Request, Response, TextPart, response_from_openai_chat
from dspy.lm15 import Usage as Lm15Usage

from skillc.json_values import as_text
from skillc.models.backends.litellm import quiet
from skillc.models.calls import Call, Completion, Message, well_formed
from skillc.models.client import Client
from skillc.models.scope import CallScope, current_scope
from skillc.redaction import redact_value

# DSPy may load litellm, which would download its price list.
quiet()

_SETTINGS = ("temperature", "top_p", "max_tokens", "seed", "frequency_penalty", "presence_penalty")
_NOT_PARAMETERS = ("messages", "tools", "response_format")


_ROLLOUT_ID: ContextVar[int | None] = ContextVar("skillc_rollout_id", default=None)


class _Engine:
    """Answers requests with the model of one role; leaves the client open."""

    def __init__(self, client: Client, role: str, *, calls_tools: bool = False) -> None:
        self._client = client
        self._role = role
        # DSPy reads it.
        self.supports_function_calling = calls_tools

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class RoleEngine(_Engine):
    """The engine for threads without an event loop."""

    def complete(self, request: Request) -> Response:
        """Return one reply."""
        current = current_scope()
        return _response(self._client.complete_sync(_call(request, self._role, current)), current)

    def close(self) -> None:
        """Do nothing."""


class AsyncRoleEngine(_Engine):
    """The engine for callers on an event loop."""

    async def complete(self, request: Request) -> Response:
        """Return one reply."""
        current = current_scope()
        return _response(await self._client.complete(_call(request, self._role, current)), current)

    async def aclose(self) -> None:
        """Do nothing."""


class RoleLM(dspy.LM):  # type: ignore[misc]  # dspy has no types
    """An LM whose `rollout_id` selects a sample, where DSPy's only bypasses its cache."""

    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """As `dspy.LM`."""
        with self._rollout_id(kwargs):
            return super().__call__(prompt, messages=messages, **kwargs)

    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """As `dspy.LM`."""
        with self._rollout_id(kwargs):
            return await super().acall(prompt, messages=messages, **kwargs)

    @contextmanager
    def _rollout_id(self, kwargs: dict[str, Any]) -> Iterator[None]:
        token = _ROLLOUT_ID.set(kwargs.get("rollout_id", self.kwargs.get("rollout_id")))
        try:
            yield
        finally:
            _ROLLOUT_ID.reset(token)


def make_lm(client: Client, role: str, *, calls_tools: bool = False) -> RoleLM:
    """Return a `dspy.LM` that sends calls of a role through the client; DSPy's own cache and retries are off.

    With `calls_tools`, adapters may send tools to the provider.
    Errors reach the caller inside DSPy's `LMUnexpectedError`; see `failures.find_failure`.
    """
    return RoleLM(
        client.roles[role].plan.model,
        cache=False,
        num_retries=0,
        engine=RoleEngine(client, role, calls_tools=calls_tools),
        async_engine=AsyncRoleEngine(client, role, calls_tools=calls_tools),
    )


async def ask(client: Client, role: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the reply to messages in the form of chat APIs, within the scope of a rollout.

    Raises:
        CallFailed, PermanentFailure, BudgetReached: from the model.
    """
    return await send(client, role, sent_messages(messages))


async def send(client: Client, role: str, messages: tuple[Message, ...]) -> str:
    """As `ask`, for messages of calls."""
    current = current_scope()
    completion = await client.complete(Call(role, current.stage, messages, current.sample))
    current.completions.append(completion)
    return completion.text


def sent_messages(messages: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Return messages in the form of chat APIs as calls have them, with the images of the present scope."""
    images = current_scope().images
    return tuple(_message(dict(message), images) for message in messages)


def _call(request: Request, role: str, current: CallScope) -> Call:
    validate_request(request)
    rollout_id = _ROLLOUT_ID.get()
    sample = current.sample
    if rollout_id is not None:
        sample = (*sample, rollout_id) if isinstance(sample, tuple) else (sample, rollout_id)
    plain = _plain_messages(request)
    if plain is not None:
        config = request.config
        settings = {name: getattr(config, name) for name in _SETTINGS if getattr(config, name) is not None}
        if config.stop:
            settings["stop"] = list(config.stop)
        return Call(role, current.stage, plain, sample, parameters=settings or None)
    sent = request_kwargs(request, "chat")
    return Call(
        role,
        current.stage,
        tuple(_message(message, current.images) for message in sent["messages"]),
        sample,
        sent.get("response_format"),
        tuple(sent["tools"]) if sent.get("tools") else None,
        {name: value for name, value in sent.items() if name not in _NOT_PARAMETERS} or None,
    )


def _plain_messages(request: Request) -> tuple[Message, ...] | None:
    """Return the messages of a request with text only, else None: the fast path of the common case."""
    if request.tools or request.config.response_format is not None or request.config.extensions:
        return None
    if not (request.system is None or isinstance(request.system, str)):
        return None
    system = (Message("system", request.system),) if request.system is not None else ()
    texts: list[Message] = []
    for message in request.messages:
        if len(message.parts) != 1 or not isinstance(message.parts[0], TextPart) or message.role == "developer":
            return None
        texts.append(Message(message.role, message.parts[0].text))
    return (*system, *texts)


def _message(sent: dict[str, Any], images: Mapping[str, str]) -> Message:
    content = sent.get("content")
    parts = tuple(_part(part, images) for part in content) if isinstance(content, list) else str(content or "")
    return Message(sent["role"], parts, tuple(sent.get("tool_calls") or ()), sent.get("tool_call_id"))


def _part(part: dict[str, Any], images: Mapping[str, str]) -> dict[str, Any]:
    """Return a part with the whole data URI of an image."""
    source = part.get("image_url")
    if not isinstance(source, dict) or source.get("url") not in images:
        return part
    return {**part, "image_url": {**source, "url": images[source["url"]]}}


UNREADABLE = "partial_json"
"""The only argument of a tool call whose arguments are not a JSON object: their text, as DSPy names it."""


def readable_call(call: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return a tool call in the OpenAI chat format, with an id, a name, and arguments that are a JSON object."""
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments or "{}", parse_constant=_reject_constant)
    if not isinstance(arguments, Mapping):
        arguments = {UNREADABLE: as_text(arguments)} if arguments is not None else {}
    written = json.dumps(redact_value(dict(arguments), well_formed))
    called = {"name": str(function.get("name") or "unnamed"), "arguments": written}
    return {"id": str(call.get("id") or f"call_{index}"), "type": "function", "function": called}


def _reject_constant(name: str) -> Any:
    raise ValueError(f"`{name}` is not JSON")


def _response(completion: Completion, current: CallScope) -> Response:
    """Add the completion to the scope and convert it."""
    current.completions.append(completion)
    usage = completion.usage
    if completion.tool_calls:
        calls = [readable_call(call, i) for i, call in enumerate(completion.tool_calls)]
        message = {"role": "assistant", "content": completion.text or None, "tool_calls": calls}
        counts = {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion, "total_tokens": usage.total}
        body = {"choices": [{"message": message, "finish_reason": completion.finish}], "usage": counts}
        return response_from_openai_chat(body, model=completion.model)
    return Response(
        id=None,
        model=completion.model,
        message=Lm15Message(role="assistant", parts=(TextPart(completion.text),)),
        finish_reason="stop",
        usage=Lm15Usage(
            input_tokens=usage.prompt,
            output_tokens=usage.completion,
            cache_read_tokens=usage.cached,
            reasoning_tokens=usage.reasoning,
        ),
    )
