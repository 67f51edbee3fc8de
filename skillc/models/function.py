"""A function of the user's own that answers for a model: how it is called, and what it may give and raise."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import inspect
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from skillc.errors import SkillcError
from skillc.models.calls import Usage
from skillc.models.endpoint import Endpoint
from skillc.models.failures import BackendFailed, CallFailed, is_malformed, is_refusal, is_transient, scrub
from skillc.models.transport import whole
from skillc.plan.schema import ModelPlan
from skillc.user_code import defined_at, is_theirs, told


@dataclass(frozen=True, slots=True)
class Reply:
    """What a backend may give where it has more to say than a text.

    Attributes:
        text: what the model wrote; empty only where it called tools.
        finish: why it ended: `stop`, `length` where it was cut at its limit, `tool_calls`, `content_filter`.
        usage: tokens as the OpenAI chat format counts them, `{"prompt_tokens": 12, "completion_tokens": 3}`; where it
            is None the call is charged its whole reservation.
        model: the name of the model that answered; it may not change during a run.
        tool_calls: as the OpenAI chat format has them.
    """

    text: str
    finish: str = "stop"
    usage: Mapping[str, Any] | Usage | None = None
    model: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Backend:
    """A function with a name for messages and the digest of its source."""

    function: Callable[..., Any]
    shown: str
    source: str


class Function:
    """The transport of a role that a function answers for."""

    def __init__(self, model: ModelPlan, endpoint: Endpoint, found: Backend) -> None:
        self._model = model
        self._endpoint = endpoint
        self._backend = found

    async def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """One attempt; the reply in the chat format.

        Raises:
            PermanentFailure: the function failed in a way that no retry mends.
            Exception: what it raised, where a retry may help, or where it says already what is the matter.
        """
        seconds = float(arguments["timeout"])
        sent = copy.deepcopy({name: value for name, value in arguments.items() if name not in ("model", "messages")})
        messages = copy.deepcopy(list(arguments["messages"]))
        try:
            async with asyncio.timeout(seconds):
                given = await _called(self._backend.function, messages, self._model.model.partition("/")[2], sent)
        except TimeoutError as problem:
            raise TimeoutError(str(problem) or f"no answer within {seconds:g} s") from None
        except (SkillcError, CallFailed):
            raise
        except asyncio.CancelledError:
            raise
        except BaseException as problem:
            problem = problem.problem if isinstance(problem, _Left) else problem
            if isinstance(problem, GeneratorExit) or not is_theirs(problem):
                raise
            if isinstance(problem, Exception) and (
                is_transient(problem) or is_malformed(problem) or is_refusal(problem)
            ):
                raise
            raise self._failure(f"raised {told(problem, function=self._backend.function)}") from None
        return self._chat(given)

    def _chat(self, given: Any) -> dict[str, Any]:
        """What a function gave, in the chat format."""
        reply = Reply(given) if isinstance(given, str) else given
        dump = getattr(reply, "model_dump", None)
        if isinstance(text := getattr(reply, "text", None), str):
            message: dict[str, Any] = {"role": "assistant", "content": whole(text)}
            if calls := getattr(reply, "tool_calls", ()):
                message["tool_calls"] = [dict(call) for call in calls]
            return {
                "choices": [{"message": message, "finish_reason": getattr(reply, "finish", "stop")}],
                "usage": _counts(getattr(reply, "usage", None)),
                "model": getattr(reply, "model", ""),
            }
        data = dump() if callable(dump) else reply
        if isinstance(data, Mapping) and "choices" in data:
            return dict(data)
        place = defined_at(self._backend.function)
        raise self._failure(
            f"gave {type(given).__name__} `{str(given)[:80]}`, where a text or a `skillc.Reply` is wanted"
            + (f", from the function at `{place}`" if place else "")
        )

    def _failure(self, what: str) -> BackendFailed:
        model = self._model
        message = f"model `{model.role}` (`{model.model}`): the backend `{self._backend.shown}` {what}"
        return BackendFailed(
            scrub(message, self._endpoint.secrets),
            hint="where another attempt may help, raise `TimeoutError` or `ConnectionError`",
        )


async def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives: a coroutine function on this loop, any other on a thread."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*arguments)
    given = await _on_thread(function, *arguments)
    return await given if inspect.isawaitable(given) else given


async def _on_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls on a thread of its own: one that hangs keeps neither the others nor the end of the process waiting."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(found: tuple[Any, BaseException | None]) -> None:
        if not outcome.done():
            outcome.set_result(found)

    def work() -> None:
        try:
            found: tuple[Any, BaseException | None] = (context.run(function, *arguments), None)
        except BaseException as problem:
            found = (None, problem)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=work, name="skillc backend", daemon=True).start()
    given, problem = await outcome
    if problem is not None and not isinstance(problem, Exception):
        # Raised here, it would end the event loop, or be taken for a cancelled task.
        raise _Left(problem)
    if problem is not None:
        raise problem
    return given


class _Left(Exception):  # noqa: N818
    """A function on a thread raised what is no `Exception`: it called `sys.exit`, say."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(str(problem))
        self.problem = problem


def _counts(usage: Any) -> dict[str, Any] | None:
    if isinstance(usage, Usage):
        return {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }
    return dict(usage) if isinstance(usage, Mapping) else None
