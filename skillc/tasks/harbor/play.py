"""Rollouts of tasks in the format of Harbor: the target runs commands in the task's environment, which tests score.

A reply with a block of shell commands is run, and the next message shows what it printed. A reply without one ends the
work. The agent sees neither the tests nor the solution: they are mounted only for the commands that run them.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillc.data.task_folders import is_task, read_task, tasks_in
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.json_values import JsonObject, as_text, digest
from skillc.language.commands import fill_placeholders, placeholders
from skillc.language.rollouts import HARBOR_DEFAULTS
from skillc.models.calls import well_formed
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.processes.command import temporary_folder
from skillc.sandbox.container import ENGINES
from skillc.sandbox.policy import declared_sandbox
from skillc.tasks.agents.workspace import digest_of
from skillc.tasks.answers import question
from skillc.tasks.harbor.places import HOME, Box, Place, Places, ProgramsOf
from skillc.tasks.harbor.verify import check_task, verify
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, rollout_kind
from skillc.tasks.programs import SandboxFailed, default_limits
from skillc.tasks.talk import ask_within
from skillc.text import counted, listed
from skillc.trajectories.trajectory import Message, Observation, Outcome, Step, ToolCall, Trajectory

TOOL = "shell"
"""The name of the tool in trajectories."""

_WHAT = "`rollout = harbor`"
_SLOTS = 32
_SCRIPT = "command.sh"
# Less time is not worth a command.
_LEAST_SECONDS = 0.1
_BLOCK = re.compile(r"^[ \t]*```[ \t]*(?:bash|sh|shell)[ \t]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.M | re.I)
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_INSTRUCTIONS = """\
You work in a Linux environment by commands of the shell. Write them in one block that begins with ```bash. They run \
in {workdir}, and the next message shows what they print and their errors. Each block is a new shell: variables and \
the current folder are lost, and files stay if they are below {folders}. Nobody answers a command that asks for input. \
{network} When the work is done, reply without a ```bash block."""
_LAST_TURN = "No turns are left. Reply without a ```bash block."


@dataclass(frozen=True, slots=True)
class _Task:
    """A task with its environment, or why no rollout of it can be measured."""

    place: Place
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Work:
    """What the agent did: its steps, its turns, how it ended, and its last reply, empty where a limit ended it."""

    steps: list[Step]
    turns: int
    outcome: Outcome
    reply: str = ""


@rollout_kind("harbor")
class HarborRollout(RolloutKind):
    """Runs the commands of the target in a copy of a task's environment, then the task's tests.

    A command that fails is an observation. A task whose environment cannot be made is an error of the program; tests
    that write no reward leave the rollout unmeasured.
    """

    slots = _SLOTS

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        given: Mapping[str, Any] = site.settings
        given = {**HARBOR_DEFAULTS, **given}
        self._turns, self._output = int(given["turns"]), int(given["output"])
        self._folder = str(given["folder"])
        self._checks, self._shows = bool(given["oracle"]), bool(given["shown"])
        self._hosts = tuple(given["hosts"] or ())
        self._known = tuple(each["arguments"][0] for each in given["environment"] or ())
        declared = declared_sandbox(given["sandbox"], default_limits())
        # Tasks name their files by absolute paths, which the other sandboxes cannot map.
        declared = replace(declared, kind=declared.kind or "bubblewrap")
        reads = tuple(given["reads"] or ())
        programs = ProgramsOf(declared, site.root, python=given["python"], reads=reads, hosts=self._hosts)
        if declared.kind not in ENGINES:
            programs(None)
        self._kept = tempfile.TemporaryDirectory(prefix="skillc-", ignore_cleanup_errors=True)
        kept = Path(self._kept.name).resolve()
        self._places = Places(declared, programs, kept, builds=bool(given["build"]))
        self._tasks: dict[Path, asyncio.Task[_Task]] = {}
        self._answer = _only_output(site.plan)

    @classmethod
    def source(cls, plan: Plan, root: Path) -> str:
        """As `RolloutKind.source`: the digests of the folders of tasks."""
        data, folder = plan.data, str(plan.task.rollout.settings.get("folder", ""))
        named = [root / name for name in (data.source, data.train, data.validation, data.test) if name is not None]
        fixed = root / folder.partition("{")[0].rpartition("/")[0] if "{" in folder else root / folder
        found = [path for path in (*named, *([fixed] if folder and fixed != root else [])) if tasks_in(path)]
        return digest([digest_of(path) for path in found])

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`."""
        task = await self._task(self._path_of(example))
        if task.problem:
            raise RolloutFailed("environment", f"the task `{task.place.task.name}`: {task.problem}")
        place = task.place
        async with temporary_folder() as folder:
            try:
                box = await place.copied(folder / "box")
                before = box.files.digests()
                done = await self._work(skill, example, place, box)
                changed = box.files.changes(before)
                verdict = await verify(place, box, folder / "tests", self._variables(place.task.test_variables))
            except OSError as problem:
                raise RolloutFailed("environment", f"its files cannot be copied: {problem}") from None
        told = [Observation(f"the tests printed:\n{verdict.printed}")] if self._shows and verdict.printed else []
        last = [Message(done.reply)] if done.outcome == "finished" else []
        return Trajectory(
            (*done.steps, *changed, *last, *told),
            {self._answer: done.reply} if self._answer else {},
            outcome=done.outcome,
            reward=verdict.reward,
            turns=done.turns,
        )

    async def close(self) -> None:
        """As `RolloutKind.close`."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.to_thread(self._kept.cleanup)

    # ---- the task ----

    def _path_of(self, example: Example) -> Path:
        known = {**example.fields, **example.inputs, "id": example.id}
        missing = [name for name in placeholders(self._folder) if name not in known]
        if missing:
            raise SkillcError(
                f"{_WHAT} needs the column {listed(missing, 'and')}, the folder of a task",
                hint='declare `field task: text` in `data`, or name the folder: `folder = "tasks/{id}"`',
            )
        written = fill_placeholders(self._folder, lambda name: as_text(known[name]))
        path = (self.site.root / written).resolve()
        if not path.is_relative_to(self.site.root.resolve()):
            raise SkillcError(f"{_WHAT}: the task `{written}` is outside the program's folder")
        if not is_task(path):
            raise SkillcError(f"{_WHAT}: `{written}` is no task", hint="a task of Harbor is a folder with `task.toml`")
        return path

    async def _task(self, path: Path) -> _Task:
        """Return a task with its environment, which its first rollout makes and checks."""
        if path not in self._tasks:
            self._tasks[path] = asyncio.create_task(self._opened(path))
        opening = self._tasks[path]
        try:
            return await asyncio.shield(opening)
        except RolloutFailed:
            # The next rollout tries again.
            if self._tasks.get(path) is opening:
                del self._tasks[path]
            raise

    async def _opened(self, path: Path) -> _Task:
        task = read_task(path)
        place = await self._places.make(task, self._variables(task.variables))
        tests, solution = self._variables(task.test_variables), self._variables(task.solution_variables)
        problem = await check_task(place, tests, solution) if self._checks else ""
        if problem:
            self.site.note(f"no rollout of the task `{task.name}` is measured: {problem}")
        return _Task(place, problem)

    def _variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return variables of a task; those of this machine must be declared, as a task may come from anywhere."""

        def value(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            if name in self._known and name in os.environ:
                return os.environ[name]
            if default is None:
                raise SkillcError(
                    f"{_WHAT}: a task reads the variable `{name}`",
                    hint=f'set it, and allow it: `environment = [env("{name}")]`',
                )
            return default

        return {name: _VARIABLE.sub(value, text) for name, text in given.items()}

    # ---- the agent ----

    async def _work(self, skill: Skill | None, example: Example, place: Place, box: Box) -> _Work:
        """Run commands until a reply has none, or a limit is reached.

        The time of the task counts for its commands alone, so that a reply from the cache decides as one that is sent.
        """
        messages, steps = self._messages(skill, example, place), list[Step]()
        left = place.task.agent_seconds
        for turn in range(1, self._turns + 1):
            reply = await ask_within(self.site, messages)
            code = commands_in(reply)
            if not code:
                return _Work(steps, turn, "finished", reply)
            said = _BLOCK.sub("", reply).strip()
            seen, seconds = await self._execute(place, box, code, left)
            left -= seconds
            steps += [*([Message(said)] if said else []), ToolCall(TOOL, {"command": code}), seen]
            if left < _LEAST_SECONDS:
                return _Work(steps, turn, "time")
            rest = self._turns - turn
            shown = f"({counted(rest, 'turn')} left)" if rest > 1 else _LAST_TURN
            messages += [
                {"role": "assistant", "content": reply},
                {"role": "user", "content": f"{seen.text}\n\n{shown}"},
            ]
        return _Work(steps, self._turns, "turns")

    def _messages(self, skill: Skill | None, example: Example, place: Place) -> list[JsonObject]:
        network = f"The network reaches {listed(self._hosts, 'and')} only." if self._hosts else "There is no network."
        folders = listed([folder for folder in place.folders if folder != HOME] or [place.workdir], "and")
        text = _INSTRUCTIONS.format(network=network, workdir=place.workdir, folders=folders)
        loaded = self.site.read_at_once(skill)
        given = f"{question(self.site.plan.task, example)}\n\nYou have {counted(self._turns, 'turn')}."
        return [
            {"role": "system", "content": well_formed("\n\n".join([*([loaded.strip()] if loaded else []), text]))},
            {"role": "user", "content": well_formed(given)},
        ]

    async def _execute(self, place: Place, box: Box, code: str, left: float) -> tuple[Observation, float]:
        """Run commands, and return what they printed, and the seconds that they took.

        Raises:
            RolloutFailed: the sandbox did not start them.
        """
        (box.folder / _SCRIPT).write_text(code, encoding="utf-8")
        try:
            result = await place.run(box, ["bash", f"{box.seen}/{_SCRIPT}"], left)
        except SandboxFailed as problem:
            raise RolloutFailed("environment", problem.detail) from None
        failed = result.why != "ended" or result.status != 0
        text = place.programs.observed(result, box, self._output, place.limits(left))
        return Observation(text, failed), result.seconds


def commands_in(reply: str) -> str:
    """Return the commands in a reply, several blocks as one script; empty without one."""
    blocks = (found[1].strip("\n") for found in _BLOCK.finditer(reply.replace("\r\n", "\n")))
    return "\n".join(f"{block}\n" for block in blocks if block.strip())


def _only_output(plan: Plan) -> str:
    """Return the name of the output that gets the last message; empty without one.

    Raises:
        SkillcError: the task has other outputs.
    """
    outputs = plan.task.outputs
    if len(outputs) > 1 or any(field.type.kind != "text" for field in outputs):
        names = listed((field.name for field in outputs), "and")
        raise SkillcError(
            f"{_WHAT} has one output, the last message of the agent; the task declares {names}",
            hint="write `output report: text`, and measure `reward()`",
        )
    return outputs[0].name if outputs else ""
