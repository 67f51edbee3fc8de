"""Reads a target's prompt: inputs, outputs with their labels, and the skill's text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

_INPUTS = "Your input fields are:"
_OUTPUTS = "Your output fields are:"
_INTERACTIONS = "All interactions will be structured"
_OBJECTIVE = "your objective is:"
_FIELD = re.compile(r"^\d+\.\s+`([^`]+)`\s+\((.*?)\)\s*:", re.MULTILINE)
_ASKED = re.compile(r"\n+Respond with (?:the corresponding output fields|a JSON object)[^\n]*(?:\n.*)?\Z", re.DOTALL)
_ONE_OF = re.compile(r"(?:exactly\s+)?one of(?: these| the following)?(?: labels| words)?:\s*([^\n]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Output:
    """An output field: its name, its type as the prompt writes it, and its labels where it has any."""

    name: str
    type: str = "str"
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """The form that a system message asks for.

    Attributes:
        style: `fields` is DSPy's `[[ ## name ## ]]`, `json` its JSON form, `plain` anything else.
        inputs: names of the input fields.
        outputs: in order.
        skill: the text in which rules are looked for.
    """

    style: str
    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]
    skill: str


@lru_cache(maxsize=256)
def read_form(system: str) -> PromptFormat:
    """The form of a program, from its system message."""
    if _OUTPUTS not in system or _INTERACTIONS not in system:
        return PromptFormat("plain", (), (Output("answer", "str", _one_of(system)),), system)
    head, _, rest = system.partition(_INTERACTIONS)
    layout, _, skill = rest.partition(_OBJECTIVE)
    before, _, after = head.partition(_OUTPUTS)
    names = tuple(found[1] for found in _FIELD.finditer(before.partition(_INPUTS)[2]))
    outputs = tuple(Output(m[1], m[2], _labels(m[1], m[2], layout)) for m in _FIELD.finditer(after))
    style = "json" if "Outputs will be a JSON object" in layout else "fields"
    return PromptFormat(style, names, outputs or (Output("answer"),), skill)


def _one_of(text: str) -> tuple[str, ...]:
    """Labels that plain prose lists: `one of: a, b, c`."""
    found = _ONE_OF.search(text)
    if found is None:
        return ()
    parts = re.split(r"[;,|]|\bor\b", found[1])
    return tuple(label for part in parts if (label := part.strip(" .`\"'*")))


def _labels(name: str, kind: str, layout: str) -> tuple[str, ...]:
    """The labels of an output: from the note in the layout, else from the type."""
    if kind == "bool":
        return ("True", "False")
    note = re.search(
        rf"{{{re.escape(name)}}}[^\n]*?must exactly match \(no extra characters\) one of: ([^\n]*?)\"?,?(?:\n|\Z)",
        layout,
    )
    if note:
        return tuple(part.strip() for part in note[1].split(";") if part.strip())
    found = re.search(r"Literal\[(.*)\]", kind)
    return tuple(a or b for a, b in re.findall(r"'([^']*)'|\"([^\"]*)\"", found[1])) if found else ()


def read_inputs(form: PromptFormat, user: str) -> dict[str, str]:
    """The inputs in the user's message, by name; in plain style the whole message is one.

    A field begins at the first line that is its own header after the field before it: headers inside a value that
    name another field, or the same one again, are part of the value.
    """
    if form.style == "plain" or not form.inputs:
        return {"input": user}
    body = _ASKED.sub("", user)
    starts: list[tuple[str, int, int]] = []
    at = 0
    for name in form.inputs:
        found = re.compile(rf"^\[\[ ## {re.escape(name)} ## \]\][ \t]*$", re.MULTILINE).search(body, at)
        if found:
            starts.append((name, found.start(), found.end()))
            at = found.end()
    ends = [start for _, start, _ in starts[1:]] + [len(body)]
    values = {name: body[begin:end].strip() for (name, _, begin), end in zip(starts, ends, strict=True)}
    return values or {"input": body.strip()}


def write_answer(form: PromptFormat, values: Mapping[str, str]) -> str:
    """The reply in the style that the prompt asks for."""
    if form.style == "plain":
        return "\n".join(values.values())
    if form.style == "json":
        return json.dumps({name: _json_value(form, name, value) for name, value in values.items()}, ensure_ascii=False)
    blocks = [f"[[ ## {name} ## ]]\n{value}" for name, value in values.items()]
    return "\n\n".join([*blocks, "[[ ## completed ## ]]"])


def _json_value(form: PromptFormat, name: str, value: str) -> object:
    kind = next(output.type for output in form.outputs if output.name == name)
    if kind == "str" or kind.startswith("Literal"):
        return value
    try:
        return json.loads(value.lower() if kind == "bool" else value)
    except json.JSONDecodeError:
        return value


def texts(messages: Sequence[Mapping[str, object]], role: str) -> list[str]:
    """The texts of all messages of a role; content may be parts."""
    return [_content(message) for message in messages if message.get("role") == role]


def _content(message: Mapping[str, object]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return "" if content is None else str(content)
