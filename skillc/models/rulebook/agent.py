"""rulebook as an agent: it opens skills from a list, and calls tools in the prompts of `dspy.ReAct`.

It opens the skill whose description fits best, by the words of the inputs that it names: those in backticks or quotes
if it has any, else its longer words. A sentence that begins with "Not" or "Never", or contains "do not" or "not for",
names words that keep the skill closed.

It calls each tool once whose required arguments it can copy from the inputs or from earlier results, by what their
descriptions say: `the word after "order"`, `the first text that looks like "A-1042"`. Then it finishes.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillc.dataclass import dataclass
from skillc.document.offer import OPEN
from skillc.models.rulebook.copying import copied_texts, number_or_text, read_copy_rules
from skillc.models.rulebook.sentences import FUNCTION_WORDS, normal

_ITEM = re.compile(r"^[ \t]*- ([a-z0-9-]+): (.*)$", re.MULTILINE)
_INTRODUCTION = "You can open these skills:"
_OPENED = re.compile(r"\AThe skill ([a-z0-9-]+):\n", re.MULTILINE)
_QUOTED = re.compile(r"[`\"“]([^`\"”]+)[`\"”]")
_NOT = re.compile(r"^(?:not|never)\b|\b(?:do not|don't|does not|not for|except|leave it closed)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True, slots=True)
class OfferedSkill:
    """A skill in the list: its name and its description."""

    name: str
    about: str


def read_offer(instructions: str) -> tuple[OfferedSkill, ...]:
    """Return the skills that a prompt offers."""
    _, found, rest = instructions.partition(_INTRODUCTION)
    listed = rest.partition(f"`{OPEN}")[0]
    return tuple(OfferedSkill(item[1], item[2]) for item in _ITEM.finditer(listed)) if found else ()


def opened_in(users: Sequence[str]) -> dict[str, str]:
    """Return the text by name of the skills that were opened in a conversation."""
    return {found[1]: text for text in users if (found := _OPENED.match(text))}


def skill_to_open(offered: Sequence[OfferedSkill], opened: Mapping[str, str], inputs: Mapping[str, str]) -> str:
    """Return the offered skill whose description fits best, empty if none does or if it is open already."""
    words = normal(" ".join(inputs.values()))
    scores = {skill.name: _fit(skill.about, words) for skill in offered}
    best = max(scores, key=lambda name: scores[name], default="")
    return best if best and scores[best] > 0 and best not in opened else ""


def _fit(about: str, inputs: str) -> int:
    """Return how many words of a description are in the inputs; 0 if one of its exclusions is."""
    fits = 0
    for sentence in re.split(r"(?<=[.;!?])\s+", about):
        named = _QUOTED.findall(sentence) or [
            word for word in _WORD.findall(sentence) if word.lower() not in FUNCTION_WORDS
        ]
        found = sum(re.search(rf"(?<!\w){re.escape(normal(word).strip())}", inputs) is not None for word in named)
        if _NOT.search(sentence):
            if found:
                return 0
        else:
            fits += found
    return fits


# ---- tools ----

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
        if name in called or name == _FINISH:
            continue
        try:
            arguments = copied_arguments(ast.literal_eval(found["args"]), known)
        except (ValueError, SyntaxError):
            continue
        if arguments:
            return dict(zip(TURN, (f"{name} may help.", name, json.dumps(arguments, ensure_ascii=False)), strict=True))
    return dict(zip(TURN, ("No further tool can be called.", _FINISH, "{}"), strict=True))


def results_of(trajectory: str) -> str:
    """Return the results of tools in a trajectory; its other parts are the agent's own words."""
    return "\n".join(text.strip() for text in _RESULT.findall(trajectory))


def copied_arguments(schemas: Mapping[str, Mapping[str, Any]], inputs: Mapping[str, str]) -> dict[str, object] | None:
    """Return the arguments that descriptions say how to copy; None if one without a default is not found."""
    values: dict[str, object] = {}
    for name, schema in schemas.items():
        text = str(schema.get("description", "")).rstrip(".").partition(": ")[0]
        rules = read_copy_rules(f"Answer {name} with {text}.", tuple(inputs))
        found = next(filter(None, (copied_texts(rule, inputs) for rule in rules)), None)
        if found:
            values[name] = number_or_text(found[0]) if schema.get("type") in ("integer", "number") else found[0]
        elif "default" not in schema:
            return None
    return values
