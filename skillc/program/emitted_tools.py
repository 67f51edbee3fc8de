"""The tools of an agent in the emitted module: their texts as literals, their functions as imports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillc.language.kinds import default_of
from skillc.plan.schema import TaskPlan
from skillc.tools.tool import CHARACTERS_A_TOKEN, Tool

_INDENT = "    "


def emitted_tools(task: TaskPlan, tools: Sequence[Tool], literal: Callable[[str], str]) -> dict[str, Any]:
    """Return what the template of the module is given of the tools.

    Functions are imported; the tools of MCP servers are given to the program by its user.
    """
    settings = task.rollout.settings
    functions = {tool.name: tool.function.partition(":") for tool in tools if tool.function}
    return {
        "react": task.rollout.kind == "react",
        "turns": settings.get("turns", default_of("task", "rollout", "turns")),
        "characters": settings.get("result", default_of("task", "rollout", "result")) * CHARACTERS_A_TOKEN // 2,
        "texts": {tool.name: _lines(_texts(tool), literal) for tool in tools},
        "functions": {name: (module, function) for name, (module, _, function) in functions.items()},
        "served": [tool.name for tool in tools if not tool.function],
    }


def _texts(tool: Tool) -> dict[str, Any]:
    return {"desc": tool.about, "args": dict(tool.arguments), "required": list(tool.required)}


def _lines(value: Any, literal: Callable[[str], str], depth: int = 1) -> str:
    """Return a JSON value as a formatted Python literal that begins within an indented line."""
    inner, outer = _INDENT * (depth + 1), _INDENT * depth
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, Mapping):
        items = [f"{literal(str(key))}: {_lines(each, literal, depth + 1)}" for key, each in value.items()]
        return "{\n" + "".join(f"{inner}{item},\n" for item in items) + outer + "}" if items else "{}"
    if isinstance(value, list | tuple):
        items = [_lines(each, literal, depth + 1) for each in value]
        return "[\n" + "".join(f"{inner}{item},\n" for item in items) + outer + "]" if items else "[]"
    return repr(value)
