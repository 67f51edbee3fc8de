"""Rollouts of an agent with tools, turn by turn: the calls are fields of its text, or come back in the provider's API.

The prompts are those of `dspy.ReAct` and `dspy.ReActV2`, which the emitted module uses. The loops are skillc's own,
because they must distinguish a failed tool from a tool server that is down, and record the steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import dspy
from dspy.adapters.types.tool import ToolCallResults
from dspy.experimental import Citations
from dspy.utils.exceptions import AdapterParseError
from pydantic import PrivateAttr
from pydantic_core import to_jsonable_python

from skillc.dataclass import dataclass
from skillc.json_values import JsonObject, as_text
from skillc.language.rollouts import REACT_DEFAULTS
from skillc.models.calls import well_formed
from skillc.models.dspy_lm import UNREADABLE
from skillc.models.failures import find_failure, is_too_long
from skillc.models.scope import current_scope
from skillc.plan.schema import Plan
from skillc.program.module import SkillModule
from skillc.redaction import Redactor
from skillc.tasks.kind import RolloutFailed, Site, Skill, last_reply
from skillc.tasks.predict import unreadable, values_of
from skillc.text import cut, listed
from skillc.tools.tool import Tool, ToolLimits, ToolServerDown, call_tool, with_texts
from skillc.tools.toolbox import Toolbox, tools_source
from skillc.trajectories.trajectory import Message, Observation, Outcome, Step, ToolCall, Trajectory

FINISH = "finish"
"""The tool by which `dspy.ReAct` ends; no call of it is a step."""
SUBMIT = "submit"
"""The tool by which `dspy.ReActV2` ends."""

_ATTEMPTS = 3
_TOO_LONG = "the trajectory no longer fits the model, although its first steps were left out"
_NOT_JSON = "error: the arguments are not a JSON object"
_NO_ANSWER = f"it did not call `{SUBMIT}` with its answer"
_SUBMIT_ONLY = {"type": "function", "function": {"name": SUBMIT}}
_MOST_SHOWN = 200

T = TypeVar("T")


class AgentTools:
    """The tools that the settings of `react { ... }` declare, opened for a run; `inside` an environment they may act.

    Attributes:
        tools: as they describe themselves, in declared order.

    Raises:
        SkillcError: as `Toolbox`.
    """

    def __init__(self, settings: Mapping[str, Any], site: Site, *, inside: bool = False) -> None:
        self._limits = ToolLimits(float(setting_of(settings, "timeout")), int(setting_of(settings, "result")))
        # An agent in an environment has it among its tools.
        self._more = () if inside else (FINISH,)
        self._renames = site.plan.skill.renames_tools
        self._toolbox = Toolbox(_declared(settings), site.root, inside=inside)
        self.tools = tuple(self._toolbox.tools.values())
        self._hide = reduce(Redactor.having, self._toolbox.secrets, site.client.hide)

    @staticmethod
    def source(settings: Mapping[str, Any], root: Path) -> str:
        """Return the digests of the functions among the tools."""
        return tools_source(_declared(settings), root)

    def described_by(self, skill: Skill | None) -> tuple[Tool, ...]:
        """Return the tools with the names and texts that a skill has for them."""
        return with_texts(self.tools, skill.document if skill is not None else None, renames=self._renames)

    async def call(self, tools: Mapping[str, Tool], name: str, arguments: JsonObject) -> tuple[ToolCall, Observation]:
        """Call one of the tools of a rollout by the name that the agent used; one that does not exist fails.

        Raises:
            RolloutFailed: its server is down.
        """
        tool = tools.get(name)
        if tool is None:
            known = listed([*tools, *self._more], "and")
            seen = Observation(f"error: there is no tool `{name}`, but {known}", failed=True)
            return ToolCall("", arguments, name), seen
        try:
            seen = await call_tool(tool, arguments, self._limits, self._hide)
        except ToolServerDown as problem:
            raise RolloutFailed("tool", self._hide.message(str(problem))) from problem
        return _named_call(tool, arguments), Observation(well_formed(seen.text), seen.failed)

    async def close(self) -> None:
        """End the servers."""
        await self._toolbox.close()


def setting_of(settings: Mapping[str, Any], name: str) -> Any:
    """Return a setting of `react { ... }`, by default its default."""
    return settings.get(name, REACT_DEFAULTS[name])


def _declared(settings: Mapping[str, Any]) -> list[Any]:
    declared = settings.get("tools", [])
    return declared if isinstance(declared, list) else []


def _named_call(tool: Tool, arguments: JsonObject) -> ToolCall:
    """Return the call of a tool under its name in the program."""
    return ToolCall(tool.program_name, arguments, tool.name if tool.original else "")


def dspy_tool(tool: Tool, form: type[dspy.Tool] = dspy.Tool) -> dspy.Tool:
    """Return a tool as DSPy describes it to the model."""

    def never(**arguments: Any) -> None:
        raise AssertionError("the episode calls the tools")

    return form(never, name=tool.name, desc=tool.about, args=dict(tool.arguments), arg_types={})


class Episode(ABC):
    """One rollout of an agent with tools. `tools` are as the agent reads them, and `declared` calls them."""

    def __init__(self, module: SkillModule, tools: Sequence[Tool], declared: AgentTools, plan: Plan) -> None:
        self._module = module
        self._agent = module.answer
        self._tools = {tool.name: tool for tool in tools}
        self._declared = declared
        self._plan = plan
        self._steps: list[Step] = []
        # What the agent reads of its earlier turns.
        self._past: list[dict[str, Any]] = []

    @staticmethod
    @abstractmethod
    def agent(signature: type[dspy.Signature], tools: Sequence[Tool], most: int) -> Any:
        """Return DSPy's agent of a signature, which plays at most so many turns."""

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

    async def _fitting(self, ask: Callable[[Sequence[Mapping[str, Any]]], Awaitable[T]]) -> T:
        """Ask with the earlier turns; like DSPy, leave out the first ones if they are too long for the model.

        Raises:
            TooLong: not even the last turn fits.
        """
        past = list(self._past)
        for _ in range(_ATTEMPTS):
            try:
                return await ask(past)
            except Exception as raised:
                failure = find_failure(raised)
                if failure is None or not is_too_long(failure) or not past:
                    raise
                if len(past) == 1:
                    raise TooLong from raised
                del past[0]
        raise TooLong

    def _answered(self, outcome: Outcome, turns: int, prediction: dspy.Prediction) -> Trajectory:
        values, wrong = values_of(self._module.outputs_of(prediction), self._plan)
        return self._ended(outcome, turns, values, wrong)

    def _ended(
        self, outcome: Outcome, turns: int, answer: JsonObject | None = None, problem: str | None = None
    ) -> Trajectory:
        return Trajectory(tuple(self._steps), answer, problem, outcome=outcome, turns=turns)


class TooLong(Exception):  # noqa: N818
    """No part of the trajectory fits the model."""


class TextEpisode(Episode):
    """One rollout with `tool_calls = text`, which every model can play: `dspy.ReAct`.

    In each turn the model writes a thought, the name of a tool and its arguments. At the end, or at the limit of turns,
    one more call reads the answer from the trajectory.
    """

    @staticmethod
    def agent(signature: type[dspy.Signature], tools: Sequence[Tool], most: int) -> dspy.ReAct:
        """As `Episode.agent`."""
        return dspy.ReAct(signature, tools=[dspy_tool(tool) for tool in tools], max_iters=most)

    async def play(self, example: Mapping[str, Any], most: int) -> Trajectory:
        """As `Episode.play`."""
        inputs = self._module.inputs_of(example)
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
            return self._ended("failed", turns, problem=_TOO_LONG)
        return self._answered("finished" if finished else "turns", turns, answer)

    def _ended(
        self, outcome: Outcome, turns: int, answer: JsonObject | None = None, problem: str | None = None
    ) -> Trajectory:
        self._steps.append(Message(last_reply(current_scope().completions)))
        return super()._ended(outcome, turns, answer, problem)

    async def _act(self, turn: int, chosen: dspy.Prediction) -> bool:
        """Call the chosen tool and record it; return True if the agent has finished."""
        name, arguments = chosen.next_tool_name, to_jsonable_python(chosen.next_tool_args, inf_nan_mode="strings")
        finished = bool(name == FINISH)
        self._steps.append(Message(chosen.next_thought or ""))
        seen = Observation("Completed.") if finished else await self._call(name, arguments)
        self._past.append(
            {
                f"thought_{turn}": chosen.next_thought,
                f"tool_name_{turn}": name,
                f"tool_args_{turn}": chosen.next_tool_args,
                f"observation_{turn}": seen.text,
            }
        )
        return finished

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
        async def ask(past: Sequence[Mapping[str, Any]]) -> dspy.Prediction:
            fields = {name: value for turn in past for name, value in turn.items()}
            return await predictor.acall(**inputs, trajectory=self._agent._format_trajectory(fields))

        return await self._fitting(ask)


def native_adapter(form: type[dspy.ChatAdapter] = dspy.ChatAdapter) -> dspy.ChatAdapter:
    """Return the adapter that sends tools to the provider; thoughts stay in the text, as with any model."""
    return form(use_native_function_calling=True, use_json_adapter_fallback=False, native_response_types=[Citations])


class NativeTool(dspy.Tool):  # type: ignore[misc]  # dspy has no types
    """A tool as the model reads it; only its own required arguments are required."""

    _required: list[str] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, tool: Tool) -> NativeTool:
        """Return a tool that an episode calls."""
        made: NativeTool = dspy_tool(tool, cls)
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


@dataclass(frozen=True, slots=True)
class _Turn:
    """A reply: its thought as DSPy read it, and its calls."""

    thought: Any
    calls: Sequence[Any] = ()


class NativeEpisode(Episode):
    """One rollout with `tool_calls = native`: tools go to the provider, as `dspy.ReActV2` sends them.

    The calls of one reply are made in their order, so that the same replies give the same results. The agent ends by a
    call of `submit` with its answer. A model that calls no tool, or reaches the limit of turns, is asked once more, and
    has to call it.
    """

    _inputs: Mapping[str, Any]

    @staticmethod
    def agent(signature: type[dspy.Signature], tools: Sequence[Tool], most: int) -> dspy.ReActV2:
        """As `Episode.agent`."""
        agent = dspy.ReActV2(signature, tools=[NativeTool.of(tool) for tool in tools], max_iters=most)
        made = agent.tools[SUBMIT]
        agent.tools[SUBMIT] = Submit(made.func, name=SUBMIT, desc=made.desc, args=made.args, arg_types=made.arg_types)
        return agent

    async def play(self, example: Mapping[str, Any], most: int) -> Trajectory:
        """As `Episode.play`."""
        self._inputs = self._module.inputs_of(example)
        turns = 0
        outcome: Outcome = "turns"
        try:
            while turns < most:
                turns += 1
                turn = await self._ask()
                answer = await self._act(turn)
                if answer is not None:
                    return self._answered("finished", turns, dspy.Prediction(**answer))
                if not turn.calls:
                    outcome = "finished"
                    break
            turn = await self._ask(tool_choice=_SUBMIT_ONLY)
            submitted = [call for call in turn.calls if call.name == SUBMIT][:1]
            answer = await self._act(_Turn(turn.thought, submitted))
        except TooLong:
            return self._ended("failed", turns, problem=_TOO_LONG)
        if answer is not None:
            return self._answered(outcome, turns, dspy.Prediction(**answer))
        last = self._steps[-1] if submitted else None
        why = f"its answer is not valid: {cut(last.text, _MOST_SHOWN)}" if isinstance(last, Observation) else _NO_ANSWER
        return self._ended("failed", turns, problem=why)

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
                if isinstance(submitted, Mapping):
                    # No step: a valid answer is that of the trajectory.
                    answer = submitted
                    seen.append(Observation(as_text(dict(submitted))))
                else:
                    seen.append(self._recorded(SUBMIT, call.args, str(submitted)))
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
            thought_of = {"next_thought": turn.thought} if turn.thought is not None else {}
            self._past.append({**thought_of, "tool_calls": calls})
        return answer

    def _recorded(self, name: str, arguments: JsonObject, text: str) -> Observation:
        """Record a call that reached no tool."""
        tool, seen = self._tools.get(name), Observation(text, failed=True)
        self._steps += [ToolCall("", arguments, name) if tool is None else _named_call(tool, arguments), seen]
        return seen

    async def _ask(self, **config: Any) -> _Turn:
        async def ask(past: Sequence[Mapping[str, Any]]) -> _Turn:
            try:
                predicted = await self._agent.react.acall(**self._given(past), config=config)
            except AdapterParseError as raised:
                if find_failure(raised) is not None:
                    raise
                # Without a call, the text needs no form.
                return _Turn(raised.lm_response)
            calls = predicted.tool_calls.tool_calls if predicted.tool_calls is not None else ()
            return _Turn(predicted.next_thought, calls)

        return await self._fitting(ask)

    def _given(self, past: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the inputs of the agent: those of the example are in the first turn."""
        tools = list(self._agent.tools.values())
        if not past:
            return {"history": dspy.History(messages=[]), "tools": tools, **self._inputs}
        first, *later = past
        return {"history": dspy.History(messages=[{**self._inputs, **first}, *later]), "tools": tools}
