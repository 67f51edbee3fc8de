"""What the rollouts of an agent with tools have in common, however the agent calls them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillc.json_values import JsonObject
from skillc.plan.schema import Plan
from skillc.program.module import SkillModule
from skillc.tools.tool import Tool
from skillc.trajectories.trajectory import Observation, Outcome, Step, ToolCall, Trajectory

if TYPE_CHECKING:
    from skillc.tasks.react import AgentTools

TOO_LONG = "the trajectory no longer fits the model, although its first steps were left out"


class Episode(ABC):
    """One rollout of an agent with tools: the steps so far.

    Args:
        module: the agent of a skill.
        tools: as the agent reads them.
        declared: calls them.
        plan: the program.
    """

    def __init__(self, module: SkillModule, tools: Sequence[Tool], declared: AgentTools, plan: Plan) -> None:
        self._module = module
        self._agent = module.answer
        self._tools = {tool.name: tool for tool in tools}
        self._declared = declared
        self._plan = plan
        self._steps: list[Step] = []

    @abstractmethod
    async def play(self, example: Mapping[str, Any], most: int) -> Trajectory:
        """Run the agent on the inputs of an example for at most so many turns.

        Raises:
            RolloutFailed: a tool server is down.
        """

    async def _call(self, name: str, arguments: JsonObject) -> Observation:
        """Call a tool by the name that the agent used, and record it; one that does not exist is a failed call."""
        call, seen = await self._declared.call(self._tools, name, arguments)
        self._steps += [call, seen]
        return seen

    def _ended(
        self, outcome: Outcome, turns: int, answer: JsonObject | None = None, problem: str | None = None
    ) -> Trajectory:
        return Trajectory(tuple(self._steps), answer, problem, outcome=outcome, turns=turns)


def named_call(tool: Tool, arguments: JsonObject) -> ToolCall:
    """Return the call of a tool under its name in the program."""
    return ToolCall(tool.program_name, arguments, tool.name if tool.original else "")


class TooLong(Exception):  # noqa: N818
    """No part of the trajectory fits the model."""
