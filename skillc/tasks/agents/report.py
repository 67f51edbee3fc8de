"""What an agent reports of one rollout, read from what it printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from skillc.dataclass import dataclass
from skillc.json_values import JsonObject
from skillc.models.calls import Usage
from skillc.models.ledger import NANO_PER_DOLLAR
from skillc.trajectories.trajectory import Message, Observation, Step, ToolCall


@dataclass(frozen=True, slots=True)
class Report:
    """One rollout as its agent reports it.

    Attributes:
        reply: its last message.
        steps: in order, without the changed files.
        usages: of its calls of the model, or their sum as one; None if it reports none.
        cost: nano-dollars; None if it reports none.
        turns: calls of the model.
        failure: why it did not finish, in its words; None if it did.
    """

    reply: str = ""
    steps: tuple[Step, ...] = ()
    usages: tuple[Usage, ...] | None = None
    cost: int | None = None
    turns: int = 1
    failure: str | None = None


class Unreadable(ValueError):  # noqa: N818
    """What an agent printed is not the documented form."""


def json_lines(output: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in lines; other lines are notices of programs that the agent ran.

    Raises:
        Unreadable: no line is a JSON object.
    """
    found = False
    for line in output.decode(errors="replace").splitlines():
        if not line.startswith("{"):
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found = True
            yield value
    if not found:
        raise Unreadable("it printed no events")


def usage_of(
    prompt: object, completion: object, *, cached: object = 0, reasoning: object = 0, apart: bool = False
) -> Usage | None:
    """Return a reported usage, None if the counts are no numbers or all 0; `apart`: the prompt excludes cached."""
    counts = [each if isinstance(each, int) and each >= 0 else 0 for each in (prompt, cached, completion, reasoning)]
    if not any(counts):
        return None
    sent, known, received, thought = counts
    return Usage(sent + known if apart else sent, known, received, thought)


def all_known(usages: Sequence[Usage | None]) -> tuple[Usage, ...] | None:
    """Return the usages of a rollout; None if there is none, or one is unknown."""
    known = tuple(usage for usage in usages if usage is not None)
    return known if known and len(known) == len(usages) else None


def object_of(value: object) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def nano(dollars: object) -> int | None:
    """Return reported dollars in nano-dollars; None if it is no number."""
    return round(dollars * NANO_PER_DOLLAR) if isinstance(dollars, int | float) else None


def last_message(steps: Iterable[Step]) -> str:
    """Return the text of the last message of the model; empty without one."""
    return next((step.text for step in reversed(tuple(steps)) if isinstance(step, Message)), "")


def tool_use(tool: object, arguments: object, result: object, failed: bool) -> tuple[ToolCall, Observation]:
    """Return a call of a tool with its result."""
    given: JsonObject = {"input": arguments} if isinstance(arguments, str) else object_of(arguments)
    return ToolCall(str(tool), given), Observation(text_of(result), failed)


def text_of(content: object) -> str:
    """Return the text of a result: a text, parts with texts, or JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return "" if content is None else json.dumps(content, ensure_ascii=False)
