"""The source text of the emitted module, which runs a compiled skill without skillc."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc.artifact_paths import module_name
from skillc.document.skill import Document, file_sections, link_line
from skillc.language.kinds import default_of
from skillc.plan.schema import Plan, TaskPlan, TypePlan
from skillc.program.names import PREDICTORS, as_read, class_name, field_names
from skillc.tools.tool import CHARACTERS_A_TOKEN, Tool, with_texts

if TYPE_CHECKING:
    from jinja2 import Template

_TYPES = {"text": "str", "bool": "bool", "number": "float", "integer": "int", "file": "str", "image": "dspy.Image"}
_PREDICTORS = {**PREDICTORS, "react": "ReAct"}
_INDENT = "    "


def module_source(plan: Plan, document: Document, tools: Sequence[Tool] = ()) -> str:
    """Return the module's formatted text, with every name and text of the program as a literal.

    It has the DSPy module of the task, or only the instructions if rollouts run through skillc: the kind is no DSPy
    module, or the target opens the skill by itself.
    """
    task = as_read(plan.task)
    fields, names = (*task.inputs, *task.outputs), field_names(task)
    reads = _reads(plan.task)
    given = "**_inputs(inputs)" if any(reads.values()) or _renamed(names) else "**inputs"
    first = task.inputs[0].name if task.inputs else ""
    return _template().render(
        artifact=document.name,
        folder=plan.skill.artifact,
        references={link_line(each): each.file for each in file_sections(document)} if task.rollout.one_turn else {},
        module=module_name(plan.skill.artifact),
        call=f"{first}=..." if first.isidentifier() and not keyword.iskeyword(first) else "...",
        typing=["Any", "Literal"] if any(_has_labels(field.type) for field in fields) else ["Any"],
        signature=class_name(plan.skill.name),
        fields=[
            {
                "name": names[field.name],
                "type": _type(field.type, trailing=","),
                "make": "InputField" if field in task.inputs else "OutputField",
            }
            for field in fields
        ],
        renamed=_renamed(names),
        reads=any(reads.values()),
        **reads,
        call_sync=_outputs(f"self.answer({given})", names),
        call_async=_outputs(f"await self.answer.acall({given})", names),
        predictor=_predictor(plan, tools),
        rollout=task.rollout.kind,
        tools=_tools(task, with_texts(tools, document, renames=plan.skill.renames_tools)),
        on_demand=plan.skill.load == "on_demand",
    )


def _predictor(plan: Plan, tools: Sequence[Tool]) -> str | None:
    """Return the DSPy module of the task; None if its rollouts run through skillc.

    So does an agent whose tools are unknown here, as on a cluster.
    """
    kind = plan.task.rollout.kind
    known = plan.skill.load == "always" and (bool(tools) or kind != "react")
    return _PREDICTORS.get(kind) if known else None


def _renamed(names: Mapping[str, str]) -> dict[str, str]:
    return {old: new for old, new in names.items() if old != new}


def _outputs(call: str, names: Mapping[str, str]) -> str:
    return f"_outputs({call})" if _renamed(names) else call


def _reads(task: TaskPlan) -> dict[str, Any]:
    """Return the inputs that the module converts: images, files, and texts with a limit to cut at."""
    images = [field.name for field in task.inputs if field.type.file_kind == "image"]
    limits = {field.name: f"({field.limit}, {literal(field.cut)})" for field in task.inputs if field.cut is not None}
    files = [field.name for field in task.inputs if field.type.file_kind == "file" and task.rollout.one_turn]
    return {
        "images": images,
        "pixels": {field.name: field.pixels for field in task.inputs if field.pixels is not None},
        "files": {name: limits.get(name, "None") for name in files},
        "cut_texts": {name: limit for name, limit in limits.items() if name not in files},
        "cuts": bool(limits),
    }


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    made = Environment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    made.filters["literal"] = literal
    return made.from_string(Path(__file__).with_name("module.py.j2").read_text(encoding="utf-8"))


def literal(text: str) -> str:
    """Return a string literal in double quotes, or in single quotes if that needs fewer escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + "".join(_escaped(character, quote) for character in text) + quote


def _escaped(character: str, quote: str) -> str:
    if character in ("\\", quote):
        return "\\" + character
    if character == " " or (character.isprintable() and not character.isspace()):
        return character
    return ascii(character)[1:-1]


def _type(type_: TypePlan, *, trailing: str = "") -> list[str]:
    """Return the lines of a type's expression."""
    end = (" | None" if type_.optional else "") + trailing
    if type_.kind == "labels":
        if len(type_.labels) == 1:
            return [f"Literal[{literal(type_.labels[0])}]{end}"]
        return ["Literal[", *(f"{_INDENT}{literal(label)}," for label in type_.labels), f"]{end}"]
    if type_.kind == "list":
        inner = _type(type_.item) if type_.item is not None else ["str"]
        if len(inner) == 1:
            return [f"list[{inner[0]}]{end}"]
        return ["list[", *(_INDENT + line for line in inner), f"]{end}"]
    return [f"{'dict[str, Any]' if type_.kind == 'json' else _TYPES[type_.kind]}{end}"]


def _has_labels(type_: TypePlan) -> bool:
    return type_.kind == "labels" or (type_.item is not None and _has_labels(type_.item))


# ---- tools of an agent ----------------------------------------------------------------------------


def _tools(task: TaskPlan, tools: Sequence[Tool]) -> dict[str, Any]:
    """Return what the template of the module is given of the tools.

    Functions are imported; the tools of MCP servers are given to the program by its user.
    """
    settings = task.rollout.settings
    functions = {tool.name: tool.function.partition(":") for tool in tools if tool.function}
    return {
        "react": task.rollout.kind == "react",
        "native": task.rollout.native_calls,
        "turns": settings.get("turns", default_of("task", "rollout", "turns")),
        "characters": settings.get("result", default_of("task", "rollout", "result")) * CHARACTERS_A_TOKEN // 2,
        "texts": {
            tool.name: _lines({"desc": tool.about, "args": tool.arguments, "required": tool.required}) for tool in tools
        },
        "functions": {name: (module, function) for name, (module, _, function) in functions.items()},
        "served": [tool.program_name for tool in tools if not tool.function],
        "renamed": {tool.program_name: tool.name for tool in tools if tool.original and not tool.function},
    }


def _lines(value: Any, depth: int = 1) -> str:
    """Return a JSON value as a formatted Python literal that begins within an indented line."""
    inner, outer = _INDENT * (depth + 1), _INDENT * depth
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, Mapping):
        items = [f"{literal(str(key))}: {_lines(each, depth + 1)}" for key, each in value.items()]
        return "{\n" + "".join(f"{inner}{item},\n" for item in items) + outer + "}" if items else "{}"
    if isinstance(value, list | tuple):
        items = [_lines(each, depth + 1) for each in value]
        return "[\n" + "".join(f"{inner}{item},\n" for item in items) + outer + "]" if items else "[]"
    return repr(value)
