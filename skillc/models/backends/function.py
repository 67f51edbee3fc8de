"""The user's functions that answer for a model.

The program names a function, `backend = python("module:function")`, or its provider does: registered with
`@skillc.backend("name")`, or by an installed package in the entry-point group `skillc.backends`.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.language.commands import COMMANDS
from skillc.models.backends.litellm import litellm_providers
from skillc.models.calls import Usage, well_formed
from skillc.models.endpoint import Backend, Endpoint, Transport, declared_url, key_of, normalised_of, secrets_of
from skillc.models.failures import FIXES, BackendFailed, CallFailed, is_malformed, is_refusal, is_transient, scrub
from skillc.plan.schema import RULEBOOK, ModelPlan
from skillc.redaction import Redactor
from skillc.text import listed, shown
from skillc.user_code import (
    ThreadExit,
    call_function,
    defined_at,
    describe_exception,
    load_function,
    raised_by_user_code,
    source_digest,
)


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
class BackendFunction:
    """A function with a name for messages and the digest of its source."""

    function: Callable[..., Any]
    name: str
    source: str


@dataclass(frozen=True, slots=True)
class FunctionTransport:
    """Sends the attempts of a role to a function."""

    model: ModelPlan
    backend: BackendFunction
    hide: Redactor

    async def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call the function once and return the reply in the chat format.

        Raises `PermanentFailure`, or the function's own error if a retry may help or it is meant for the user.
        """
        seconds = float(arguments["timeout"])
        sent = copy.deepcopy({name: value for name, value in arguments.items() if name not in ("model", "messages")})
        messages = copy.deepcopy(list(arguments["messages"]))
        try:
            async with asyncio.timeout(seconds):
                returned = await call_function(self.backend.function, messages, self.model.bare_name, sent)
        except TimeoutError as problem:
            raise TimeoutError(str(problem) or f"no answer within {seconds:g} s") from None
        except (SkillcError, CallFailed, asyncio.CancelledError):
            raise
        except BaseException as problem:
            problem = problem.problem if isinstance(problem, ThreadExit) else problem
            if isinstance(problem, GeneratorExit) or not raised_by_user_code(problem):
                raise
            if isinstance(problem, Exception) and (
                is_transient(problem) or is_malformed(problem) or is_refusal(problem)
            ):
                raise
            raise self._failure(f"raised {describe_exception(problem, function=self.backend.function)}") from None
        return self._chat(returned)

    def _chat(self, returned: Any) -> dict[str, Any]:
        """Convert the result of the function into the chat format."""
        reply = Reply(returned) if isinstance(returned, str) else returned
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
        place = defined_at(self.backend.function)
        raise self._failure(
            f"returned {type(returned).__name__} {shown(str(returned), 80)} instead of a text or a `skillc.Reply`"
            + (f", from the function at `{place}`" if place else "")
        )

    def _failure(self, what: str) -> BackendFailed:
        message = f"model `{self.model.role}` (`{self.model.model}`): the backend `{self.backend.name}` {what}"
        return BackendFailed(scrub(message, self.hide), hint=FIXES["backend"])


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
    """Register a function that answers for the models `name/...`, and return it unchanged.

    It is called as `function(messages, model, parameters)`: the messages in the OpenAI chat format, the model's name
    behind the slash, and the other arguments of the call under litellm's names (`max_tokens`, `temperature`, `tools`,
    `timeout` in seconds, and `api_base` and `api_key` if the program declares them). It returns a text, a `Reply`, or a
    reply in the OpenAI chat format. A coroutine function runs on the event loop, which it must not block; another
    function runs on a thread.

    A `TimeoutError` or a `ConnectionError`, or an error with an HTTP status of 429 or above 499, is retried. A
    `SkillcError` ends the run unchanged, any other exception with its name and place.

    Args:
        name: the provider in `provider/model`, unknown to litellm.

    Raises:
        SkillcError: the name is taken or invalid.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        wrong = name if isinstance(name, str) else getattr(name, "__name__", type(name).__name__)
        raise SkillcError(f"`{wrong}` is not a name for a backend", hint='write `@skillc.backend("mine")`')
    if name in (COMMANDS, RULEBOOK):
        raise SkillcError(f"`{name}` is a provider of skillc", hint="choose another name")

    def register(function: F) -> F:
        before = REGISTERED.get(name)
        if before is not None and _place(before) != _place(function):
            raise SkillcError(
                f"the backend `{name}` is already registered, by `{_place(before)}`",
                hint=f"give `{_place(function)}` another name",
            )
        REGISTERED[name] = function
        return function

    return register


def _connect(model: ModelPlan, environ: Mapping[str, str], root: Path) -> tuple[Endpoint, Transport] | None:
    provider = model.provider
    found = _find(model, root)
    if found is None:
        return None
    if provider == RULEBOOK or provider in litellm_providers():
        raise SkillcError(
            f"both litellm and the backend `{found.name}` answer for `{provider}` in model `{model.role}` "
            f"(`{model.model}`)",
            hint=f"give the backend another name, and the model the same: `mine/{model.bare_name}`",
        )
    url = declared_url(model, environ)
    at = f"+{normalised_of(model, url)}" if url is not None else ""
    endpoint = Endpoint(
        f"{_PREFIX}{provider}@{found.source[:16]}{at}", url, key_of(model, environ, model.key_env), model.key_env
    )
    return endpoint, FunctionTransport(model, found, Redactor(secrets_of(model, endpoint, environ)))


FUNCTION = Backend("function", _connect, users=True)


def function_identities(endpoints: Mapping[str, Endpoint]) -> dict[str, str]:
    """Return the endpoints of functions by role, with the digest of their sources, for the identity of a run."""
    return {role: endpoint.id for role, endpoint in endpoints.items() if endpoint.id.startswith(_PREFIX)}


def _find(model: ModelPlan, root: Path) -> BackendFunction | None:
    provider = model.provider
    if model.backend is not None:
        function = load_function(model.backend, root, "backend")
        return BackendFunction(function, model.backend, source_digest(model.backend, function, root))
    installed = [_installed(entry) for entry in entry_points(group=GROUP, name=provider)]
    registered = REGISTERED.get(provider)
    if registered is not None and not any(each.function is registered for each in installed):
        place = _place(registered)
        installed.append(BackendFunction(registered, place, source_digest(place, registered, root)))
    if len(installed) > 1:
        names = listed([each.name for each in installed], "and")
        raise SkillcError(
            f"more than one backend is called `{provider}` for model `{model.role}` (`{model.model}`): {names}",
            hint='name one: `backend = python("module:function")`',
        )
    return installed[0] if installed else None


def _installed(entry: EntryPoint) -> BackendFunction:
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
        raise SkillcError(f"the backend `{entry.name}` of {of} is not a function: `{entry.value}`")
    return BackendFunction(function, entry.value, source_digest(f"{of}: {entry.value}", function, Path()))


def _place(function: Callable[..., Any]) -> str:
    """Name a function: `module:function`."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or '?'}:{name}"
