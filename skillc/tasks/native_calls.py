"""Turns of an agent whose tools go to the provider, and whose calls come back in its API: `tool_calls = native`.

The prompts are those of `dspy.ReActV2`, which the emitted module uses. The agent ends by a call of `submit` with its
answer. A model that calls no tool, or reaches the limit of turns, is asked once more, and has to call it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.adapters.types.tool import ToolCallResults
from dspy.experimental import Citations
from dspy.utils.exceptions import AdapterParseError
from pydantic import PrivateAttr

from skillc.json_values import JsonObject, as_text
from skillc.models.dspy_lm import UNREADABLE
from skillc.models.failures import find_failure, is_too_long
from skillc.tasks.episode import TOO_LONG, Episode, TooLong, named_call
from skillc.tasks.predict import values_of
from skillc.text import cut
from skillc.tools.tool import Tool
from skillc.trajectories.trajectory import Message, Observation, Outcome, ToolCall, Trajectory

SUBMIT = "submit"
"""The tool by which `dspy.ReActV2` ends."""
_ATTEMPTS = 3
_NOT_JSON = "error: the arguments are not a JSON object"
_NO_ANSWER = f"it did not call `{SUBMIT}` with its answer"
_AT_LIMIT: Outcome = "turns"
_SUBMIT_ONLY = {"type": "function", "function": {"name": SUBMIT}}
_MOST_SHOWN = 200


def native_adapter() -> dspy.ChatAdapter:
    """Return the adapter that sends tools to the provider; thoughts stay in the text, as with any model."""
    return dspy.ChatAdapter(
        use_native_function_calling=True, use_json_adapter_fallback=False, native_response_types=[Citations]
    )


class NativeTool(dspy.Tool):  # type: ignore[misc]  # dspy has no types
    """A tool as the model reads it; only its own required arguments are required."""

    _required: list[str] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, tool: Tool) -> NativeTool:
        """Return a tool that an episode calls."""

        def never(**arguments: Any) -> None:
            raise AssertionError("the episode calls the tools")

        made = cls(never, name=tool.name, desc=tool.about, args=dict(tool.arguments), arg_types={})
        made._required = list(tool.required)
        return made

    def format_as_litellm_function_call(self) -> dict[str, Any]:
        """Return the schema that is sent to the provider."""
        made: dict[str, Any] = super().format_as_litellm_function_call()
        made["function"]["parameters"]["required"] = self._required
        return made


class Submit(dspy.Tool):  # type: ignore[misc]  # dspy has no types
    """The tool `submit`, which returns an answer that is not valid as an error for the agent."""

    async def acall(self, **given: Any) -> Any:
        """Return the answer by output, or the error as a text."""
        try:
            return await super().acall(**given)
        except ValueError as problem:
            return f"error: {problem}"


def native_agent(signature: type[dspy.Signature], tools: Sequence[Tool], most: int) -> dspy.ReActV2:
    """Return the agent of a signature."""
    agent = dspy.ReActV2(signature, tools=[NativeTool.of(tool) for tool in tools], max_iters=most)
    made = agent.tools[SUBMIT]
    agent.tools[SUBMIT] = Submit(made.func, name=SUBMIT, desc=made.desc, args=made.args, arg_types=made.arg_types)
    return agent


@dataclass(frozen=True, slots=True)
class _Turn:
    """A reply: its thought as DSPy read it, and its calls."""

    thought: Any
    calls: Sequence[Any] = ()


class NativeEpisode(Episode):
    """One rollout. The calls of one reply are made in their order, so that the same replies give the same results."""

    _inputs: Mapping[str, Any]
    _events: list[dict[str, Any]]

    async def play(self, example: Mapping[str, Any], most: int) -> Trajectory:
        """As `Episode.play`."""
        self._inputs, self._events = self._module.inputs_of(example), []
        turns, outcome = 0, _AT_LIMIT
        try:
            while turns < most:
                turns += 1
                turn = await self._ask()
                answer = await self._act(turn)
                if answer is not None:
                    return self._answered("finished", turns, answer)
                if not turn.calls:
                    outcome = "finished"
                    break
            turn = await self._ask(tool_choice=_SUBMIT_ONLY)
            submitted = [call for call in turn.calls if call.name == SUBMIT][:1]
            answer = await self._act(_Turn(turn.thought, submitted))
        except TooLong:
            return self._ended("failed", turns, problem=TOO_LONG)
        if answer is not None:
            return self._answered(outcome, turns, answer)
        last = self._steps[-1] if submitted else None
        why = f"its answer is not valid: {cut(last.text, _MOST_SHOWN)}" if isinstance(last, Observation) else _NO_ANSWER
        return self._ended("failed", turns, problem=why)

    def _answered(self, outcome: Outcome, turns: int, answer: Mapping[str, Any]) -> Trajectory:
        values, wrong = values_of(self._module.outputs_of(dspy.Prediction(**answer)), self._plan)
        return self._ended(outcome, turns, values, wrong)

    async def _act(self, turn: _Turn) -> Mapping[str, Any] | None:
        """Make the calls of a reply in their order and record them; return the answer if it submits one."""
        if thought := str(turn.thought or "").strip():
            self._steps.append(Message(thought))
        answer, seen = None, list[Observation]()
        for call in turn.calls:
            if set(call.args) == {UNREADABLE}:
                seen.append(self._recorded(call.name, call.args, _NOT_JSON))
            elif call.name == SUBMIT:
                submitted = await self._agent.tools[SUBMIT].acall(**call.args)
                answer = submitted if isinstance(submitted, Mapping) else answer
                seen.append(self._submitted(call.args, submitted))
            elif call.name not in self._tools:
                # As `dspy.ReActV2`; the provider has the list.
                seen.append(self._recorded(call.name, call.args, f"Unknown tool: {call.name}"))
            else:
                seen.append(await self._call(call.name, call.args))
        if turn.calls:
            results = ToolCallResults.from_tool_calls_and_values(
                list(turn.calls), [each.text for each in seen], [each.failed for each in seen]
            )
            calls = dspy.ToolCalls(tool_calls=list(turn.calls), tool_call_results=results)
            self._events.append({"next_thought": turn.thought, "tool_calls": calls})
            if turn.thought is None:
                del self._events[-1]["next_thought"]
        return answer

    def _submitted(self, arguments: JsonObject, result: object) -> Observation:
        """Record only an answer that is not valid; a valid one is that of the trajectory."""
        if isinstance(result, Mapping):
            return Observation(as_text(dict(result)))
        return self._recorded(SUBMIT, arguments, str(result))

    def _recorded(self, name: str, arguments: JsonObject, text: str) -> Observation:
        """Record a call that reached no tool."""
        tool, seen = self._tools.get(name), Observation(text, failed=True)
        self._steps += [ToolCall("", arguments, name) if tool is None else named_call(tool, arguments), seen]
        return seen

    async def _ask(self, **config: Any) -> _Turn:
        """Ask for the next calls; leave out the first turns of a trajectory that is too long for the model."""
        events = list(self._events)
        for _ in range(_ATTEMPTS):
            try:
                predicted = await self._agent.react.acall(**self._given(events), config=config)
            except Exception as raised:
                failure = find_failure(raised)
                if failure is None and isinstance(raised, AdapterParseError):
                    # Without a call, the text needs no form.
                    return _Turn(raised.lm_response)
                if failure is None or not is_too_long(failure) or not events:
                    raise
                if len(events) == 1:
                    raise TooLong from raised
                del events[0]
                continue
            calls = predicted.tool_calls.tool_calls if predicted.tool_calls is not None else ()
            return _Turn(predicted.next_thought, calls)
        raise TooLong

    def _given(self, events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the inputs of the agent: those of the example are in the first turn."""
        tools = list(self._agent.tools.values())
        if not events:
            return {"history": dspy.History(messages=[]), "tools": tools, **self._inputs}
        first, *later = events
        return {"history": dspy.History(messages=[{**self._inputs, **first}, *later]), "tools": tools}
