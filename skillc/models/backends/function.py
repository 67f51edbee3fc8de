"""Functions of the user's that answer for a model.

A function is found by the program, `backend = python("module:function")`, else by the provider's name: registered with
`@skillc.backend("name")`, or by an installed package in the entry-point group `skillc.backends`.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import inspect
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from skillc.errors import SkillcError
from skillc.language.commands import COMMANDS
from skillc.models.backends.litellm import litellm_providers
from skillc.models.calls import Usage, well_formed
from skillc.models.endpoint import Backend, Endpoint, Transport, declared_url, key_of, normalised
from skillc.models.failures import FIXES, BackendFailed, CallFailed, is_malformed, is_refusal, is_transient, scrub
from skillc.plan.schema import RULEBOOK, ModelPlan
from skillc.text import listed
from skillc.user_code import defined_at, describe_exception, load_function, raised_by_user_code, source_digest


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a backend that reports more than a text.

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
class Found:
    """A function with a name for messages and the digest of its source."""

    function: Callable[..., Any]
    shown: str
    source: str


class Function:
    """The transport of a role that a function answers for."""

    def __init__(self, model: ModelPlan, endpoint: Endpoint, found: Found) -> None:
        self._model = model
        self._endpoint = endpoint
        self._backend = found

    async def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """One attempt; the reply in the chat format.

        Raises:
            PermanentFailure: the function failed in a way that no retry fixes.
            Exception: what it raised, where a retry may help or the error is meant for the user.
        """
        seconds = float(arguments["timeout"])
        sent = copy.deepcopy({name: value for name, value in arguments.items() if name not in ("model", "messages")})
        messages = copy.deepcopy(list(arguments["messages"]))
        try:
            async with asyncio.timeout(seconds):
                given = await _called(self._backend.function, messages, self._model.bare_name, sent)
        except TimeoutError as problem:
            raise TimeoutError(str(problem) or f"no answer within {seconds:g} s") from None
        except (SkillcError, CallFailed):
            raise
        except asyncio.CancelledError:
            raise
        except BaseException as problem:
            problem = problem.problem if isinstance(problem, _Left) else problem
            if isinstance(problem, GeneratorExit) or not raised_by_user_code(problem):
                raise
            if isinstance(problem, Exception) and (
                is_transient(problem) or is_malformed(problem) or is_refusal(problem)
            ):
                raise
            raise self._failure(f"raised {describe_exception(problem, function=self._backend.function)}") from None
        return self._chat(given)

    def _chat(self, given: Any) -> dict[str, Any]:
        """The result of a function in the chat format."""
        reply = Reply(given) if isinstance(given, str) else given
        dump = getattr(reply, "model_dump", None)
        if isinstance(text := getattr(reply, "text", None), str):
            message: dict[str, Any] = {"role": "assistant", "content": well_formed(text)}
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
            hint=FIXES["backend"],
        )


async def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a coroutine function on this loop, any other on a thread."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*arguments)
    given = await _on_thread(function, *arguments)
    return await given if inspect.isawaitable(given) else given


async def _on_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call on a new thread: one that hangs blocks neither other calls nor the end of the process."""
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
    """A function on a thread raised something other than an `Exception`, as `sys.exit` does."""

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


GROUP = "skillc.backends"

F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_PREFIX = "backend:"


REGISTERED: dict[str, Callable[..., Any]] = {}


def backend(name: str) -> Callable[[F], F]:
    """Register a function that answers for the models `name/...`; the function itself stays as it is.

    It is called as `function(messages, model, parameters)`: the messages in the OpenAI chat format, the model's name
    behind the slash, and what else is sent with the call, as litellm calls it (`max_tokens`, `temperature`, `tools`,
    `timeout` in seconds, and `api_base` and `api_key` where the program declares them). It gives a text, a `Reply`, or
    a reply in the OpenAI chat format. A coroutine function runs on the event loop, which it must not hold up; any other
    on a thread of its own.

    A `TimeoutError` or a `ConnectionError`, or an error with an HTTP status of 429 or above 499, is tried again. A
    `SkillcError` ends the run as it is, and so does any other exception, with its name and place.

    Args:
        name: the provider in `provider/model`; none that litellm knows.

    Raises:
        SkillcError: the name is taken, or none that a model can have.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        shown = name if isinstance(name, str) else getattr(name, "__name__", type(name).__name__)
        raise SkillcError(f"`{shown}` is no name of a backend", hint='write `@skillc.backend("mine")`')
    if name in (COMMANDS, RULEBOOK):
        raise SkillcError(f"`{name}` is a provider of skillc's own", hint="choose another name")

    def register(function: F) -> F:
        before = REGISTERED.get(name)
        if before is not None and _place(before) != _place(function):
            raise SkillcError(
                f"a backend `{name}` is there already, `{_place(before)}`",
                hint=f"give `{_place(function)}` another name",
            )
        REGISTERED[name] = function
        return function

    return register


def _connect(model: ModelPlan, environ: Mapping[str, str], root: Path) -> tuple[Endpoint, Transport] | None:
    provider = model.provider
    found = _found(model, provider, root)
    if found is None:
        return None
    if provider == RULEBOOK or provider in litellm_providers():
        raise SkillcError(
            f"model `{model.role}` is `{model.model}`, and both litellm and the backend `{found.shown}` answer for "
            f"`{provider}`",
            hint=f"give the backend another name, and the model the same: `mine/{model.bare_name}`",
        )
    url = declared_url(model, environ)
    at = f"+{normalised(url)}" if url is not None else ""
    endpoint = Endpoint(
        f"{_PREFIX}{provider}@{found.source[:16]}{at}", url, key_of(model, environ, model.key_env), model.key_env
    )
    return endpoint, Function(model, endpoint, found)


FUNCTION = Backend("function", _connect, users=True)


def function_identities(endpoints: Mapping[str, Endpoint]) -> dict[str, str]:
    """The identity of each function's source by role, for the name of a run."""
    return {role: endpoint.id for role, endpoint in endpoints.items() if endpoint.id.startswith(_PREFIX)}


# ---- finding the function -------------------------------------------------------------------------


def _found(model: ModelPlan, provider: str, root: Path) -> Found | None:
    if model.backend is not None:
        function = load_function(model.backend, root, "backend")
        return Found(function, model.backend, source_digest(model.backend, function, root))
    installed = [_installed(entry) for entry in entry_points(group=GROUP, name=provider)]
    registered = REGISTERED.get(provider)
    if registered is not None and not any(each.function is registered for each in installed):
        installed.append(Found(registered, _place(registered), source_digest(_place(registered), registered, root)))
    if len(installed) > 1:
        names = listed([each.shown for each in installed], "and")
        raise SkillcError(
            f"model `{model.role}` is `{model.model}`, and more than one backend is called `{provider}`: {names}",
            hint='say which one: `backend = python("module:function")`',
        )
    return installed[0] if installed else None


def _installed(entry: EntryPoint) -> Found:
    package = entry.dist
    of = f"{package.name} {package.version}" if package is not None else "an installed package"
    try:
        function = entry.load()
    except BaseException as problem:
        if not raised_by_user_code(problem):
            raise
        raise SkillcError(
            f"the backend `{entry.name}` of {of} cannot be loaded: {describe_exception(problem)}",
            hint=f"it is `{entry.value}`",
        ) from problem
    if not callable(function):
        raise SkillcError(f"the backend `{entry.name}` of {of} is no function: `{entry.value}`")
    return Found(function, entry.value, source_digest(f"{of}: {entry.value}", function, Path()))


def _place(function: Callable[..., Any]) -> str:
    """`module:function`."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or '?'}:{name}"
