"""rulebook as a target: it follows the rules that it can read in the skill, and guesses by a weak prior elsewhere.

It answers prompts with output fields, and requests with tools, whose last tool takes the answer.

The prior. A label: the first in declared order whose own words occur in the inputs, else one by the number of letters
and digits in the inputs, which is deterministic and uninformed. A bool: False. A number: the first one in the inputs,
else 0. A list: empty. A text: the capitalised phrase that is most frequent in the longest input and not in the others,
else that input's first sentence.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import dropwhile
from typing import Any

from skillc.dataclass import dataclass
from skillc.document.offer import OPEN
from skillc.json_values import parse_json
from skillc.models.rulebook.agent import (
    TRAJECTORY,
    TURN,
    copied_arguments,
    opened_in,
    read_offer,
    results_of,
    skill_to_open,
    take_turn,
)
from skillc.models.rulebook.copying import CopyRule, copied_texts, number_of, number_or_text, read_copy_rules
from skillc.models.rulebook.sentences import (
    FUNCTION_WORDS,
    DecisionRule,
    decide,
    fired,
    normal,
    read_rules,
    reads_majority,
)

_OBSERVATION = "[[ ## observation_0 ## ]]"
Messages = Sequence[Mapping[str, object]]

_INPUTS = "Your input fields are:"
_OUTPUTS = "Your output fields are:"
_INTERACTIONS = "All interactions will be structured"
_OBJECTIVE = "your objective is:"
_FIELD = re.compile(r"^\d+\.\s+`([^`]+)`\s+\((.*?)\)\s*:", re.MULTILINE)
_ASKED = re.compile(r"\n+Respond with (?:the corresponding output fields|a JSON object)[^\n]*(?:\n.*)?\Z", re.DOTALL)
_ONE_OF = re.compile(r"(?:exactly\s+)?one of(?: these| the following)?(?: labels| words)?:\s*([^\n]+)", re.IGNORECASE)
_CAPITALISED = re.compile(r"\b[A-Z][\w'’-]*(?:\s+(?:(?:of|the|de|van|von)\s+)?[A-Z][\w'’-]*)*")
_NUMBERS = ("int", "float", "optional[int]", "optional[float]")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*")
_FORMATS = (
    (re.compile(r"\b(?:lower[ -]?case|small letters)\b", re.IGNORECASE), "lower"),
    (re.compile(r"\b(?:upper[ -]?case|capital letters|capitals)\b", re.IGNORECASE), "upper"),
    (re.compile(r"\b(?:only|just) the number\b|\bnumber only\b", re.IGNORECASE), "number"),
    (re.compile(r"\bwithout (?:a |the )?(?:full stop|period)\b|\bno (?:full stop|period)\b", re.IGNORECASE), "no_stop"),
    (re.compile(r"\bwithout (?:a |the |an )?article\b", re.IGNORECASE), "no_article"),
    (
        re.compile(r"\b(?:at most|no more than|up to) (\d+|one|two|three|four|five|six) words?\b", re.IGNORECASE),
        "words",
    ),
)
Format = tuple[str, int]
"""The name of a format, and a number of words."""
_COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_FORMAT_LINE = re.compile(
    r"^(?:always\s+|please\s+)?(?:answer|reply|respond|write|give|keep|use|copy)\b", re.IGNORECASE
)
_MARKER = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+)*")
_REASONING = ("reasoning", "rationale", "thought")


@dataclass(frozen=True, slots=True)
class OutputField:
    """An output field: its name, its type as the prompt writes it, and its labels, if any."""

    name: str
    type: str = "str"
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """The fields and the reply format of a system message.

    Attributes:
        style: `fields` is DSPy's `[[ ## name ## ]]`, `json` its JSON format, `plain` any other.
        inputs: names of the input fields.
        outputs: in order.
        skill: the text to search for rules.
    """

    style: str
    inputs: tuple[str, ...]
    outputs: tuple[OutputField, ...]
    skill: str


@lru_cache(maxsize=256)
def read_form(system: str) -> PromptFormat:
    """Read a program's system message."""
    if _OUTPUTS not in system or _INTERACTIONS not in system:
        return PromptFormat("plain", (), (OutputField("answer", "str", _one_of(system)),), system)
    head, _, rest = system.partition(_INTERACTIONS)
    layout, _, skill = rest.partition(_OBJECTIVE)
    before, _, after = head.partition(_OUTPUTS)
    names = tuple(found[1] for found in _FIELD.finditer(before.partition(_INPUTS)[2]))
    outputs = tuple(OutputField(m[1], m[2], _labels(m[1], m[2], layout)) for m in _FIELD.finditer(after))
    style = "json" if "Outputs will be a JSON object" in layout else "fields"
    return PromptFormat(style, names, outputs or (OutputField("answer"),), skill)


def _one_of(text: str) -> tuple[str, ...]:
    """Return the labels that prose lists: `one of: a, b, c`."""
    found = _ONE_OF.search(text)
    if found is None:
        return ()
    parts = re.split(r"[;,|]|\bor\b", found[1])
    return tuple(label for part in parts if (label := part.strip(" .`\"'*")))


def _labels(name: str, kind: str, layout: str) -> tuple[str, ...]:
    """Return the labels of an output, from the note in the layout, else from the type."""
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
    """Read the inputs from the user's message, by name; in plain style the whole message is one.

    A field begins at its first header after the previous field: headers within a value that name another field, or the
    same one again, are part of the value.
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
    """Write the reply in the style of the prompt."""
    if form.style == "plain":
        return "\n".join(values.values())
    if form.style == "json":
        outputs = {output.name: output for output in form.outputs}
        return json.dumps({name: _as_json(outputs[name], value) for name, value in values.items()}, ensure_ascii=False)
    blocks = [f"[[ ## {name} ## ]]\n{value}" for name, value in values.items()]
    return "\n\n".join([*blocks, "[[ ## completed ## ]]"])


def _as_json(output: OutputField, value: str) -> object:
    if output.type == "str" or output.type.startswith("Literal"):
        return value
    return parse_json(value.lower() if output.type == "bool" else value, value)


def texts(messages: Messages, role: str) -> list[str]:
    """Return the texts of all messages of a role; content may have several parts."""
    return [_content(message) for message in messages if message.get("role") == role]


def _content(message: Mapping[str, object]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return "" if content is None else str(content)


@dataclass(frozen=True, slots=True)
class SkillText:
    """The sentences of a skill that rulebook understands."""

    rules: tuple[DecisionRule, ...]
    formats: tuple[Format, ...]
    majority: bool
    copies: tuple[CopyRule, ...] = ()


@lru_cache(maxsize=256)
def read_skill(text: str, fields: tuple[str, ...]) -> SkillText:
    """Read a skill: rules in reading order, whether signs are counted, and unconditional formats."""
    rules = read_rules(text, fields)
    lines = [_MARKER.sub("", line, count=1).strip() for line in text.splitlines()]
    formats = [
        (name, _COUNTS.get(found[1].lower()) or int(found[1]) if name == "words" else 0)
        for line in lines
        if _FORMAT_LINE.match(line)
        for pattern, name in _FORMATS
        if (found := pattern.search(line))
    ]
    return SkillText(rules, tuple(formats), reads_majority(text), read_copy_rules(text, fields))


def deciding_rule(
    skill: SkillText, inputs: Mapping[str, str], labels: Sequence[str], reserved: Sequence[str] = ()
) -> DecisionRule | None:
    """Return the rule that decides, of those whose answer is one of the labels; None if none does.

    Without labels, the answer is free text and none of the reserved labels of other outputs.
    """
    rules = [rule for rule in skill.rules if label_of(rule.answer, labels) is not None]
    if reserved and not labels:
        rules = [rule for rule in rules if label_of(rule.answer, reserved) is None]
    at = decide(rules, inputs, majority=skill.majority)
    return None if at is None else rules[at]


def label_of(answer: str, labels: Sequence[str]) -> str | None:
    """Return the label of an answer in its declared spelling; the answer itself without labels."""
    if not labels or answer in labels:
        return answer
    folded = answer.casefold().strip()
    return next((label for label in labels if label.casefold() == folded), None)


def prior_label(inputs: Mapping[str, str], labels: Sequence[str]) -> str:
    """Return the first label whose own words occur in the inputs, else one by the length of the inputs."""
    for label in labels:
        if any(normal(label) in text for text in inputs.values()):
            return label
    letters = sum(len(text) - text.count(" ") for text in inputs.values())
    return labels[letters % len(labels)]


def answer_target(messages: Messages, *, noise: float, seed: int, sample: object) -> str:
    """Return the reply to a program's prompt; `noise` is the probability of a wrong label."""
    system = "\n\n".join(texts(messages, "system"))
    form = read_form(system)
    users = texts(messages, "user")
    offered = read_offer(form.skill)
    opened = opened_in(users) if offered else {}
    # The messages after the first of a conversation are the texts of skills.
    asked = users[:1] if offered else users[-1:]
    inputs = read_inputs(form, asked[0] if asked else "")
    if {output.name for output in form.outputs}.issuperset(TURN):
        return write_answer(form, take_turn(system, inputs))
    if _OBSERVATION in inputs.get(TRAJECTORY, ""):
        inputs[TRAJECTORY] = results_of(inputs[TRAJECTORY])
    normals = {name: normal(value) for name, value in inputs.items()}
    skill = read_skill("\n\n".join([form.skill, *opened.values()]), form.inputs)
    values: dict[str, str] = {}
    if offered and any(output.name == OPEN for output in form.outputs):
        opens = skill_to_open(offered, opened, inputs)
        if opens:
            return write_answer(form, {output.name: opens if output.name == OPEN else "" for output in form.outputs})
        values[OPEN] = ""
    for output in form.outputs:
        if output.name in values:
            continue
        if output.name in _REASONING and not output.labels and len(form.outputs) > 1:
            values[output.name] = _reasoning(skill, normals, form)
            continue
        value = _value_of(output, skill, inputs, normals, form)
        values[output.name] = _perturbed(value, output.labels, noise, seed, messages, sample)
    return write_answer(form, values)


def _reasoning(skill: SkillText, inputs: Mapping[str, str], form: PromptFormat) -> str:
    labels = form.outputs[-1].labels
    rule = deciding_rule(skill, inputs, labels)
    if rule is None:
        return "No rule applies, so this is a guess."
    if rule.is_default:
        return f"No other rule applies, so the default holds: {rule.answer}."
    return f"The text has {', '.join(f'`{t.strip()}`' for t in fired(rule, inputs))}, so the answer is {rule.answer}."


def _value_of(
    output: OutputField, skill: SkillText, inputs: Mapping[str, str], normals: Mapping[str, str], form: PromptFormat
) -> str:
    """Return the value of an output that the skill decides, else the prior's."""
    reserved = [label for other in form.outputs if other is not output for label in other.labels]
    if output.labels:
        rule = deciding_rule(_about(skill, output.name, form), normals, output.labels, reserved)
        if rule is not None:
            return label_of(rule.answer, output.labels) or output.labels[0]
        return "False" if output.type == "bool" else prior_label(normals, output.labels)
    kind = output.type.lower()
    copies = (copied_texts(copy, inputs) for copy in skill.copies if _folded(copy.name) == _folded(output.name))
    found = next(filter(None, copies), [])
    if kind.startswith("list"):
        numeric = "int" in kind or "float" in kind
        return json.dumps([number_or_text(text) if numeric else text for text in found], ensure_ascii=False)
    if _is_json(output):
        return json.dumps(_object(skill, inputs, normals, form), ensure_ascii=False)
    rule = deciding_rule(_about(skill, output.name, form), normals, (), reserved)
    text = rule.answer if rule and (not rule.is_default or not found) else (found[0] if found else None)
    if kind in _NUMBERS:
        number = number_of(text if text is not None else " ".join(inputs.values())) or 0.0
        return str(int(number)) if number == int(number) else str(int(number) if "int" in kind else number)
    return formatted(guess_text(inputs) if text is None else text, skill.formats)


def _is_json(output: OutputField) -> bool:
    return output.type.lower().removeprefix("optional[").startswith("dict")


def _about(skill: SkillText, name: str, form: PromptFormat) -> SkillText:
    """Return the skill with the rules for one output, `answer priority with high`, and those for no other output."""
    rules = []
    others, keys = {_folded(other.name) for other in form.outputs}, any(map(_is_json, form.outputs))
    for rule in skill.rules:
        head, joined, value = rule.answer.partition(" with ")
        if joined and _folded(head) == _folded(name):
            rules.append(replace(rule, answer=value))
        elif not joined or not (keys or _folded(head) in others):
            rules.append(rule)
    return replace(skill, rules=tuple(rules))


def _object(
    skill: SkillText, inputs: Mapping[str, str], normals: Mapping[str, str], form: PromptFormat
) -> dict[str, object]:
    """Return the keys that sentences name, each with its value."""
    heads = [rule.answer.partition(" with ")[0] for rule in skill.rules if " with " in rule.answer]
    keys = dict.fromkeys([*(copy.name for copy in skill.copies), *heads])
    values: dict[str, object] = {}
    for key in keys:
        if _folded(key) in {_folded(output.name) for output in form.outputs}:
            continue
        own = [rule for rule in skill.rules if rule.answer.startswith(f"{key} with ")]
        at = decide(own, normals, majority=skill.majority)
        copies = [copy for copy in skill.copies if copy.name == key]
        copy, found = next(((copy, texts) for copy in copies if (texts := copied_texts(copy, inputs))), (None, []))
        if at is not None and (not own[at].is_default or copy is None):
            answer = own[at].answer.partition(" with ")[2]
            values[key] = parse_json(answer, answer)
        elif copy is not None:
            one = number_or_text(found[0]) if copy.kind == "number" else found[0]
            values[key] = found if copy.ordinal == "every" else one
    return values


def _folded(name: str) -> str:
    """Return a name without differences of case and underscores."""
    return name.casefold().replace("_", " ").strip()


def guess_text(inputs: Mapping[str, str]) -> str:
    """Guess a text by the weak prior."""
    if not inputs:
        return ""
    longest = max(inputs, key=lambda name: len(inputs[name]))
    others = normal(" ".join(value for name, value in inputs.items() if name != longest))
    # Function words are capitalised at the start of a sentence.
    capitalised = (phrase.split() for phrase in _CAPITALISED.findall(inputs[longest]))
    phrases = (" ".join(dropwhile(lambda word: word.lower() in FUNCTION_WORDS, phrase)) for phrase in capitalised)
    counts = Counter(phrase for phrase in phrases if phrase and normal(phrase) not in others)
    if counts and len(inputs) > 1:
        return max(counts, key=lambda phrase: counts[phrase])
    sentences: list[str] = re.split(r"(?<=[.!?])\s", inputs[longest].strip(), maxsplit=1)
    return sentences[0]


def formatted(text: str, formats: Sequence[Format]) -> str:
    """Apply formats to a text."""
    for name, count in formats:
        if name == "number":
            found = _NUMBER.search(text)
            text = found[0] if found else text
        elif name == "words":
            text = " ".join(text.split()[:count])
        elif name == "no_stop":
            text = text.rstrip(". ")
        elif name == "no_article":
            text = re.sub(r"^(?:the|an|a)\s+", "", text, flags=re.IGNORECASE)
        else:
            text = text.lower() if name == "lower" else text.upper()
    return text


def _draw(seed: int, messages: Messages, sample: object, purpose: str) -> float:
    """Draw a number in [0, 1) by the sha256 of the seed, the messages, the sample and the purpose."""
    text = json.dumps(
        [seed, sample, purpose, [dict(m) for m in messages]], sort_keys=True, ensure_ascii=True, default=str
    )
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) / 2**64


def _perturbed(label: str, labels: Sequence[str], share: float, seed: int, messages: Messages, sample: object) -> str:
    """Return the label, or with probability `share` one of the others."""
    others = [other for other in labels if other != label]
    if share <= 0 or not others or _draw(seed, messages, sample, "whether") >= share:
        return label
    return others[int(_draw(seed, messages, sample, "which") * len(others))]


# ---- tools in the request, calls in the reply ----

_TYPES = {"string": "str", "boolean": "bool", "integer": "int", "number": "float", "array": "list", "object": "dict"}


def call_tool(
    messages: Messages, tools: Sequence[Mapping[str, Any]], *, noise: float, seed: int, sample: object
) -> dict[str, Any]:
    """Return the message with the next call, in the OpenAI chat format as are the tools.

    Each tool is called once whose required arguments can be copied, then the last one, which takes the answer.
    """
    *others, last = (tool["function"] for tool in tools)
    form = read_form("\n\n".join(texts(messages, "system")))
    inputs = read_inputs(form, next(iter(texts(messages, "user")), ""))
    inputs = {name: value for name, value in inputs.items() if name != "history"}
    results = "\n".join(texts(messages, "tool"))
    lists = [calls for message in messages if isinstance(calls := message.get("tool_calls"), list)]
    called = {call["function"]["name"] for calls in lists for call in calls}
    for function in others:
        if function["name"] not in called:
            arguments = copied_arguments(_schemas(function), {**inputs, "result": results})
            if arguments:
                return _call_message(str(function["name"]), arguments, len(messages))
    outputs = tuple(_output(name, schema) for name, schema in _schemas(last).items())
    inputs[TRAJECTORY] = results
    form = PromptFormat(form.style, tuple(inputs), outputs, form.skill)
    skill, normals = read_skill(form.skill, form.inputs), {name: normal(value) for name, value in inputs.items()}
    values: dict[str, object] = {}
    for output in outputs:
        value = _value_of(output, skill, inputs, normals, form)
        values[output.name] = _as_json(output, _perturbed(value, output.labels, noise, seed, messages, sample))
    return _call_message(str(last["name"]), values, len(messages))


def _call_message(name: str, arguments: Mapping[str, object], turn: int) -> dict[str, Any]:
    """Return a call as the message of a chat model; `turn` makes its id unique in a conversation."""
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {
        "role": "assistant",
        "content": f"[[ ## next_thought ## ]]\nI call {name}.\n\n[[ ## completed ## ]]",
        "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": function}],
    }


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
