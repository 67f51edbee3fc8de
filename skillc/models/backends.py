"""Models that litellm does not answer for: functions of the user's own, and commands.

A function is found by the program, `backend = python("module:function")`, else by the provider's name: registered with
`@skillc.backend("name")`, or by an installed package in the entry-point group `skillc.backends`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from skillc.errors import SkillcError
from skillc.models.command.target import PROVIDER as COMMAND
from skillc.models.command.target import Command, command_endpoint
from skillc.models.endpoint import RULEBOOK, Endpoint, declared_url, key_of, normalised
from skillc.models.function import Backend, Function
from skillc.models.prices import provider_of
from skillc.models.transport import Transport
from skillc.plan.schema import ModelPlan
from skillc.text import listed
from skillc.user_code import is_theirs, load_function, source_digest, told

GROUP = "skillc.backends"

F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_PREFIX = "backend:"


class Own(NamedTuple):
    """Where the calls of a role go that litellm does not answer."""

    endpoint: Endpoint
    transport: Transport


_REGISTERED: dict[str, Callable[..., Any]] = {}


def backend(name: str) -> Callable[[F], F]:
    """Registers a function that answers for the models `name/...`; the function itself stays as it is.

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
    if name in (COMMAND, RULEBOOK):
        raise SkillcError(f"`{name}` is a provider of skillc's own", hint="choose another name")

    def register(function: F) -> F:
        before = _REGISTERED.get(name)
        if before is not None and _place(before) != _place(function):
            raise SkillcError(
                f"a backend `{name}` is there already, `{_place(before)}`",
                hint=f"give `{_place(function)}` another name",
            )
        _REGISTERED[name] = function
        return function

    return register


def own_backend(model: ModelPlan, environ: Mapping[str, str], root: Path) -> Own | None:
    """What answers for a role instead of litellm, None where litellm does.

    Args:
        model: the role's plan.
        environ: where keys, addresses and a command's variables are looked up.
        root: the program's folder.

    Raises:
        SkillcError: the function or the command is not there, or it takes a name that litellm knows.
    """
    provider = provider_of(model.model)
    if model.exec is not None or provider == COMMAND:
        command = Command(model, environ, root)
        return Own(command_endpoint(model, environ), command)
    found = _found(model, provider, root)
    if found is None:
        return None
    if provider in litellm_providers():
        raise SkillcError(
            f"model `{model.role}` is `{model.model}`, and both litellm and the backend `{found.shown}` answer for "
            f"`{provider}`",
            hint=f"give the backend another name, and the model the same: `mine/{model.model.partition('/')[2]}`",
        )
    url = declared_url(model, environ)
    at = f"+{normalised(url)}" if url is not None else ""
    endpoint = Endpoint(
        f"{_PREFIX}{provider}@{found.source[:16]}{at}", url, key_of(model, environ, model.key_env), model.key_env
    )
    return Own(endpoint, Function(model, endpoint, found))


def own_sources(endpoints: Mapping[str, Endpoint]) -> dict[str, str]:
    """What tells each backend's source from another, by role, for the name of a run."""
    return {role: endpoint.id for role, endpoint in endpoints.items() if endpoint.id.startswith(_PREFIX)}


@cache
def litellm_providers() -> frozenset[str]:
    """The providers that litellm knows, from its source where it is not loaded: importing it takes seconds."""
    if "litellm" not in sys.modules:
        found = find_spec("litellm")
        for home in (found.submodule_search_locations or ()) if found else ():
            with suppress(OSError):
                text = (Path(home) / "types" / "utils.py").read_text(encoding="utf-8")
                names = re.findall(
                    r'^    \w+ = "([\w.-]+)"', text.partition("class LlmProviders(")[2].partition("\nclass ")[0], re.M
                )
                if names:
                    return frozenset(names) | {RULEBOOK}
    import litellm

    return frozenset(str(getattr(each, "value", each)) for each in litellm.provider_list) | {RULEBOOK}


# ---- finding the function -------------------------------------------------------------------------


def _found(model: ModelPlan, provider: str, root: Path) -> Backend | None:
    if model.backend is not None:
        function = load_function(model.backend, root, "backend")
        return Backend(function, model.backend, source_digest(model.backend, function, root))
    installed = [_installed(entry) for entry in entry_points(group=GROUP, name=provider)]
    registered = _REGISTERED.get(provider)
    if registered is not None and not any(each.function is registered for each in installed):
        installed.append(Backend(registered, _place(registered), source_digest(_place(registered), registered, root)))
    if len(installed) > 1:
        names = listed([each.shown for each in installed], "and")
        raise SkillcError(
            f"model `{model.role}` is `{model.model}`, and more than one backend is called `{provider}`: {names}",
            hint='say which one: `backend = python("module:function")`',
        )
    return installed[0] if installed else None


def _installed(entry: EntryPoint) -> Backend:
    package = entry.dist
    of = f"{package.name} {package.version}" if package is not None else "an installed package"
    try:
        function = entry.load()
    except BaseException as problem:
        if not is_theirs(problem):
            raise
        raise SkillcError(
            f"the backend `{entry.name}` of {of} cannot be loaded: {told(problem)}",
            hint=f"it is `{entry.value}`",
        ) from problem
    if not callable(function):
        raise SkillcError(f"the backend `{entry.name}` of {of} is no function: `{entry.value}`")
    return Backend(function, entry.value, source_digest(f"{of}: {entry.value}", function, Path()))


def _place(function: Callable[..., Any]) -> str:
    """`module:function`."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or '?'}:{name}"
