"""The turns of recorded rollouts as the target played them: each prompt, made again by its module, and the reply.

Agents with `tool_calls = native` have calls and results as messages, as the provider's API and chat templates have
them; with `tool_calls = text` they are fields of the texts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import dspy
from dspy.adapters.types.tool import ToolCallResults

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.module import SkillModule
from skillc.program.names import PREDICTORS, as_read, instructions
from skillc.review.run_view import RunView
from skillc.review.stored import NO_SKILL
from skillc.tasks.episodes import FINISH, SUBMIT, Episode, NativeEpisode, TextEpisode, native_adapter, setting_of
from skillc.tasks.kind import Skill
from skillc.tools.tool import with_texts
from skillc.tools.toolbox import Toolbox
from skillc.trajectories.trajectory import Message, Observation, Step, ToolCall, Trajectory

Messages: TypeAlias = list[dict[str, Any]]

KINDS = (*PREDICTORS, "react")
"""Kinds of rollouts whose prompts can be made again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One call of the target.

    Attributes:
        reply: a message of the assistant.
        tools: JSON schemas as the provider's API gets them; empty without `tool_calls = native`.
        failed: whether a call in the reply failed.
    """

    prompt: Messages
    reply: dict[str, Any]
    tools: Sequence[JsonObject] = ()
    failed: bool = False


class Turns:
    """Makes the turns of a run's rollouts again, without a call of a model; `close` it at the end.

    Raises:
        SkillcError: the prompts of the kind of rollout cannot be made again, or a tool cannot be opened.
    """

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._task = as_read(view.plan.task)
        rollout = view.plan.task.rollout
        if rollout.kind not in KINDS:
            raise SkillcError(
                f"prompts of `{rollout.kind}` rollouts cannot be made again",
                hint="rollouts of one turn and of `react` can be exported; of other agents, use `--from-sessions`",
            )
        self._play: type[Episode] | None = None
        self._toolbox: Toolbox | None = None
        if rollout.kind == "react":
            self._play = NativeEpisode if rollout.native_calls else TextEpisode
            declared = rollout.settings.get("tools", [])
            self._toolbox = Toolbox(declared if isinstance(declared, list) else [], view.program.parent)
        self._modules = dict[str | None, SkillModule]()

    def close(self) -> None:
        """End the servers of tools."""
        if self._toolbox is not None:
            asyncio.run(self._toolbox.close())

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def of(self, skill: str | None, example: Example, trajectory: Trajectory) -> tuple[Turn, ...]:
        """Return the readable turns of a rollout; none if its steps do not show where one turn ends.

        Args:
            skill: the digest of the skill in the prompts; None for none.
            example: of the rollout.
            trajectory: of the rollout, whatever its skill was.
        """
        module = self._module(skill)
        inputs = module.inputs_of(example.inputs)
        if self._play is None:
            return (Turn(_asked(lambda: module.answer(**inputs)), assistant(trajectory.reply)),)
        if self._play is TextEpisode:
            return tuple(_text_turns(module.answer, inputs, trajectory))
        return tuple(_native_turns(module.answer, inputs, trajectory))

    def _module(self, skill: str | None) -> SkillModule:
        if skill not in self._modules:
            self._modules[skill] = self._made(skill)
        return self._modules[skill]

    def _made(self, skill: str | None) -> SkillModule:
        plan: Plan = self._view.plan
        document = self._view.skills[skill] if skill not in (None, NO_SKILL) else None
        text = instructions(self._task, Skill.of(document).text if document is not None else None)
        predictor: Callable[[type[dspy.Signature]], Any] | None = None
        if self._play is not None and self._toolbox is not None:
            play, settings = self._play, plan.task.rollout.settings
            own = with_texts(tuple(self._toolbox.tools.values()), document, renames=plan.skill.renames_tools)
            most = int(setting_of(settings, "turns"))

            def agent(signature: type[dspy.Signature]) -> Any:
                return play.agent(signature, own, most)

            predictor = agent
        return SkillModule(self._task, plan.skill.name, text, root=self._view.program.parent, predictor=predictor)


def assistant(text: str) -> dict[str, Any]:
    """Return a message of the assistant."""
    return {"role": "assistant", "content": text}


def call_message(number: int, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool call as chat templates read it: its arguments are an object, not JSON in a text."""
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": dict(arguments)},
    }


# ---- prompts ---------------------------------------------------------------------------------------


class _Recorded(Exception):  # noqa: N818 -- ends the call, no error
    pass


class _Recorder(dspy.ChatAdapter):  # type: ignore[misc]  # dspy has no types
    """Keeps the messages of a call and ends it before anything is sent."""

    messages: Messages

    def format(self, *args: Any, **kwargs: Any) -> Any:
        self.messages = super().format(*args, **kwargs)
        raise _Recorded


class _NoModel(dspy.LM):  # type: ignore[misc]  # dspy has no types
    """Stands for a model that takes tools; it is never called."""

    supports_function_calling = True


def _asked(call: Callable[[], object], recorder: Any = None) -> Messages:
    """Return the messages that a call of a module sends."""
    recorder = recorder or _Recorder(use_json_adapter_fallback=False)
    try:
        with dspy.context(lm=_NoModel("none/none"), adapter=recorder, warn_on_type_mismatch=False):
            call()
    except _Recorded:
        pass
    return [_plain(each) for each in recorder.messages]


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with arguments of calls as objects."""
    found: dict[str, Any] = {"role": str(message["role"]), "content": str(message.get("content") or "")}
    if message.get("tool_calls"):
        found["tool_calls"] = [
            {**each, "function": {**each["function"], "arguments": json.loads(each["function"]["arguments"])}}
            for each in message["tool_calls"]
        ]
    return {**found, **{name: message[name] for name in ("tool_call_id", "name") if name in message}}


# ---- turns of an agent -----------------------------------------------------------------------------


def _text_turns(agent: Any, inputs: Mapping[str, Any], trajectory: Trajectory) -> Iterable[Turn]:
    """Yield the turns of `dspy.ReAct`: thought, tool and arguments as fields, and the answer in the last call."""
    adapter = dspy.ChatAdapter()
    *steps, last = trajectory.steps or (Message(""),)
    past: dict[str, Any] = {}

    def prompt(predictor: Any) -> Messages:
        return _asked(lambda: predictor(**inputs, trajectory=agent._format_trajectory(past)))

    for turn, (thought, calls) in enumerate(_groups(steps)):
        call, seen = calls[0] if calls else (ToolCall(FINISH), Observation("Completed."))
        name = call.name or call.tool
        fields = {"next_thought": thought, "next_tool_name": name, "next_tool_args": dict(call.arguments)}
        reply = assistant(adapter.format_assistant_message_content(agent.react.signature, fields))
        yield Turn(prompt(agent.react), reply, failed=seen.failed)
        past |= {
            f"thought_{turn}": thought,
            f"tool_name_{turn}": name,
            f"tool_args_{turn}": dict(call.arguments),
            f"observation_{turn}": seen.text,
        }
    if trajectory.answer is not None and isinstance(last, Message):
        yield Turn(prompt(agent.extract), assistant(last.text))


def _native_turns(agent: Any, inputs: Mapping[str, Any], trajectory: Trajectory) -> Iterable[Turn]:
    """Yield the turns of `dspy.ReActV2`: calls and results as messages; the last calls `submit` with the answer."""
    groups = _native_groups(trajectory)
    if groups is None:
        return
    tools = list(agent.tools.values())
    schemas = [each.format_as_litellm_function_call() for each in tools]
    adapter = native_adapter()
    signature = agent.react.signature
    thinking = signature.delete("tool_calls") if "tool_calls" in signature.output_fields else signature
    past: list[dict[str, Any]] = []
    number = 0
    for thought, calls in groups:
        # The inputs of the example are in the first turn.
        given = (
            {"history": dspy.History(messages=[{**inputs, **past[0]}, *past[1:]])}
            if past
            else {"history": dspy.History(messages=[]), **inputs}
        )
        prompt = _asked(lambda given=given: agent.react(**given, tools=tools), native_adapter(_Recorder))  # type: ignore[misc]
        text = adapter.format_assistant_message_content(thinking, {"next_thought": thought}) if thought else ""
        named = [(f"call_{number + i}", call.name or call.tool, call, seen) for i, (call, seen) in enumerate(calls)]
        reply = assistant(text)
        if calls:
            reply["tool_calls"] = [
                call_message(number + i, name, c.arguments) for i, (_, name, c, _) in enumerate(named)
            ]
        yield Turn(prompt, reply, schemas, failed=any(seen.failed for *_, seen in named))
        number += len(calls)
        made = [dspy.ToolCalls.ToolCall(id=key, name=name, args=dict(call.arguments)) for key, name, call, _ in named]
        results = ToolCallResults.from_tool_calls_and_values(
            made, [seen.text for *_, seen in named], [seen.failed for *_, seen in named]
        )
        past.append(
            {
                **({"next_thought": thought} if thought else {}),
                "tool_calls": dspy.ToolCalls(tool_calls=made, tool_call_results=results),
            }
        )


_Group: TypeAlias = tuple[str, list[tuple[ToolCall, Observation]]]


def _groups(steps: Iterable[Step]) -> list[_Group]:
    """Return each message with the calls after it."""
    found: list[_Group] = []
    call: ToolCall | None = None
    for step in steps:
        if isinstance(step, Message):
            found.append((step.text, []))
        elif isinstance(step, ToolCall):
            call = step
        elif isinstance(step, Observation) and call is not None:
            if not found:
                found.append(("", []))
            found[-1][1].append((call, step))
            call = None
    return found


def _native_groups(trajectory: Trajectory) -> list[_Group] | None:
    """Return thought and calls of each reply; None where it is not certain which calls were in one reply.

    It is certain if each reply has a thought, or if each has one call.
    """
    groups = _groups(trajectory.steps)
    replies = trajectory.turns
    if trajectory.answer is not None:
        submitted = (ToolCall(SUBMIT, trajectory.answer), Observation(json.dumps(trajectory.answer)))
        if groups and not groups[-1][1]:
            groups[-1][1].append(submitted)
        else:
            groups.append(("", [submitted]))
        # At the limit of turns the agent is asked once more.
        replies += trajectory.outcome == "turns"
    if len(groups) == replies:
        return groups
    single = [(thought if i == 0 else "", [call]) for thought, calls in groups for i, call in enumerate(calls)]
    return single if len(single) == replies and all(calls for _, calls in groups) else None
