"""Rollouts of an agent that calls tools: `rollout = react { tools = [...] }`.

The prompts are those of `dspy.ReAct`, which the emitted module uses: in each turn the model writes a thought, the name
of a tool and its arguments, as fields of a text; at the end, or at the limit of turns, one more call reads the answer
from the trajectory. So every model can play it, and every call is cached and charged like any other. The loop is here,
because it must tell a tool that failed from a tool server that is down, and record the steps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic_core import to_jsonable_python

from skillc.document.offer import OPEN, shown_descriptions
from skillc.document.skill import Document
from skillc.json_values import JsonObject
from skillc.language.kinds import REACT_DEFAULTS
from skillc.models.calls import well_formed
from skillc.models.dspy_lm import current_scope, make_lm
from skillc.models.failures import find_failure, is_too_long
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.module import SkillModule
from skillc.program.names import as_read, instructions
from skillc.redaction import Redactor
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, last_reply, rollout_kind
from skillc.tasks.opening import Openings
from skillc.tasks.predict import unreadable, values_of
from skillc.text import listed
from skillc.tools.tool import Tool, ToolFailed, ToolLimits, ToolServerDown, call_tool, with_texts
from skillc.tools.toolbox import Toolbox, tools_source
from skillc.trajectories.trajectory import Message, Observation, Outcome, Step, ToolCall, Trajectory

FINISH = "finish"
"""The tool by which `dspy.ReAct` ends; no call of it is a step."""
_MODULES_KEPT = 64
_KEYS_A_TURN = 4
_ATTEMPTS = 3


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
        self._toolbox = Toolbox(_declared(settings), site.root, inside=inside)
        self.tools = tuple(self._toolbox.tools.values())
        self._hide = reduce(Redactor.having, self._toolbox.secrets, site.client.hide)

    @staticmethod
    def source(settings: Mapping[str, Any], root: Path) -> str:
        """Return the digests of the functions among the tools."""
        return tools_source(_declared(settings), root)

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
        return named_call(tool, arguments), Observation(well_formed(seen.text), seen.failed)

    async def close(self) -> None:
        """End the servers."""
        await self._toolbox.close()


def named_call(tool: Tool, arguments: JsonObject) -> ToolCall:
    """Return the call of a tool under its name in the program."""
    return ToolCall(tool.program_name, arguments, tool.name if tool.original else "")


@rollout_kind("react")
class ReactRollout(RolloutKind):
    """An agent with tools. Rollouts share the tools' servers, and those of one skill text a module.

    Skills that it opens by itself are behind a further tool, `open_skill`, whose description lists them.
    """

    opens = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._turns = int(setting_of(site.settings, "turns"))
        self._declared = AgentTools(site.settings, site)
        self.tools = self._declared.tools
        self._context = {
            "lm": make_lm(site.client, site.role),
            "adapter": dspy.ChatAdapter(use_json_adapter_fallback=False),
            "disable_history": True,
            "warn_on_type_mismatch": False,
            "track_usage": False,
        }
        self._modules: OrderedDict[tuple[str | None, ...], tuple[SkillModule, tuple[Tool, ...]]] = OrderedDict()

    @classmethod
    def source(cls, plan: Plan, root: Path) -> str:
        """As `RolloutKind.source`: the digests of the functions among the tools."""
        return AgentTools.source(plan.task.rollout.settings, root)

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`; an unreadable reply is the problem of the trajectory.

        Raises:
            RolloutFailed: a tool server is down.
        """
        offered = self.site.offered(skill)
        opening = (opening_tool(offered),) if offered else ()
        module, own = self._module(skill, opening)
        with dspy.context(**self._context):
            episode = _Episode(module, (*own, *opening), self._declared, self.site.plan)
            return await episode.play(dict(example.inputs), self._turns)

    async def close(self) -> None:
        """As `RolloutKind.close`."""
        await self._declared.close()

    def _module(self, skill: Skill | None, opening: Sequence[Tool]) -> tuple[SkillModule, tuple[Tool, ...]]:
        """Return the agent of a skill, and the program's tools with the names and texts that it reads."""
        plan, text = self.site.plan, self.site.read_at_once(skill)
        # Texts of tools are part of a skill, also of one that is not read at once.
        key = (text, skill.text if skill is not None else "", *(tool.about for tool in opening))
        made = self._modules.get(key)
        if made is None:
            task, document = as_read(plan.task), skill.document if skill is not None else None
            own = with_texts(self.tools, document, renames=plan.skill.renames_tools)
            tools = [dspy_tool(tool) for tool in (*own, *opening)]
            module = SkillModule(
                task,
                plan.skill.name,
                instructions(task, text),
                root=self.site.root,
                by_reference=True,
                predictor=lambda signature: dspy.ReAct(signature, tools=tools, max_iters=self._turns),
            )
            made = self._modules[key] = (module, own)
            if len(self._modules) > _MODULES_KEPT:
                self._modules.popitem(last=False)
        self._modules.move_to_end(key)
        return made


class _Episode:
    """One rollout: the steps so far, and the trajectory as the model reads it."""

    def __init__(self, module: SkillModule, tools: Sequence[Tool], declared: AgentTools, plan: Plan) -> None:
        self._module = module
        self._agent = module.answer
        self._tools = {tool.name: tool for tool in tools}
        self._declared = declared
        self._plan = plan
        self._steps: list[Step] = []
        self._seen: dict[str, Any] = {}

    async def play(self, example: Mapping[str, Any], most: int) -> Trajectory:
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
        except _TooLong:
            problem = "the trajectory no longer fits the model, although its first steps were left out"
            return self._ended("failed", turns, problem=problem)
        values, wrong = values_of(self._module.outputs_of(answer), self._plan)
        return self._ended("finished" if finished else "turns", turns, values, wrong)

    def _ended(
        self, outcome: Outcome, turns: int, answer: JsonObject | None = None, problem: str | None = None
    ) -> Trajectory:
        reply = Message(last_reply(current_scope().completions))
        return Trajectory((*self._steps, reply), answer, problem, outcome=outcome, turns=turns)

    async def _act(self, turn: int, chosen: dspy.Prediction) -> bool:
        """Call the chosen tool and record it; return True if the agent has finished."""
        name, arguments = chosen.next_tool_name, to_jsonable_python(chosen.next_tool_args, inf_nan_mode="strings")
        self._steps.append(Message(chosen.next_thought or ""))
        if name == FINISH:
            seen = Observation("Completed.")
        else:
            call, seen = await self._declared.call(self._tools, name, arguments)
            self._steps += [call, seen]
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
                    raise _TooLong from raised
                for key in list(seen)[:_KEYS_A_TURN]:
                    del seen[key]
        raise _TooLong


class _TooLong(Exception):  # noqa: N818
    """No part of the trajectory fits the model."""


def opening_tool(offered: Sequence[Document]) -> Tool:
    """Return the tool that opens the skills of one rollout; its description is the list that the agent reads."""
    openings = Openings(offered)

    async def call(arguments: JsonObject, seconds: float) -> str:
        seen = openings.open(str(arguments["name"]))
        if seen.failed:
            raise ToolFailed(seen.text)
        return seen.text

    lines = [f"- {name}: {about}" for name, about in shown_descriptions(offered)]
    about = "\n".join(["Open a skill where its description fits, and read its text. There are these skills:", *lines])
    return Tool(OPEN, about, {"name": {"type": "string", "description": "the name of a skill"}}, ("name",), call)


def dspy_tool(tool: Tool) -> dspy.Tool:
    """Return a tool as `dspy.ReAct` describes it to the model."""

    def never(**arguments: Any) -> None:
        raise AssertionError("the episode calls the tools")

    return dspy.Tool(never, name=tool.name, desc=tool.about, args=dict(tool.arguments), arg_types={})


def _declared(settings: Mapping[str, Any]) -> list[Any]:
    declared = settings.get("tools", [])
    return declared if isinstance(declared, list) else []


def setting_of(settings: Mapping[str, Any], name: str) -> Any:
    """Return a setting of `react { ... }`, by default its default."""
    return settings.get(name, REACT_DEFAULTS[name])
