"""Programs in the declared sandbox: the code that a target writes, and the tests of a script."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillc.document.skill import Document, scripts_of
from skillc.errors import SkillcError
from skillc.language.kinds import default_of
from skillc.models.calls import well_formed
from skillc.processes.command import CommandResult, last_line
from skillc.sandbox.container import ENGINES
from skillc.sandbox.policy import WORK, DeclaredSandbox, Limits
from skillc.sandbox.run import choose
from skillc.sandbox.run import run as run_in_sandbox
from skillc.tasks.agents.installed import declared_reads, find_program, folders_of, mounts_of, search_path
from skillc.tasks.agents.workspace import HOME, Workspace
from skillc.tokens import trim

NOTHING_PRINTED = "it printed nothing"
"""What an agent reads of a program without output."""

_OUTPUT = 4 * 2**20
# Addresses of objects differ between runs of one program, and a prompt that differs is paid for again.
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,16}\b")
# Prints a word that no program can know: without it the sandbox did not start, rather than the program failed.
_STARTED = 'echo "$0"; exec "$@"'


def code_of(document: Document) -> dict[str, bytes]:
    """Return the scripts and the kept files of a skill by path."""
    return {**scripts_of(document), **dict(document.files)}


class SandboxFailed(Exception):  # noqa: N818
    """A sandbox did not start a program, which is no fault of the program; `detail` is the cause in one line."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def default_limits() -> Limits:
    """Return the limits of programs without a declared sandbox."""

    def of(name: str) -> Any:
        return default_of("task", "rollout", "sandbox", name)

    return Limits(float(of("time")), int(of("memory")), int(of("processes")), disk=int(of("disk")), output=_OUTPUT)


def at_once() -> int:
    """Return how many programs run at once on this machine."""
    return max(2, os.cpu_count() or 1)


class Programs:
    """Runs programs in a sandbox that works on this machine, as many at once as it has CPUs.

    Args:
        declared: the sandbox and its limits.
        root: the program's folder, where relative paths begin.
        what: whose sandbox it is, for messages: `rollout = code`.
        python: the declared interpreter; None is that of skillc, or of the image.
        reads: declared files and folders that a program may read besides its own.
        hosts: addresses that it may reach.
        running: limits how many run at once; None is as many as there are CPUs.

    Attributes:
        kind: the sandbox.
        python: the path of the interpreter in the sandbox.

    Raises:
        SkillcError: no such sandbox works here, or a file or the interpreter is missing.
    """

    def __init__(
        self,
        declared: DeclaredSandbox,
        root: Path,
        *,
        what: str,
        python: str | None = None,
        reads: Sequence[str] = (),
        hosts: Sequence[str] = (),
        running: asyncio.Semaphore | None = None,
    ) -> None:
        self.declared = declared
        self.kind = choose(declared.kind, declared.image, hosts=bool(hosts))
        self._hosts = tuple(hosts)
        self._reads = declared_reads(reads, root, what)
        self.python = python or "python3"
        if self.kind not in ENGINES:
            self.python = _find_python(python, root, what)
            self._reads = [*folders_of(self.python), *self._reads]
        # More at once would only take each other's time, which is limited.
        self._running = running or asyncio.Semaphore(at_once())

    async def run(
        self,
        workspace: Workspace,
        words: Sequence[str],
        modules: str = "",
        *,
        limits: Limits | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a program in a workspace, and return its result.

        Args:
            workspace: its files.
            words: its path in the sandbox, or a name on its `PATH`, and its arguments.
            modules: a path in the sandbox with modules that Python can import; several are separated by `:`.
            limits: those of this program; None are the declared ones.
            variables: further ones of its environment.

        Raises:
            SandboxFailed: the sandbox did not start it.
        """
        word = secrets.token_hex(16)
        declared = self.declared if limits is None else replace(self.declared, limits=limits)
        policy = declared.policy(workspace.folder, (*workspace.mounts, *mounts_of(self._reads)), self._hosts)
        try:
            async with self._running:
                begun = time.monotonic()
                result = await run_in_sandbox(
                    self.kind,
                    policy,
                    ["/bin/sh", "-c", _STARTED, word, *words],
                    environment={**self._environment(workspace, modules), **(variables or {})},
                )
        except OSError as problem:
            raise SandboxFailed(f"the sandbox `{self.kind}` failed: {problem}") from None
        first, _, printed = result.stdout.partition(b"\n")
        if first.decode(errors="replace") != word:
            detail = last_line(result.stderr) or f"status {result.status}"
            raise SandboxFailed(f"the sandbox `{self.kind}` did not start: {detail}")
        return replace(result, stdout=printed, seconds=time.monotonic() - begun)

    def stopped(self, result: CommandResult) -> str:
        """Return which limit stopped a program, and its value."""
        return f"it was stopped: {self.declared.limits.exceeded(result.why)}"

    def shown(self, output: bytes, workspace: Workspace, limit: int) -> str:
        """Return what a program printed within `limit` tokens, without what differs between runs on other machines."""
        text = output.decode(errors="replace").replace(str(workspace.home), HOME).replace(str(workspace.folder), WORK)
        return trim(well_formed(_ADDRESS.sub("at 0x...", text).strip("\n")), limit)

    def observed(self, result: CommandResult, workspace: Workspace, limit: int, limits: Limits | None = None) -> str:
        """Return what an agent reads of a result: output and errors, each within `limit` tokens, and why it failed."""
        texts = [self.shown(each, workspace, limit) for each in (result.stdout, result.stderr)]
        if result.why != "ended":
            texts.append(f"it was stopped: {(limits or self.declared.limits).exceeded(result.why)}")
        elif result.status and not texts[1]:
            texts.append(f"it ended with status {result.status}")
        return "\n".join(text for text in texts if text) or NOTHING_PRINTED

    def _environment(self, workspace: Workspace, modules: str) -> dict[str, str]:
        variables = {
            "HOME": workspace.seen_home,
            "LANG": "C.UTF-8",
            "MPLBACKEND": "Agg",
            "PYTHONDONTWRITEBYTECODE": "1",
            # The order of sets is the same in each run.
            "PYTHONHASHSEED": "0",
            "PYTHONIOENCODING": "utf-8",
            "PYTHONPATH": modules,
        }
        return variables if self.kind in ENGINES else {"PATH": search_path(self.python), **variables}


def _find_python(declared: str | None, root: Path, what: str) -> str:
    if declared is None:
        return sys.executable
    try:
        return find_program(declared, root, os.environ, what)
    except SkillcError as problem:
        raise SkillcError(problem.message, hint="install it, or change `python`") from None
