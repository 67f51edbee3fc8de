"""Turns of an agent whose calls of tools are fields of its text, in the prompts of `dspy.ReAct`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic_core import to_jsonable_python

from skillc.json_values import JsonObject
from skillc.models.dspy_lm import current_scope
from skillc.models.failures import find_failure, is_too_long
from skillc.tasks.episode import TOO_LONG, Episode, TooLong
from skillc.tasks.kind import last_reply
from skillc.tasks.predict import unreadable, values_of
from skillc.tools.tool import Tool
from skillc.trajectories.trajectory import Message, Observation, Outcome, Trajectory

FINISH = "finish"
"""The tool by which `dspy.ReAct` ends; no call of it is a step."""
_KEYS_A_TURN = 4
_ATTEMPTS = 3


def dspy_tool(tool: Tool) -> dspy.Tool:
    """Return a tool as `dspy.ReAct` describes it to the model."""

    def never(**arguments: Any) -> None:
        raise AssertionError("the episode calls the tools")

    return dspy.Tool(never, name=tool.name, desc=tool.about, args=dict(tool.arguments), arg_types={})


def text_agent(signature: type[dspy.Signature], tools: Sequence[Tool], most: int) -> dspy.ReAct:
    """Return the agent of a signature."""
    return dspy.ReAct(signature, tools=[dspy_tool(tool) for tool in tools], max_iters=most)


class TextEpisode(Episode):
    """One rollout: in each turn the model writes a thought, the name of a tool and its arguments.

    At the end, or at the limit of turns, one more call reads the answer from the trajectory.
    """

    _seen: dict[str, Any]

    async def play(self, example: Mapping[str, Any], most: int) -> Trajectory:
        """As `Episode.play`."""
        inputs = self._module.inputs_of(example)
        self._seen = {}
        turns, finished = 0, False
        try:
            while turns < most and not finished:
                turns += 1
                finished = await self._act(turns - 1, await self._choose(inputs))
            answer = await self._ask(self._agent.extract, inputs)
        except AdapterParseError as raised:
            if find_failure(raised) is not None:
                raise
            return self._ended("failed", turns, problem=unreadable(raised))
        except TooLong:
            return self._ended("failed", turns, problem=TOO_LONG)
        values, wrong = values_of(self._module.outputs_of(answer), self._plan)
        return self._ended("finished" if finished else "turns", turns, values, wrong)

    def _ended(
        self, outcome: Outcome, turns: int, answer: JsonObject | None = None, problem: str | None = None
    ) -> Trajectory:
        self._steps.append(Message(last_reply(current_scope().completions)))
        return super()._ended(outcome, turns, answer, problem)

    async def _act(self, turn: int, chosen: dspy.Prediction) -> bool:
        """Call the chosen tool and record it; return True if the agent has finished."""
        name, arguments = chosen.next_tool_name, to_jsonable_python(chosen.next_tool_args, inf_nan_mode="strings")
        self._steps.append(Message(chosen.next_thought or ""))
        if name == FINISH:
            seen = Observation("Completed.")
        else:
            seen = await self._call(name, arguments)
        self._seen[f"thought_{turn}"] = chosen.next_thought
        self._seen[f"tool_name_{turn}"] = name
        self._seen[f"tool_args_{turn}"] = chosen.next_tool_args
        self._seen[f"observation_{turn}"] = seen.text
        return bool(name == FINISH)

    async def _choose(self, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Ask for the next call; that of a renamed tool by its name in the program is read, so that it can fail."""
        try:
            return await self._ask(self._agent.react, inputs)
        except AdapterParseError as raised:
            if find_failure(raised) is not None:
                raise
            named = raised.signature.with_updated_fields("next_tool_name", type_=str)
            try:
                read = dspy.ChatAdapter().parse(named, raised.lm_response)
            except AdapterParseError:
                raise raised from None
            if read["next_tool_name"] not in {tool.original for tool in self._tools.values() if tool.original}:
                raise
            return dspy.Prediction(**read)

    async def _ask(self, predictor: Any, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Call the model; like `dspy.ReAct`, leave out the first turns of a trajectory that is too long for it."""
        seen = dict(self._seen)
        for _ in range(_ATTEMPTS):
            try:
                return await predictor.acall(**inputs, trajectory=self._agent._format_trajectory(seen))
            except Exception as raised:
                failure = find_failure(raised)
                if failure is None or not is_too_long(failure) or not seen:
                    raise
                if len(seen) <= _KEYS_A_TURN:
                    raise TooLong from raised
                for key in list(seen)[:_KEYS_A_TURN]:
                    del seen[key]
        raise TooLong
