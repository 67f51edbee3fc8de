"""Scripts in place of both models, so that the program compiles without a key.

The agent's script knows from `data/plays.json` which tools each question needs, and which mistake it makes until the
skill has the rule against it. It answers only with what its tools returned. The optimizer's script finds the rule for a
failure from its feedback. So a compile shows that the loop, the tools and the score work, and nothing about a language
model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from skillc import Reply, scripted

RULES = {
    "unit": "Write a number alone: without its unit and without commas.",
    "list": "Separate the items of a list by commas only, in the order that the question asks for.",
    "sentence": "Answer with the name, the word or the number alone, never with a sentence.",
    "file": "Compute over an attached file with `run_python`; do not add up or compare its rows by eye.",
    "older": "Look for a later source or a correction of each figure, and use the latest.",
    "lookup": "Search for the facts that a question needs, never for the benchmark that it is from.",
}
_PLAYS = Path(__file__).with_name("data") / "plays.json"
_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\]\n(.*?)(?=^\[\[ ## |\Z)", re.MULTILINE | re.DOTALL)

Messages = Sequence[Mapping[str, str]]


@cache
def _plays() -> dict[str, Any]:
    return dict(json.loads(_PLAYS.read_text(encoding="utf-8")))


def act(messages: Messages, model: str, parameters: Any) -> Reply:
    """Return the next call of a tool, or the answer, as `dspy.ReAct` asks for them."""
    skill, user = messages[0]["content"], messages[-1]["content"]
    fields = {name: text.strip() for name, text in _FIELD.findall(user.partition("Respond with")[0])}
    seen = [text for name, text in fields.items() if name.startswith("observation")]
    play = _plays()[fields["question"]]
    mistake = play.get("mistake")
    if mistake is not None and RULES[mistake["rule"]] not in skill:
        calls, answer, evidence = mistake["calls"], mistake["answer"], []
    else:
        calls, answer, evidence = play["calls"], play["answer"], play["evidence"]
    if "next_tool_name" in skill.partition("All interactions")[0]:
        name, arguments = calls[len(seen)] if len(seen) < len(calls) else ("finish", {})
        thought = "The answer is certain." if name == "finish" else f"I use {name}."
        call = _fields(next_thought=thought, next_tool_name=name, next_tool_args=json.dumps(arguments))
        return scripted.reply(call, messages)
    found = all(text in "\n".join(seen) for text in evidence)
    told = _fields(reasoning="This follows from what the tools returned.", answer=answer if found else "")
    return scripted.reply(told, messages)


def improve(messages: Messages, model: str, parameters: Any) -> Reply:
    """Propose the rule against the kind of mistake that each failed case shows."""

    def cures(case: scripted.Case, skill: str) -> list[str]:
        found = _mistake(case.feedback, case.gold_text or "", case.answer_text, case.inputs.get("file", ""))
        return [RULES[found]] if found else []

    return scripted.learn(messages, cures)


def _mistake(feedback: str, gold: str, given: str, file: str) -> str:
    """Return the kind of a mistake; empty where none shows."""
    if "contains what no call may contain" in feedback:
        return "lookup"
    if not gold or gold == given:
        return ""
    if "," in gold:
        return "list"
    if re.fullmatch(r"[\d,.]+ \w+", given):
        return "unit"
    if gold in given and not given.isdigit():
        return "sentence"
    return "file" if "." in file else "older"


def _fields(**values: str) -> str:
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in {**values, "completed": ""}.items())
