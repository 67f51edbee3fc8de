"""Which skills the target of a rollout has opened, in the forms in which agents open them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from skillc.trajectories.trajectory import Observation, ToolCall, Trajectory

# Tools that open a skill, by their names in lower case: skillc's, Claude Code's and opencode's, and that of Hermes.
_TOOLS = frozenset({"open_skill", "skill", "skill_view"})
_ARGUMENTS = ("name", "skill", "command")
# Other agents read the file.
_FILE = re.compile(r"([\w.-]+)[/\\]+SKILL\.md\b")


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
