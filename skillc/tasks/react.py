"""Rollouts of an agent that calls tools: `rollout = react { tools = [...] }`.

The prompts are those of the DSPy module that the emitted module uses: `dspy.ReAct` with `tool_calls = text`, so that
every model can play it, and `dspy.ReActV2` with `tool_calls = native`. Every call is cached and charged like any other.
The loops are skillc's own (`text_calls.py`, `native_calls.py`), because they must tell a tool that failed from a tool
server that is down, and record the steps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import dspy

from skillc.document.offer import OPEN, shown_descriptions
from skillc.document.skill import Document
from skillc.document.tool_lines import is_tool_name
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.language.rollouts import REACT_DEFAULTS
from skillc.models.calls import well_formed
from skillc.models.dspy_lm import make_lm
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.module import SkillModule
from skillc.program.names import as_read, instructions
from skillc.redaction import Redactor
from skillc.tasks.episode import Episode, named_call
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, rollout_kind
from skillc.tasks.native_calls import SUBMIT, NativeEpisode, native_adapter, native_agent
from skillc.tasks.opening import Openings
from skillc.tasks.text_calls import FINISH, TextEpisode, text_agent
from skillc.text import listed
from skillc.tools.tool import Tool, ToolFailed, ToolLimits, ToolServerDown, call_tool, with_texts
from skillc.tools.toolbox import Toolbox, tools_source
from skillc.trajectories.trajectory import Observation, ToolCall, Trajectory

_MODULES_KEPT = 64


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
        self._native = site.plan.task.rollout.native_calls
        if self._native:
            _check_names([tool.name for tool in self.tools])
        self._context = {
            "lm": make_lm(site.client, site.role, calls_tools=self._native),
            "adapter": native_adapter() if self._native else dspy.ChatAdapter(use_json_adapter_fallback=False),
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
            play = NativeEpisode if self._native else TextEpisode
            episode: Episode = play(module, (*own, *opening), self._declared, self.site.plan)
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
            tools = (*own, *opening)

            def agent(signature: type[dspy.Signature]) -> Any:
                return (native_agent if self._native else text_agent)(signature, tools, self._turns)

            module = SkillModule(
                task,
                plan.skill.name,
                instructions(task, text),
                root=self.site.root,
                by_reference=True,
                predictor=agent,
            )
            made = self._modules[key] = (module, own)
            if len(self._modules) > _MODULES_KEPT:
                self._modules.popitem(last=False)
        self._modules.move_to_end(key)
        return made


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


def _check_names(names: Sequence[str]) -> None:
    """Refuse names of tools that providers do not accept.

    Raises:
        SkillcError: a name has other characters, is too long, or is that of the tool that ends the work.
    """
    for name in names:
        if name == SUBMIT:
            raise SkillcError(f"the tool `{name}` has the name by which an agent ends its work", hint="rename it")
        if not is_tool_name(name):
            raise SkillcError(
                f"providers accept no tool named `{name}`",
                hint="rename it to at most 64 letters, digits, `_` and `-`, or write `tool_calls = text`",
            )


def _declared(settings: Mapping[str, Any]) -> list[Any]:
    declared = settings.get("tools", [])
    return declared if isinstance(declared, list) else []


def setting_of(settings: Mapping[str, Any], name: str) -> Any:
    """Return a setting of `react { ... }`, by default its default."""
    return settings.get(name, REACT_DEFAULTS[name])
