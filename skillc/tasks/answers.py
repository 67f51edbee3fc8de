"""Ask an agent that replies in free text for the task's outputs, and read them from its last message."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from skillc.json_values import JsonObject, as_text
from skillc.outcomes import Example
from skillc.plan.initial import task_text
from skillc.plan.schema import FieldPlan, TaskPlan, TypePlan
from skillc.program.module import annotation
from skillc.text import listed, shown

_BLOCK = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)
_AROUND = " \t\r\n\"'`*."
_MOST_SHOWN = 80


def question(task: TaskPlan, example: Example) -> str:
    """Return the task in words, the inputs of an example, and the form of the answer."""
    given = "\n\n".join(f"## {name}\n{as_text(value)}" for name, value in example.inputs.items())
    return "\n\n".join(part for part in (task_text(task), given, answer_form(task)) if part)


def answer_form(task: TaskPlan) -> str:
    """Describe the last message: the value of a single output alone, or a JSON object of all outputs."""
    if not task.outputs:
        return ""
    if len(task.outputs) == 1:
        return f"Your last message must contain only the {task.outputs[0].name.replace('_', ' ')}."
    keys = listed((field.name for field in task.outputs), "and")
    return f"Your last message must be a JSON object with the keys {keys}."


def read_answer(task: TaskPlan, text: str) -> tuple[JsonObject | None, str | None]:
    """Return the outputs in a message, or None and the problem.

    A JSON object with the names of all outputs is read from the whole message or its last code block; the value of a
    single output may also be the whole message, or else its last line that is not blank.
    """
    found = _json_object(text)
    if found is not None and all(field.name in found for field in task.outputs):
        return _typed(task.outputs, found)
    if len(task.outputs) != 1:
        missing = [field.name for field in task.outputs if found is None or field.name not in found]
        return (None, f"the last message lacks {listed(missing)}") if missing else ({}, None)
    (field,) = task.outputs
    if not text.strip():
        return None, "the last message is empty"
    lines = [line for line in text.splitlines() if line.strip()]
    for candidate in dict.fromkeys((text.strip(), lines[-1].strip(), lines[-1].strip(_AROUND))):
        values, _ = _typed((field,), {field.name: candidate})
        if values is not None:
            return values, None
    return None, f"the last message is no valid `{field.name}`: {shown(lines[-1].strip(), _MOST_SHOWN)}"


def _json_object(text: str) -> dict[str, Any] | None:
    for candidate in (text, *reversed(_BLOCK.findall(text))):
        try:
            value = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return None


def _typed(outputs: tuple[FieldPlan, ...], found: dict[str, Any]) -> tuple[JsonObject | None, str | None]:
    values: dict[str, Any] = {}
    for field in outputs:
        value, adapter = found[field.name], _adapter(field.type)
        # A number or a list in a text is JSON.
        readings = [value, *_from_json(value)] if isinstance(value, str) and field.type.kind != "text" else [value]
        for reading in readings:
            try:
                values[field.name] = adapter.dump_python(adapter.validate_python(reading), mode="json")
                break
            except ValidationError:
                continue
        else:
            return None, f"`{field.name}` is no declared value: {shown(str(value), _MOST_SHOWN)}"
    return values, None


@lru_cache(maxsize=64)
def _adapter(type_: TypePlan) -> TypeAdapter[Any]:
    return TypeAdapter(annotation(type_))


def _from_json(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except ValueError:
        return []
