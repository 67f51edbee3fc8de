"""What a trajectory shows without a model: signs that explain a failure, and the skills that the target opened."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from skillc.text import counted, shown
from skillc.trajectories.trajectory import Message, Observation, ToolCall, Trajectory

_LIMITS = {"turns": "it reached its limit of turns, {}", "time": "it reached its limit of time"}
_REPEATS = 3
_MOST_SHOWN = 80
# Tools that open a skill, by their names in lower case: skillc's, Claude Code's and opencode's, and that of Hermes.
_TOOLS = frozenset({"open_skill", "skill", "skill_view"})
_ARGUMENTS = ("name", "skill", "command")
# Other agents read the file.
_FILE = re.compile(r"([\w.-]+)[/\\]+SKILL\.md\b")


def signals(trajectory: Trajectory, *, forbidden: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what is conspicuous in a trajectory, each as one sentence for the optimizer.

    `forbidden` are names that no tool may search for, such as that of the benchmark.
    """
    return (
        *((_LIMITS[trajectory.outcome].format(trajectory.turns),) if trajectory.outcome in _LIMITS else ()),
        *_failures(trajectory),
        *_repeats(trajectory),
        *_searches(trajectory, forbidden),
        *_user_errors(trajectory),
    )


def _failures(trajectory: Trajectory) -> Iterable[str]:
    """Yield each tool that failed, with how often and its last error."""
    failed: Counter[str] = Counter()
    errors: dict[str, str] = {}
    calls: Counter[str] = Counter()
    tool = ""
    for step in trajectory.steps:
        if isinstance(step, ToolCall):
            tool = step.shown
            calls[tool] += 1
        elif isinstance(step, Observation) and step.failed:
            failed[tool] += 1
            errors[tool] = step.text
    for name, number in failed.items():
        of = f"{number} of {counted(calls[name], 'call')}" if calls[name] else counted(number, "time")
        yield f"`{name}` failed, {of}: {shown(errors[name], _MOST_SHOWN)}"


def _repeats(trajectory: Trajectory) -> Iterable[str]:
    """Yield each action that was repeated in a row with the same arguments."""
    run, last = 0, None
    found: dict[str, int] = {}
    for call in trajectory.calls():
        run = run + 1 if call == last else 1
        last = call
        if run >= _REPEATS:
            found[call.shown] = max(run, found.get(call.shown, 0))
    for tool, number in found.items():
        yield f"`{tool}` was called {number} times in a row with the same arguments"


def _searches(trajectory: Trajectory, forbidden: Sequence[str]) -> Iterable[str]:
    """Yield each forbidden name that the arguments of a call contain."""
    for name in forbidden:
        pattern = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
        tools = {call.shown for call in trajectory.calls() if pattern.search(str(call.arguments))}
        for tool in sorted(tools):
            yield f"`{tool}` was asked for `{name}`, where the answers are published"


def _user_errors(trajectory: Trajectory) -> Iterable[str]:
    """Yield that a simulated user only repeated itself, which is no fault of the agent."""
    said = [step.text for step in trajectory.steps if isinstance(step, Message) and step.role == "user"]
    if len(said) >= _REPEATS and len(set(said[-_REPEATS:])) == 1:
        yield "the simulated user repeated itself until the end, which is no fault of the agent"


# ---- skills that were opened ----------------------------------------------------------------------


def opened_skills(trajectory: Trajectory) -> tuple[str, ...]:
    """Return the names of the skills that were opened, each once, in order.

    Every call counts, not only the first: a target may open another skill before the right one. A call that failed
    opened nothing.
    """
    found: dict[str, None] = {}
    steps = trajectory.steps
    for i, step in enumerate(steps):
        if isinstance(step, ToolCall) and not _failed(trajectory, i):
            found.update(dict.fromkeys(_names(step)))
    return tuple(found)


def _names(call: ToolCall) -> Iterator[str]:
    if call.tool.lower() in _TOOLS:
        name = next((call.arguments[each] for each in _ARGUMENTS if each in call.arguments), None)
        if isinstance(name, str):
            yield name.strip().removeprefix("/")
    else:
        yield from _FILE.findall(json.dumps(call.arguments, ensure_ascii=False))


def _failed(trajectory: Trajectory, at: int) -> bool:
    """Return whether the first observation after a call, before the next one, is an error."""
    for step in trajectory.steps[at + 1 :]:
        if isinstance(step, ToolCall):
            return False
        if isinstance(step, Observation):
            return step.failed
    return False
