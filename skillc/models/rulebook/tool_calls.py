"""rulebook as an agent whose tools come with the request, and whose calls are those of the API.

It acts as in `tools.py`: it calls each tool once whose required arguments it can copy, then it calls the last one,
which takes the answer, with what the rules of the skill say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skillc.json_values import parse_json
from skillc.models.rulebook.sentences import normal
from skillc.models.rulebook.target import (
    Messages,
    OutputField,
    PromptFormat,
    perturbed,
    read_form,
    read_inputs,
    read_skill,
    texts,
    value_of,
)
from skillc.models.rulebook.tools import TRAJECTORY, copied_arguments

_TYPES = {"string": "str", "boolean": "bool", "integer": "int", "number": "float", "array": "list", "object": "dict"}


def call_of(
    messages: Messages, tools: Sequence[Mapping[str, Any]], *, noise: float, seed: int, sample: object
) -> tuple[str, dict[str, object]]:
    """Return the name and the arguments of the next call; `noise` is the probability of a wrong label.

    Tools are in the OpenAI chat format; the last one takes the answer.
    """
    functions = [tool["function"] for tool in tools]
    *others, last = functions
    form = read_form("\n\n".join(texts(messages, "system")))
    inputs = read_inputs(form, next(iter(texts(messages, "user")), ""))
    inputs = {name: value for name, value in inputs.items() if name != "history"}
    results = "\n".join(texts(messages, "tool"))
    called = _called(messages)
    for function in others:
        schemas = _schemas(function)
        arguments = copied_arguments(schemas, {**inputs, "result": results}) if function["name"] not in called else None
        if arguments:
            return str(function["name"]), arguments
    outputs = tuple(_output(name, schema) for name, schema in _schemas(last).items())
    inputs[TRAJECTORY] = results
    form = PromptFormat(form.style, tuple(inputs), outputs, form.skill)
    skill, normals = read_skill(form.skill, form.inputs), {name: normal(value) for name, value in inputs.items()}
    values: dict[str, object] = {}
    for output in outputs:
        reserved = [label for other in outputs if other is not output for label in other.labels]
        text = value_of(output, skill, inputs, normals, reserved, form)
        text = perturbed(text, output.labels, noise, seed, messages, sample)
        if output.type != "str" and not output.type.startswith("Literal"):
            values[output.name] = parse_json(text.lower() if output.type == "bool" else text)
        else:
            values[output.name] = text
    return str(last["name"]), values


def _called(messages: Messages) -> set[str]:
    """Return the names of the tools that were called."""
    found: set[str] = set()
    for message in messages:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            found.add(str(call["function"]["name"]))
    return found


def _schemas(function: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schema of each argument; one that is not required has a default."""
    parameters = function.get("parameters") or {}
    required = parameters.get("required") or ()
    properties: Mapping[str, Mapping[str, Any]] = parameters.get("properties") or {}
    return {name: schema if name in required else {"default": None, **schema} for name, schema in properties.items()}


def _output(name: str, schema: Mapping[str, Any]) -> OutputField:
    """Return an output of the answer as a prompt with fields would describe it."""
    options = schema.get("anyOf")
    if isinstance(options, list) and options:
        return _output(name, next((each for each in options if each.get("type") != "null"), {}))
    labels = schema.get("enum") or ([schema["const"]] if "const" in schema else ())
    if labels:
        return OutputField(name, "Literal", tuple(map(str, labels)))
    kind = _TYPES.get(str(schema.get("type")), "str")
    if kind == "list":
        inner = schema.get("items")
        kind = f"list[{_TYPES.get(str(inner.get('type')), 'str') if isinstance(inner, Mapping) else 'str'}]"
    return OutputField(name, kind, ("True", "False") if kind == "bool" else ())


def chat_message(name: str, arguments: Mapping[str, object], turn: int) -> dict[str, Any]:
    """Return a call as the message of a chat model; `turn` makes its id unique in a conversation."""
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {
        "role": "assistant",
        "content": f"[[ ## next_thought ## ]]\nI call {name}.\n\n[[ ## completed ## ]]",
        "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": function}],
    }
