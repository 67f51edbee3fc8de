"""Scripts in place of both models, so that the program compiles without a key.

The target searches a house place by place, and does what the goal asks for besides only if a rule of its skill says
how. The optimizer reads the goals of failed games and proposes the rules that they ask for. The games are real. So a
compile shows that the loop runs on the engine, and nothing about a language model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillc import Reply, scripted

RULES = {
    "clean": "To clean an object, hold it and clean it with the sinkbasin before you place it.",
    "hot": "To heat an object, hold it and heat it with the microwave before you place it.",
    "cool": "To cool an object, hold it and cool it with the fridge before you place it.",
    "light": "To look at an object under a lamp, hold it, go where the lamp is, and use the lamp.",
    "two": "To place two objects, bring one, and then search the rest of the house for the other.",
}
"""What each word of a goal asks for."""
_TOOLS = {"clean": "sinkbasin", "hot": "microwave", "cool": "fridge"}
_VERBS = {"clean": "clean", "hot": "heat", "cool": "cool"}
_REASONS = "alone on the last line"

Messages = Sequence[Mapping[str, str]]


def wish(goal: str) -> str:
    """Return what a goal asks for besides a place; empty for nothing."""
    found = re.search(r"put a (clean|hot|cool) |put (two) |under the desk(lamp)", goal)
    return "" if found is None else {"lamp": "light"}.get(found[found.lastindex or 0], found[found.lastindex or 0])


def act(messages: Messages, model: str, parameters: Any) -> Reply:
    """Return the next action, after a line of reasoning if the prompt asks for one."""
    action = _next(messages)
    reasons = _REASONS in messages[0]["content"]
    return scripted.reply(f"This is the next step.\n{action}" if reasons else action, messages)


def improve(messages: Messages, model: str, parameters: Any) -> Reply:
    """Propose the rule that the goal of each failed game asks for."""

    def cures(case: scripted.Case, skill: str) -> list[str]:
        found = RULES.get(wish(case.inputs.get("goal", "")))
        return [found] if found else []

    return scripted.learn(messages, cures)


def _next(messages: Messages) -> str:
    """Search the receptacles in turn, and do what the skill says with the object."""
    goal = _found(r"## goal\n(.*)", messages[1]["content"])
    possible = re.findall(r"^- (.*)$", messages[-1]["content"], re.MULTILINE)
    asked = wish(goal)
    known = asked if RULES.get(asked, "-") in messages[0]["content"] else ""
    obj = _found(r"(?:put (?:a|two)(?: clean| hot| cool)?|look at) (\w+)", goal)
    end = _found(r" in (\w+)\.", goal)
    past = [message["content"].splitlines()[-1] for message in messages if message["role"] == "assistant"]
    seen = [message["content"] for message in messages if message["role"] == "user"]
    held = next((each for each in reversed(past) if re.match(r"(take|move) ", each)), "").startswith("take ")
    if held:
        return _use(known, obj, end, past, seen, possible)
    placed = [re.match(r"move (\w+ \d+) to (\w+ \d+)", each) for each in past]
    kept = {match[2] for match in placed if match}
    for each in possible:
        taken = re.match(rf"take {obj} \d+ from (\w+ \d+)$", each)
        if taken and taken[1] not in kept:
            return each
    if kept and not known:
        return "look"
    return _search(past, possible)


def _use(known: str, obj: str, end: str, past: list[str], seen: list[str], possible: list[str]) -> str:
    """Act with the object in hand."""
    tool, verb = _TOOLS.get(known), _VERBS.get(known)
    if tool is not None and not any(each.startswith(f"{verb} {obj}") for each in past):
        return _first(possible, rf"{verb} {obj} \d+ with {tool}") or f"go to {tool} 1"
    if not end:
        lamp = next(
            (_found(r"(?:On|In) (?:the )?(\w+ \d+).*desklamp", each) for each in seen if "desklamp 1" in each), ""
        )
        used = _first(possible, r"use desklamp \d+") if known else None
        if used:
            return used
        return f"go to {lamp}" if known and lamp else _search(past, possible)
    placed = {each.rpartition(" to ")[2] for each in past if each.startswith("move ")}
    target = next(iter(sorted(place for place in placed if place.startswith(end))), f"{end} 1")
    there = _first(possible, rf"move {obj} \d+ to {target}$") or _first(possible, rf"open {target}$")
    return there or f"go to {target}"


def _search(past: list[str], possible: list[str]) -> str:
    """Open what is closed here, else go to the next receptacle."""
    if past and past[-1].startswith("go to "):
        closed = _first(possible, rf"open {past[-1].removeprefix('go to ')}$")
        if closed:
            return closed
    visited = {each.removeprefix("go to ") for each in past if each.startswith("go to ")}
    left = [each for each in possible if each.startswith("go to ") and each.removeprefix("go to ") not in visited]
    return left[0] if left else _first(possible, "go to ") or "look"


def _first(possible: list[str], pattern: str) -> str | None:
    return next((each for each in possible if re.match(pattern, each)), None)


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else ""
