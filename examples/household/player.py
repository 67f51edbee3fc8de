"""Scripts in place of models: a target that searches a house and follows the skill, and an optimizer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

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


def wish(goal: str) -> str:
    """Return what a goal asks for besides a place; empty for nothing."""
    found = re.search(r"put a (clean|hot|cool) |put (two) |under the desk(lamp)", goal)
    return "" if found is None else {"lamp": "light"}.get(found[found.lastindex or 0], found[found.lastindex or 0])


def act(messages: Sequence[dict[str, str]], model: str, parameters: Any) -> str:
    """Return the next action: search the receptacles in turn, and do what the skill says with the object."""
    goal = re.search(r"## goal\n(.*)", messages[1]["content"])[1]  # type: ignore[index]
    possible = re.findall(r"^- (.*)$", messages[-1]["content"], re.MULTILINE)
    asked = wish(goal)
    known = asked if RULES.get(asked, "-") in messages[0]["content"] else ""
    obj = re.search(r"(?:put (?:a|two)(?: clean| hot| cool)?|look at) (\w+)", goal)[1]  # type: ignore[index]
    end = (re.search(r" in (\w+)\.", goal) or ["", ""])[1]
    past = [message["content"] for message in messages if message["role"] == "assistant"]
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
    return _search(past, seen, possible, skip=kept)


def _use(known: str, obj: str, end: str, past: list[str], seen: list[str], possible: list[str]) -> str:
    """Act with the object in hand."""
    tool, verb = _TOOLS.get(known), _VERBS.get(known)
    if tool is not None and not any(each.startswith(f"{verb} {obj}") for each in past):
        return _first(possible, rf"{verb} {obj} \d+ with {tool}") or f"go to {tool} 1"
    if not end:
        lamp = next(
            (re.search(r"(?:On|In) (?:the )?(\w+ \d+).*desklamp", each) for each in seen if "desklamp 1" in each), None
        )
        used = _first(possible, r"use desklamp \d+") if known else None
        if used:
            return used
        return f"go to {lamp[1]}" if known and lamp else _search(past, seen, possible)
    placed = {each.rpartition(" to ")[2] for each in past if each.startswith("move ")}
    target = next(iter(sorted(place for place in placed if place.startswith(end))), f"{end} 1")
    there = _first(possible, rf"move {obj} \d+ to {target}$") or _first(possible, rf"open {target}$")
    return there or f"go to {target}"


def _search(past: list[str], seen: list[str], possible: list[str], skip: Any = ()) -> str:
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


def improve(messages: Sequence[dict[str, str]], model: str, parameters: Any) -> str:
    """Return a rule for each sort of goal among the failed games that the skill says nothing about."""
    prompt = messages[-1]["content"]
    cases = re.findall(r'<trajectory tag="(t\d+)".*?<input name="goal">(.*?)</input>', prompt, re.DOTALL)
    rules: dict[str, list[str]] = {}
    for tag, goal in cases:
        text = RULES.get(wish(goal))
        if text and text not in prompt.partition("<trajectories")[0]:
            rules.setdefault(text, []).append(tag)
    edits = [{"op": "add", "section": "rules", "text": text, "cures": tags} for text, tags in rules.items()]
    return json.dumps({"summary": "steps that the goals ask for", "edits": edits, "unexplained": []})
