"""rulebook as an agent with tools, in the prompts of `dspy.ReAct`.

It calls each tool once whose required arguments it can copy from the inputs or from earlier results, by what their
descriptions say: `the word after "order"`, `the first text that looks like "A-1042"`. Then it finishes.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from skillc.models.rulebook.copying import copied_texts, number_of, read_copy_rules

TURN = ("next_thought", "next_tool_name", "next_tool_args")
"""The outputs of a turn."""
_TOOL = re.compile(
    r"^\s*\(\d+\) (?P<name>[\w.-]+)(?:, whose description is .*?)?\. It takes arguments (?P<args>\{.*\})\.$",
    re.MULTILINE,
)
_CALLED = re.compile(r"^\[\[ ## tool_name_\d+ ## \]\]\n(.*)$", re.MULTILINE)
_RESULT = re.compile(r"^\[\[ ## observation_\d+ ## \]\]\n(.*?)(?=^\[\[ ## |\Z)", re.MULTILINE | re.DOTALL)
_FINISH = "finish"
TRAJECTORY = "trajectory"
"""The input with what an agent has done."""


def take_turn(system: str, inputs: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a turn: the next tool that can be called, else `finish`."""
    trajectory = inputs.get(TRAJECTORY, "")
    called = set(_CALLED.findall(trajectory))
    known = {name: text for name, text in inputs.items() if name != TRAJECTORY}
    known["result"] = "\n".join(_RESULT.findall(trajectory))
    for found in _TOOL.finditer(system):
        name = found["name"]
        arguments = _written(found["args"], known) if name not in called and name != _FINISH else None
        if arguments:
            return dict(zip(TURN, (f"{name} may help.", name, json.dumps(arguments, ensure_ascii=False)), strict=True))
    return dict(zip(TURN, ("No further tool can be called.", _FINISH, "{}"), strict=True))


def results_of(trajectory: str) -> str:
    """Return the results of tools in a trajectory; its other parts are the agent's own words."""
    return "\n".join(text.strip() for text in _RESULT.findall(trajectory))


def _written(written: str, inputs: Mapping[str, str]) -> dict[str, object] | None:
    """Return the arguments of a tool whose schemas a prompt contains."""
    try:
        schemas = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return None
    return copied_arguments(schemas, inputs)


def copied_arguments(schemas: Mapping[str, Mapping[str, Any]], inputs: Mapping[str, str]) -> dict[str, object] | None:
    """Return the arguments that descriptions say how to copy; None if one without a default is not found."""
    values: dict[str, object] = {}
    for name, schema in schemas.items():
        text = str(schema.get("description", "")).rstrip(".").partition(": ")[0]
        rules = read_copy_rules(f"Answer {name} with {text}.", tuple(inputs))
        found = next(filter(None, (copied_texts(rule, inputs) for rule in rules)), None)
        if found:
            numeric = schema.get("type") in ("integer", "number")
            number = number_of(found[0]) if numeric else None
            values[name] = found[0] if number is None else int(number) if number == int(number) else number
        elif "default" not in schema:
            return None
    return values
