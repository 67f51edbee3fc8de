"""A tool of an agent, the texts that a skill has for it, and one call of it within limits of time and length."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import to_jsonable_python

from skillc.dataclass import dataclass
from skillc.document.skill import Document
from skillc.document.tool_lines import SECTION, new_names, tool_lines
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
        acts: whether it is given the environment of its rollout, and can act in it.
        original: its name in the program, where a skill has renamed it; else empty.
    """

    name: str
    about: str
    arguments: Mapping[str, JsonObject]
    required: tuple[str, ...]
    call: Callable[[JsonObject, float], Awaitable[str]]
    origin: str = ""
    function: str = ""
    acts: bool = False
    original: str = ""

    @property
    def program_name(self) -> str:
        """Its name in the program, by which metrics and gates know it."""
        return self.original or self.name


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


# ---- texts of a skill -----------------------------------------------------------------------------


def with_texts(tools: Sequence[Tool], document: Document | None, *, renames: bool = False) -> tuple[Tool, ...]:
    """Return tools with the texts that a skill has for them; lines about anything else are advice like other rules.

    With `renames`, also with the names.
    """
    section = document.section(SECTION) if document is not None else None
    found = {tool.name: tool for tool in tools}
    names = new_names(section, found) if renames else {}
    program = {**{name: name for name in found}, **{new: old for old, new in names.items()}}
    for line in tool_lines(section):
        if not line.text or (line.name is not None and not renames):
            continue
        owner, _, argument = line.tool.rpartition(".")
        if line.tool in program:
            name = program[line.tool]
            found[name] = replace(found[name], about=line.text)
        elif owner in program and argument in found[program[owner]].arguments:
            arguments = found[program[owner]].arguments
            found[program[owner]] = replace(
                found[program[owner]],
                arguments={**arguments, argument: {**arguments[argument], "description": line.text}},
            )
    return tuple(
        replace(tool, name=names[name], original=name) if name in names else tool for name, tool in found.items()
    )


def text_lines(tools: Sequence[Tool]) -> list[str]:
    """Return the names and texts of tools and of their arguments, in the form of the section's lines."""
    lines = []
    for tool in tools:
        if tool.original:
            lines.append(f"{tool.original} -> {tool.name}")
        lines.append(f"{tool.name}: {' '.join(tool.about.split())}")
        for name, schema in tool.arguments.items():
            lines.append(f"{tool.name}.{name}: {' '.join(str(schema.get('description', '')).split())}".rstrip())
    return lines
