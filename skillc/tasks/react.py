"""Rollouts of an agent that calls tools: `rollout = react { tools = [...] }`.

Every call is cached and charged like any other. `episodes.py` has the turns of a rollout.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dspy

from skillc.document.tool_lines import is_tool_name
from skillc.errors import SkillcError
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.module import SkillModule
from skillc.program.names import as_read, instructions
from skillc.tasks.episodes import SUBMIT, AgentTools, Episode, NativeEpisode, TextEpisode, native_adapter, setting_of
from skillc.tasks.kind import Recent, RolloutKind, Site, Skill, rollout_kind
from skillc.tasks.opening import opening_tool
from skillc.tasks.predict import dspy_settings
from skillc.tools.tool import Tool
from skillc.trajectories.trajectory import Trajectory


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
        self._play: type[Episode] = TextEpisode
        self._context = dspy_settings(site)
        if site.plan.task.rollout.native_calls:
            _check_names([tool.name for tool in self.tools])
            self._play = NativeEpisode
            self._context = dspy_settings(site, native_adapter(), calls_tools=True)
        self._modules: Recent[tuple[str | None, ...], tuple[SkillModule, tuple[Tool, ...]]] = Recent()

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
            episode = self._play(module, (*own, *opening), self._declared, self.site.plan)
            return await episode.play(dict(example.inputs), self._turns)

    async def close(self) -> None:
        """As `RolloutKind.close`."""
        await self._declared.close()

    def _module(self, skill: Skill | None, opening: Sequence[Tool]) -> tuple[SkillModule, tuple[Tool, ...]]:
        """Return the agent of a skill, and the program's tools with the names and texts that it reads."""
        plan, text = self.site.plan, self.site.read_at_once(skill)
        # Texts of tools are part of a skill, also of one that is not read at once.
        key = (text, skill.text if skill is not None else "", *(tool.about for tool in opening))

        def make() -> tuple[SkillModule, tuple[Tool, ...]]:
            task, own = as_read(plan.task), self._declared.described_by(skill)
            module = SkillModule(
                task,
                plan.skill.name,
                instructions(task, text),
                root=self.site.root,
                by_reference=True,
                predictor=lambda signature: self._play.agent(signature, (*own, *opening), self._turns),
            )
            return module, own

        return self._modules.of(key, make)


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
