"""Rollouts that write and run code: `rollout = code { rounds = 10; sandbox = bubblewrap { memory = 2 GB } }`.

A reply with a block of Python is run in a sandbox, and the next message shows what it printed. A reply without one is
the answer. Each block is a new process, so only files last from round to round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from skillc.data.attachments import attachments, fill_workspace
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.language.kinds import default_of
from skillc.models.calls import well_formed
from skillc.outcomes import Example
from skillc.processes.command import temporary_folder
from skillc.sandbox.policy import declared_sandbox
from skillc.skill_files import write_folder
from skillc.tasks.agents.workspace import Workspace
from skillc.tasks.answers import question, read_answer
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, rollout_kind
from skillc.tasks.programs import Programs, SandboxFailed, code_of, default_limits
from skillc.tasks.talk import ask_within
from skillc.text import counted, listed
from skillc.trajectories.trajectory import Message, Observation, Step, ToolCall, Trajectory

TOOL = "python"
"""The name of the tool in trajectories."""

_SLOTS = 32
_LISTED_FILES = 50
_PROGRAM = "program.py"
_SKILLS = "skills"
_BLOCK = re.compile(r"^[ \t]*```[ \t]*(?:python3?|py)[ \t]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.M | re.I)
_INSTRUCTIONS = """\
You can run Python before you answer. Write a whole program in one block that begins with ```python. It runs in the \
current folder, and the next message shows what it prints and its errors. Use relative paths. Each block is a new \
process: variables are lost, files stay. {network} A reply without a ```python block is your answer."""
_LAST_ROUND = "No rounds are left. Answer now, without a ```python block."


@rollout_kind("code")
class CodeRollout(RolloutKind):
    """Runs the code that the target writes, in a workspace that only its rollout has.

    Code that fails, or that a limit stops, is an observation. A sandbox that does not start is unmeasured.
    """

    slots = _SLOTS
    scripts = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        given: Mapping[str, Any] = site.settings
        self._rounds = int(given.get("rounds", default_of("task", "rollout", "rounds")))
        self._output = int(given.get("output", default_of("task", "rollout", "output")))
        self._hosts = tuple(given.get("hosts", ()))
        self._programs = Programs(
            declared_sandbox(given.get("sandbox"), default_limits()),
            site.root,
            what="`rollout = code`",
            python=given.get("python"),
            reads=given.get("reads", ()),
            hosts=self._hosts,
        )
        if self._programs.kind == "unsafe":
            site.note("`rollout = code` runs without a sandbox: the code of a model can read and change all your files")

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`."""
        async with temporary_folder() as place:
            attached = attachments(self.site.plan, example, self.site.root)
            try:
                workspace = Workspace.make(place, self._programs.kind)
            except OSError as problem:
                raise RolloutFailed("environment", f"no workspace can be made: {problem}") from None
            fill_workspace(attached, workspace.folder)
            given = sorted(workspace.digests())
            own = self._install(skill, workspace)
            before = workspace.digests()
            messages = self._messages(skill, attached.example, given, own)
            trajectory = await self._talk(messages, workspace)
            changed = workspace.changes(before)
        return replace(trajectory, steps=(*trajectory.steps[:-1], *changed, *trajectory.steps[-1:]))

    async def _talk(self, messages: list[JsonObject], workspace: Workspace) -> Trajectory:
        """Run rounds until a reply has no code; the last step is the last message."""
        steps: list[Step] = []
        for left in range(self._rounds, -1, -1):
            reply = await ask_within(self.site, messages)
            code = code_in(reply)
            if not code:
                answer, problem = read_answer(self.site.plan.task, reply)
                return Trajectory((*steps, Message(reply)), answer, problem, turns=self._rounds - left + 1)
            if not left:
                break
            seen = await self._execute(code, workspace)
            said = _BLOCK.sub("", reply).strip()
            steps += [*([Message(said)] if said else []), ToolCall(TOOL, {"code": code}), seen]
            remaining = f"({counted(left - 1, 'round')} left)" if left > 1 else _LAST_ROUND
            messages += [
                {"role": "assistant", "content": reply},
                {"role": "user", "content": f"{seen.text}\n\n{remaining}"},
            ]
        problem = f"it gave no answer after {counted(self._rounds, 'round')} of code"
        return Trajectory((*steps, Message(reply)), None, problem, outcome="turns", turns=self._rounds + 1)

    def _install(self, skill: Skill | None, workspace: Workspace) -> list[str]:
        """Copy the scripts and the kept files of a skill into the workspace, and return their paths there."""
        if skill is None:
            return []
        document = skill.document
        files = {f"{_SKILLS}/{document.name}/{name}": content for name, content in code_of(document).items()}
        taken = next((name for name in files if (workspace.folder / name).exists()), None)
        if taken is not None:
            raise SkillcError(f"an input of the task and the skill both have `{taken}`", hint="rename the file")
        try:
            write_folder(workspace.folder, files, lasting=False)
        except OSError as problem:
            raise RolloutFailed("environment", f"the skill's files cannot be copied: {problem}") from None
        return sorted(files)

    def _messages(
        self, skill: Skill | None, example: Example, files: Sequence[str], own: Sequence[str]
    ) -> list[JsonObject]:
        network = f"The network reaches {listed(self._hosts, 'and')} only." if self._hosts else "There is no network."
        text = _INSTRUCTIONS.format(network=network)
        loaded = self.site.read_at_once(skill)
        given = [question(self.site.plan.task, example)]
        if files:
            given.append(f"Files in the current folder:\n{_cut_list(files)}")
        if own and skill is not None:
            folder = f"{_SKILLS}/{skill.document.name}"
            names = _cut_list([name.removeprefix(f"{folder}/") for name in own])
            given.append(f"The files of the skill are in the folder {folder}:\n{names}")
        given.append(f"You have {counted(self._rounds, 'round')} of code.")
        return [
            {"role": "system", "content": well_formed("\n\n".join([*([loaded.strip()] if loaded else []), text]))},
            {"role": "user", "content": well_formed("\n\n".join(given))},
        ]

    async def _execute(self, code: str, workspace: Workspace) -> Observation:
        """Run a program and return what it printed, with why it failed.

        Raises:
            RolloutFailed: the sandbox did not start it.
        """
        try:
            program = workspace.write(_PROGRAM, code)
            # Modules that an earlier round wrote can be imported.
            result = await self._programs.run(workspace, [self._programs.python, program], workspace.seen)
        except OSError as problem:
            raise RolloutFailed("environment", f"the program cannot be written: {problem}") from None
        except SandboxFailed as problem:
            raise RolloutFailed("environment", problem.detail) from None
        failed = result.why != "ended" or result.status != 0
        return Observation(self._programs.observed(result, workspace, self._output), failed)


def _cut_list(names: Sequence[str]) -> str:
    """Return names on lines, the first of many."""
    more = len(names) - _LISTED_FILES
    return "\n".join([*names[:_LISTED_FILES], *([f"and {more} more"] if more > 0 else [])])


def code_in(reply: str) -> str:
    """Return the Python in a reply, several blocks as one program; empty without one."""
    blocks = (found[1].strip("\n") for found in _BLOCK.finditer(reply.replace("\r\n", "\n")))
    return "\n\n".join(f"{block}\n" for block in blocks if block.strip())
