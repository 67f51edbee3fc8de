"""Tools that are Python functions: `python("module:function")`."""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.language.rollouts import ENVIRONMENT
from skillc.text import cut
from skillc.tools.docstrings import lacks_docstring, lacks_name, lacks_texts, lacks_type, read_docstring
from skillc.tools.tool import Tool, ToolFailed, ToolServerDown, as_result
from skillc.user_code import ThreadExit, call_function, load_function

CURRENT: ContextVar[Any] = ContextVar("skillc_environment")
"""The environment of the rollout, while a tool is called."""
# A type that contains itself ends at this depth.
_DEEPEST = 6


def function_tool(name: str, root: Path, *, inside: bool = False) -> Tool:
    """Return the tool of a function: its name, its docstring, and a schema of its annotations.

    A coroutine function is awaited; another one runs on a thread. An exception is an error that the agent reads, except
    `ConnectionError`: what the function depends on is down. `inside` an environment, the parameter `environment` is no
    argument of the agent: skillc passes `CURRENT`.

    Raises:
        SkillcError: the function does not exist, or its docstring or a parameter lacks what an agent needs.
    """
    function = load_function(name, root, "tool")
    texts = read_docstring(inspect.getdoc(function))
    if not texts.about:
        raise _error(lacks_docstring(name))
    acts = inside and ENVIRONMENT in inspect.signature(function).parameters
    types = _parameters(name, function, leave=ENVIRONMENT if acts else "")
    arguments = _schemas(name, types, texts.arguments)
    missing = [each for each in arguments if not arguments[each].get("description")]
    if missing:
        raise _error(lacks_texts(name, missing))
    required = tuple(each for each, (_, default) in types.items() if default is ...)
    adapters = {each: TypeAdapter(type_) for each, (type_, _) in types.items()}

    async def call(given: JsonObject, seconds: float) -> str:
        values = _validated(adapters, given) | ({ENVIRONMENT: CURRENT.get()} if acts else {})
        try:
            async with asyncio.timeout(seconds) as limit:
                return as_result(await call_function(function, **values))
        except TimeoutError as problem:
            if limit.expired():
                raise
            raise ToolFailed(_described(problem)) from problem
        except ConnectionError as problem:
            raise ToolServerDown(f"`{name}` raised {type(problem).__name__}: {problem}") from problem
        except Exception as raised:
            cause = raised.problem if isinstance(raised, ThreadExit) else raised
            raise ToolFailed(_described(cause)) from raised

    tool_name = name.rpartition(":")[2].rpartition(".")[2]
    return Tool(tool_name, texts.about, arguments, required, call, f'python("{name}")', name, acts)


def _error(lack: tuple[str, str]) -> SkillcError:
    message, hint = lack
    return SkillcError(message, hint=hint)


def _described(problem: BaseException) -> str:
    return " ".join(f"{type(problem).__name__}: {problem}".split())


def _validated(adapters: Mapping[str, TypeAdapter[Any]], given: JsonObject) -> dict[str, Any]:
    """Return the arguments as values of their types.

    Raises:
        ToolFailed: a value does not fit its type.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in given.items():
        try:
            values[name] = adapters[name].validate_python(value)
        except ValidationError as problem:
            problems += [f"`{'.'.join(map(str, (name, *each['loc'])))}`: {each['msg']}" for each in problem.errors()]
    if problems:
        raise ToolFailed("; ".join(problems))
    return values


def _parameters(name: str, function: Callable[..., Any], *, leave: str = "") -> dict[str, tuple[Any, Any]]:
    """Return type and default of each parameter but `leave`, `...` without a default.

    Raises:
        SkillcError: a parameter has no type, or cannot be passed by name.
    """
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        hints = typing.get_type_hints(target, include_extras=True)
    except Exception as problem:
        raise SkillcError(f"the types of the tool `{name}` cannot be read: {problem}") from problem
    found: dict[str, tuple[Any, Any]] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == leave:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise _error(lacks_name(name, parameter))
        if parameter.name not in hints:
            raise _error(lacks_type(name, parameter.name))
        default = ... if parameter.default is parameter.empty else parameter.default
        found[parameter.name] = (hints[parameter.name], default)
    return found


def _schemas(name: str, types: Mapping[str, tuple[Any, Any]], texts: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each parameter, without titles, with its text and its default.

    Raises:
        SkillcError: a type has no JSON schema.
    """
    found: dict[str, dict[str, Any]] = {}
    for each, (type_, default) in types.items():
        try:
            schema = plain_schema(TypeAdapter(type_).json_schema())
            given = {} if default is ... else {"default": TypeAdapter(Any).dump_python(default, mode="json")}
        except (PydanticUserError, ValueError) as problem:
            raise SkillcError(
                f"the type of `{each}` of the tool `{name}` cannot be written as JSON: {cut(str(problem), 200)}",
                hint="use `str`, numbers, `bool`, lists, dicts, `Literal` or pydantic models",
            ) from problem
        text = texts.get(each)
        found[each] = {**schema, **given, **({"description": text} if text else {})}
    return found


def plain_schema(schema: Any, definitions: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """Return a JSON schema without titles, its references replaced by what they name."""
    if isinstance(schema, list):
        return [plain_schema(each, definitions, depth) for each in schema]
    if not isinstance(schema, dict):
        return schema
    known = {**(definitions or {}), **schema.get("$defs", {})}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = known.get(reference.rpartition("/")[2], {})
        rest = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
        return {} if depth > _DEEPEST else plain_schema({**target, **rest}, known, depth + 1)
    properties = schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    return {
        key: (
            {name: plain_schema(each, known, depth) for name, each in named.items()}
            if key == "properties" and named
            else plain_schema(value, known, depth)
        )
        for key, value in schema.items()
        if key != "$defs" and not (key == "title" and isinstance(value, str))
    }
