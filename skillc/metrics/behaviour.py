"""What metrics measure of a whole rollout, by the names of their functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.metrics.primitives import Measurement, covers, mentions, phrases_of, text_of
from skillc.text import counted, listed
from skillc.trajectories.trajectory import FileChange, Trajectory

_NANO = 10**9


def reward(trajectory: Trajectory) -> Measurement:
    """Return the score that the environment gave.

    Raises:
        SkillcError: it gave none.
    """
    if trajectory.reward is None:
        raise SkillcError("the rollout has no reward", hint="set `reward` of the `skillc.Trajectory` that it returns")
    limit = f"; the limit of {trajectory.turns} turns was reached" if trajectory.outcome == "turns" else ""
    return Measurement(trajectory.reward, f"the environment gave {trajectory.reward:g}{limit}")


def turns(trajectory: Trajectory) -> Measurement:
    """Return the number of turns."""
    return Measurement(trajectory.turns)


def seconds(trajectory: Trajectory) -> Measurement:
    """Return the wall time. It has no feedback: no prompt shows a time, which differs between equal runs."""
    return Measurement(trajectory.seconds)


def cost(trajectory: Trajectory) -> Measurement:
    """Return the list price of the rollout's calls in dollars.

    Raises:
        SkillcError: a price is unknown.
    """
    if trajectory.cost is None:
        raise SkillcError(
            "the price of the rollout's calls is unknown", hint="declare `price = { input = $1, output = $4 }`"
        )
    return Measurement(trajectory.cost / _NANO)


def used(trajectory: Trajectory, tool: str) -> Measurement:
    """1 if the rollout called the tool, else 0."""
    found = any(call.tool == tool for call in trajectory.calls())
    return Measurement(int(found), "" if found else f"it never called `{tool}`")


def calls(trajectory: Trajectory, tool: str) -> Measurement:
    """Count the calls of a tool."""
    number = sum(call.tool == tool for call in trajectory.calls())
    return Measurement(number, f"it called `{tool}` {counted(number, 'time')}")


def order(trajectory: Trajectory, *tools: str) -> Measurement:
    """1 if the rollout called all of the tools, and the first calls came in this order, else 0."""
    first = list(dict.fromkeys(call.tool for call in trajectory.calls() if call.tool in tools))
    if first == list(dict.fromkeys(tools)):
        return Measurement(1)
    return Measurement(
        0, f"it called {listed(first, 'then') if first else 'none of them'}, not {listed(tools, 'then')}"
    )


def file_contains(trajectory: Trajectory, path: str, phrases: JsonValue) -> Measurement:
    """The share of the phrases that a file has at the end of the rollout; 0 if the rollout did not write it."""
    changes = [step for step in trajectory.steps if isinstance(step, FileChange) and step.path == path]
    if not changes or changes[-1].text is None:
        return Measurement(0, f"it wrote no text to `{path}`")
    found = covers(changes[-1].text, phrases_of(phrases))
    return Measurement(found.score, "" if found.score == 1 else f"`{path}` {found.feedback}")


def call_mentions(trajectory: Trajectory, phrases: JsonValue, tool: str | None = None) -> Measurement:
    """1 if an argument of a call contains at least one of the phrases, ignoring case and white space, else 0.

    Calls of tools that do not exist count too: they are attempts. With `tool` only calls of that one count.
    """
    for call in trajectory.calls():
        if tool is not None and call.tool != tool:
            continue
        if mentions("\n".join(_texts(dict(call.arguments))), phrases_of(phrases)).score:
            # The texts themselves may come from a column that the optimizer does not read.
            return Measurement(1, f"its call of `{call.shown}` contains what no call may contain")
    return Measurement(0)


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield all texts in a value, at any depth."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif value is not None:
        yield text_of(value)


TRAJECTORY: Mapping[str, Callable[..., Measurement]] = {
    each.__name__: each for each in (reward, turns, seconds, cost, used, calls, order, file_contains, call_mentions)
}
WITHOUT_ANSWER = frozenset({"used", "calls", "order", "file_contains", "call_mentions"})
"""What a rollout without a readable answer has too."""
_SHARES = frozenset({"reward", "used", "order", "file_contains", "call_mentions"})


def measure_trajectory(function: str, trajectory: Trajectory, arguments: list[Any]) -> tuple[Measurement, float]:
    """Return the result of a function, and the largest that it may have."""
    measured = TRAJECTORY[function](trajectory, *arguments)
    return measured, 1 if function in _SHARES else max(1, float(measured.score))
