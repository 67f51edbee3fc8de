"""Rollouts that write and run code: `rollout = code { rounds = 10; sandbox = bubblewrap { memory = 2 GB } }`.

A reply with a block of Python is run in a sandbox, and the next message shows what it printed. A reply without one is
the answer. Each block is a new process, so only files last from round to round.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue

from skillc.data.attachments import attachments, fill_workspace
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.language.kinds import default_of
from skillc.models.calls import well_formed
from skillc.models.dspy_lm import ask
from skillc.models.failures import find_failure, is_too_long
from skillc.outcomes import Example
from skillc.processes.command import CommandResult, End
from skillc.sandbox.container import ENGINES
from skillc.sandbox.declared import DeclaredSandbox, declared_sandbox
from skillc.sandbox.policy import WORK, Limits, Policy
from skillc.sandbox.run import choose
from skillc.sandbox.run import run as run_in_sandbox
from skillc.tasks.agents.installed import find_program, folders_of, mounts_of, search_path
from skillc.tasks.agents.workspace import HOME, Workspace
from skillc.tasks.answers import question, read_answer
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, rollout_kind
from skillc.text import counted, listed
from skillc.tokens import trim
from skillc.trajectories.trajectory import Message, Observation, Outcome, Step, ToolCall, Trajectory

TOOL = "python"
"""The name of the tool in trajectories."""

_SLOTS = 32
_OUTPUT = 4 * 2**20
_LISTED_FILES = 50
_PROGRAM = "program.py"
_BLOCK = re.compile(r"^[ \t]*```[ \t]*(?:python3?|py)[ \t]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.M | re.I)
# Addresses of objects differ between runs of one program, and a prompt that differs is paid for again.
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,16}\b")
# Prints a word that no program can know, so that a sandbox that did not start is told from a program that failed.
_STARTED = 'echo "$0"; exec "$@"'
_LIMITS: Mapping[End, str] = {
    "timeout": "it was stopped: it ran longer than {time:g} s",
    "output": "it was stopped: it printed too much",
    "memory": "it was stopped: it used more memory than {memory:,} bytes",
    "processes": "it was stopped: it ran more than {processes} processes",
    "disk": "it was stopped: it wrote more than {disk:,} bytes",
}
_INSTRUCTIONS = """\
You can run Python before you answer. Write a whole program in one block that begins with ```python. It runs in the \
current folder, and the next message shows what it prints and its errors. Use relative paths. Each block is a new \
process: variables are lost, files stay. {network} A reply without a ```python block is your answer."""
_NOTHING_PRINTED = "it printed nothing"
_LAST_ROUND = "No rounds are left. Answer now, without a ```python block."


@dataclass(frozen=True, slots=True)
class CodeSettings:
    """What a program declares of `rollout = code`; the table of kinds describes each setting.

    Attributes:
        output: tokens.
        python: None is that of skillc, or of the image.
    """

    sandbox: DeclaredSandbox
    rounds: int
    output: int
    python: str | None = None
    reads: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, JsonValue]) -> CodeSettings:
        """Read the settings of a plan's rollout."""
        given: Mapping[str, Any] = settings
        return cls(
            sandbox=declared_sandbox(given.get("sandbox"), _limits()),
            rounds=int(given.get("rounds", default_of("task", "rollout", "rounds"))),
            output=int(given.get("output", default_of("task", "rollout", "output"))),
            python=given.get("python"),
            reads=tuple(given.get("reads", ())),
            hosts=tuple(given.get("hosts", ())),
        )


@rollout_kind("code")
class CodeRollout(RolloutKind):
    """Runs the code that the target writes, in a workspace that only its rollout has.

    Code that fails, or that a limit stops, is an observation. A sandbox that does not start is unmeasured.
    """

    slots = _SLOTS

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.settings = CodeSettings.of(site.settings)
        self.declared = self.settings.sandbox
        self.sandbox = choose(self.declared.kind, self.declared.image, hosts=bool(self.settings.hosts))
        if self.sandbox == "unsafe":
            site.note("`rollout = code` runs without a sandbox: the code of a model can read and change all your files")
        self._python, self._reads = self._find()
        # Programs at once: more would only take each other's time, which is limited.
        self._running = asyncio.Semaphore(max(2, os.cpu_count() or 1))

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`."""
        with tempfile.TemporaryDirectory(prefix="skillc-", ignore_cleanup_errors=True) as place:
            attached = attachments(self.site.plan, example, self.site.root)
            try:
                workspace = Workspace.make(Path(place).resolve(), self.sandbox, None)
            except OSError as problem:
                raise RolloutFailed("environment", f"no workspace can be made: {problem}") from None
            fill_workspace(attached, workspace.folder)
            before = workspace.digests()
            messages = self._messages(skill, attached.example, sorted(before))
            trajectory = await self._talk(messages, workspace)
            changed = workspace.changes(before)
        return Trajectory(
            (*trajectory.steps[:-1], *changed, *trajectory.steps[-1:]),
            trajectory.answer,
            trajectory.problem,
            outcome=trajectory.outcome,
            turns=trajectory.turns,
        )

    async def _talk(self, messages: list[JsonObject], workspace: Workspace) -> Trajectory:
        """Run rounds until a reply has no code; the last step is the last message."""
        steps: list[Step] = []
        for spent in range(self.settings.rounds + 1):
            reply = await self._ask(messages)
            code = code_in(reply)
            if not code:
                answer, problem = read_answer(self.site.plan.task, reply)
                return Trajectory((*steps, Message(reply)), answer, problem, turns=spent + 1)
            if spent == self.settings.rounds:
                break
            seen = await self._execute(code, workspace)
            said = _BLOCK.sub("", reply).strip()
            steps += [*([Message(said)] if said else []), ToolCall(TOOL, {"code": code}), seen]
            left = self.settings.rounds - spent - 1
            remaining = f"({counted(left, 'round')} left)" if left else _LAST_ROUND
            messages += [
                {"role": "assistant", "content": reply},
                {"role": "user", "content": f"{seen.text}\n\n{remaining}"},
            ]
        problem = f"it gave no answer after {counted(self.settings.rounds, 'round')} of code"
        outcome: Outcome = "turns"
        return Trajectory((*steps, Message(reply)), None, problem, outcome=outcome, turns=self.settings.rounds + 1)

    async def _ask(self, messages: list[JsonObject]) -> str:
        """Return the next reply; rounds that no longer fit the model are left out, the oldest first."""
        while True:
            try:
                return await ask(self.site.client, self.site.role, cast(Sequence[Mapping[str, Any]], messages))
            except Exception as raised:
                failure = find_failure(raised)
                if failure is None or not is_too_long(failure) or len(messages) <= _FIRST + _A_ROUND:
                    raise
                del messages[_FIRST : _FIRST + _A_ROUND]

    def _messages(self, skill: Skill | None, example: Example, files: Sequence[str]) -> list[JsonObject]:
        hosts = self.settings.hosts
        network = f"The network reaches {listed(hosts, 'and')} only." if hosts else "There is no network."
        text = _INSTRUCTIONS.format(network=network)
        loaded = self.site.read_at_once(skill)
        given = [question(self.site.plan.task, example)]
        if files:
            more = len(files) - _LISTED_FILES
            rest = f"\nand {more} more" if more > 0 else ""
            given.append("Files in the current folder:\n" + "\n".join(files[:_LISTED_FILES]) + rest)
        given.append(f"You have {counted(self.settings.rounds, 'round')} of code.")
        return [
            {"role": "system", "content": well_formed("\n\n".join([*([loaded.strip()] if loaded else []), text]))},
            {"role": "user", "content": well_formed("\n\n".join(given))},
        ]

    async def _execute(self, code: str, workspace: Workspace) -> Observation:
        """Run a program and return what it printed.

        Raises:
            RolloutFailed: the sandbox did not start it.
        """
        word = secrets.token_hex(16)
        try:
            program = workspace.write(_PROGRAM, code)
            policy = Policy(
                workspace.folder,
                (*workspace.mounts, *mounts_of(self._reads)),
                self.settings.hosts,
                self.declared.limits,
                self.declared.image,
            )
            async with self._running:
                result = await run_in_sandbox(
                    self.sandbox,
                    policy,
                    ["/bin/sh", "-c", _STARTED, word, self._python, program],
                    environment=self._environment(workspace),
                )
        except OSError as problem:
            raise RolloutFailed("environment", f"the sandbox `{self.sandbox}` failed: {problem}") from None
        first, _, printed = result.stdout.partition(b"\n")
        if first.decode(errors="replace") != word:
            said = result.stderr.decode(errors="replace").strip().splitlines()
            detail = said[-1] if said else f"status {result.status}"
            raise RolloutFailed("environment", f"the sandbox `{self.sandbox}` did not start: {detail}")
        return self._observation(result, printed, workspace)

    def _observation(self, result: CommandResult, printed: bytes, workspace: Workspace) -> Observation:
        texts = [self._shown(printed, workspace), self._shown(result.stderr, workspace)]
        failed = result.why != "ended" or result.status != 0
        if result.why != "ended":
            limits = self.declared.limits
            why = _LIMITS[result.why]
            texts.append(
                why.format(time=limits.time, memory=limits.memory, processes=limits.processes, disk=limits.disk)
            )
        elif result.status and not texts[1]:
            texts.append(f"it ended with status {result.status}")
        return Observation("\n".join(text for text in texts if text) or _NOTHING_PRINTED, failed)

    def _shown(self, output: bytes, workspace: Workspace) -> str:
        text = output.decode(errors="replace").replace(str(workspace.home), HOME).replace(str(workspace.folder), WORK)
        return trim(well_formed(_ADDRESS.sub("at 0x...", text).strip("\n")), self.settings.output)

    def _environment(self, workspace: Workspace) -> dict[str, str]:
        variables = {
            "HOME": workspace.seen_home,
            "LANG": "C.UTF-8",
            "MPLBACKEND": "Agg",
            "PYTHONDONTWRITEBYTECODE": "1",
            # The order of sets is the same in each run.
            "PYTHONHASHSEED": "0",
            "PYTHONIOENCODING": "utf-8",
            # Modules that an earlier round wrote.
            "PYTHONPATH": workspace.seen,
        }
        return variables if self.sandbox in ENGINES else {"PATH": search_path(self._python), **variables}

    # ---- checked before the first rollout ----

    def _find(self) -> tuple[str, list[Path]]:
        """Return the interpreter, and the files that the code may read besides its own."""
        reads = [self.site.root / Path(path).expanduser() for path in self.settings.reads]
        for path in reads:
            if not path.exists():
                raise SkillcError(f"`rollout = code`: `{path}` does not exist", hint="create it, or change `reads`")
        declared = self.settings.python
        if self.sandbox in ENGINES:
            return declared or "python3", reads
        if declared is None:
            return sys.executable, [*folders_of(sys.executable), *reads]
        try:
            python = find_program(declared, self.site.root, os.environ, "`rollout = code`")
        except SkillcError as problem:
            raise SkillcError(problem.message, hint="install it, or change `python`") from None
        return python, [*folders_of(python), *reads]


def _limits() -> Limits:
    """Return the limits of code without a declared sandbox."""

    def of(name: str) -> Any:
        return default_of("task", "rollout", "sandbox", name)

    return Limits(float(of("time")), int(of("memory")), int(of("processes")), disk=int(of("disk")), output=_OUTPUT)


_FIRST, _A_ROUND = 2, 2


def code_in(reply: str) -> str:
    """Return the Python in a reply, several blocks as one program; empty without one."""
    return "\n\n".join(_blocks(reply))


def _blocks(reply: str) -> Iterator[str]:
    for found in _BLOCK.finditer(reply.replace("\r\n", "\n")):
        block = found[1].strip("\n")
        if block.strip():
            yield f"{block}\n"
