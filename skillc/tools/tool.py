"""A tool of an agent, and one call of it within limits of time and length."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from skillc.json_values import JsonObject
from skillc.redaction import NOTHING, Redactor
from skillc.trajectories.trajectory import Observation

CHARACTERS_A_TOKEN = 4
"""How a limit of tokens becomes one of characters: what a program without skillc can apply too."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as an agent sees it, and how it is called.

    Attributes:
        name: unique among the tools of an agent.
        about: what it does and when to use it.
        arguments: JSON schema by argument, each with its `description`.
        required: the arguments without a default.
        call: is given the arguments and a limit in seconds, and returns the result as text. It raises `ToolFailed` for
            what the agent reads as an error, `TimeoutError` at the limit, and `ToolServerDown` for what is no fault of
            the agent.
        origin: where it comes from, for messages: `python("shop:find_order")`.
        function: `module:function` of a Python function, else empty.
    """

    name: str
    about: str
    arguments: Mapping[str, JsonObject]
    required: tuple[str, ...]
    call: Callable[[JsonObject, float], Awaitable[str]]
    origin: str = ""
    function: str = ""


class ToolFailed(Exception):  # noqa: N818
    """A tool reported an error; its message is what the agent reads."""


class ToolServerDown(Exception):  # noqa: N818
    """A tool's server cannot be reached or has died, so the rollout is unmeasured."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Limits of one call: `seconds` of time, `tokens` of its result."""

    seconds: float
    tokens: int


async def call_tool(tool: Tool, arguments: JsonObject, limits: ToolLimits, hide: Redactor = NOTHING) -> Observation:
    """Call a tool; an error, a wrong argument or too much time is a failed observation.

    `hide` redacts the result before it is cut, because a part of a secret is not found.

    Raises:
        ToolServerDown: as the tool's `call`.
    """
    try:
        check_arguments(tool, arguments)
        text, failed = await tool.call(arguments, limits.seconds), False
    except ToolFailed as problem:
        text, failed = f"error: {problem}", True
    except TimeoutError:
        text, failed = f"error: no result within {limits.seconds:g} seconds", True
    return Observation(shortened(hide(text), limits.tokens), failed)


def check_arguments(tool: Tool, arguments: JsonObject) -> None:
    """Refuse unknown and missing arguments.

    Raises:
        ToolFailed: an argument is unknown or missing.
    """
    problems = [f"unknown argument `{name}`" for name in arguments if name not in tool.arguments]
    problems += [f"missing argument `{name}`" for name in tool.required if name not in arguments]
    if problems:
        raise ToolFailed("; ".join(problems))


def shortened(text: str, tokens: int) -> str:
    """Return a text, or the beginning and the end of one that is too long, with a note of what is left out."""
    half = tokens * CHARACTERS_A_TOKEN // 2
    left = len(text) - 2 * half
    return f"{text[:half]}\n[{left} characters left out]\n{text[-half:]}" if left > 0 else text


def as_result(value: Any) -> str:
    """Return what a function returned as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False)
