"""Runs the tests of a skill's scripts in the sandbox, each in a copy of the skill's folder that only it has.

The folder has the scripts and the files that the skill keeps, and the tests at their own path; not SKILL.md and the
sections in files, so that the result depends on code alone.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.document.skill import Document, script_sections
from skillc.errors import SkillcError
from skillc.json_values import canonical, fields_of
from skillc.plan.digest import digest_of_files, read_tests
from skillc.plan.schema import Plan, SectionPlan, TestsPlan
from skillc.processes.command import CommandResult, temporary_folder
from skillc.redaction import NOTHING, Redactor
from skillc.sandbox.policy import declared_sandbox
from skillc.skill_files import collision, write_folder
from skillc.tasks import run_tests
from skillc.tasks.agents.workspace import Workspace
from skillc.tasks.programs import Programs, SandboxFailed, code_of, default_limits

SHOWN = 400
"""Tokens of the output of failed tests that the optimizer reads."""
_RUNNER = "run_tests.py"
# `Ran 3 tests in 0.012s`: an output that differs between runs would be a prompt that is paid for again.
_SECONDS = re.compile(r"\b\d+(?:\.\d+)? ?(?:s|ms|sec|seconds)\b")


class ScriptTests:
    """The tests of all scripts that a program trains, as they are when the run begins.

    `note` reports something to the user, `hide` redacts declared secrets.

    Raises:
        SkillcError: tests cannot be read, or a sandbox that they need does not work here.
    """

    def __init__(
        self, plan: Plan, root: Path, note: Callable[[str], None] = lambda message: None, hide: Redactor = NOTHING
    ) -> None:
        self._hide = hide
        self._suites = {
            section.name: _Suite.of(section, section.tests, root)
            for section in plan.skill.sections
            if section.tests is not None
        }
        if any(suite.programs.kind == "unsafe" for suite in self._suites.values()):
            note("the tests of scripts run without a sandbox: the code of a model can read and change all your files")

    def keys(self, document: Document) -> Mapping[str, str]:
        """Return by script a digest of all that its result depends on: the code of the skill, and its tests."""
        code = digest_of_files(code_of(document))
        return {
            each.name: hashlib.sha256(f"{code} {self._suites[each.name].digest}".encode()).hexdigest()
            for each in script_sections(document)
            if each.name in self._suites
        }

    async def run(self, document: Document, name: str) -> str:
        """Run the tests of a script and return what failed; empty if all tests passed.

        Raises:
            SandboxFailed: they could not be run, which is no fault of the script.
        """
        section, suite = document.section(name), self._suites[name]
        assert section is not None
        assert section.file is not None
        if not section.rules:
            return f"`{section.file}` is empty"
        return self._hide.message(await suite.problem(section.file, code_of(document)))

    @property
    def sources(self) -> Mapping[str, str]:
        """The tests that the optimizer may read, as markdown, by the name of their script."""
        return {name: suite.source for name, suite in self._suites.items() if suite.plan.shown}


@dataclass(frozen=True, slots=True)
class _Suite:
    """The tests of one script; `files` are their contents by path."""

    plan: TestsPlan
    files: Mapping[str, bytes]
    programs: Programs

    @classmethod
    def of(cls, section: SectionPlan, plan: TestsPlan, root: Path) -> _Suite:
        programs = Programs(
            declared_sandbox(plan.sandbox, default_limits()),
            root,
            what=f"the tests of `{section.name}`",
            python=plan.python,
            reads=plan.reads,
        )
        return cls(plan, read_tests(plan, root), programs)

    @property
    def digest(self) -> str:
        """A digest of the tests and of how they are run, without the kind of the sandbox."""
        settings = {name: value for name, value in fields_of(self.plan).items() if name not in ("shown", "sandbox")}
        limits = fields_of(self.programs.declared.limits)
        return hashlib.sha256(f"{canonical(settings)} {limits} {digest_of_files(self.files)}".encode()).hexdigest()

    @property
    def source(self) -> str:
        """The tests as markdown."""
        blocks = []
        for name, content in self.files.items():
            text = content.decode(errors="replace")
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`{3,}", text)), default=0))
            blocks.append(f"{name}:\n{fence}\n{text.rstrip()}\n{fence}")
        return "\n".join(blocks)

    async def problem(self, script: str, code: Mapping[str, bytes]) -> str:
        """Return what is wrong with a script, empty if its tests pass.

        Raises:
            SandboxFailed: as `ScriptTests.run`.
        """
        clash = collision([*code, *self.files])
        if clash is not None:
            raise SkillcError(f"the tests and the skill cannot have `{clash[0]}` and `{clash[1]}` in one folder")
        async with temporary_folder() as place:
            try:
                workspace = Workspace.make(place, self.programs.kind)
                write_folder(workspace.folder, {**code, **self.files}, lasting=False)
                runner = workspace.write(_RUNNER, Path(run_tests.__file__).read_text(encoding="utf-8"))
            except OSError as problem:
                raise SandboxFailed(f"no folder for the tests can be made: {problem}") from None
            word = secrets.token_hex(16)
            start = [self.programs.python, runner, word, script]
            if not self.plan.command:
                return await self._run(workspace, [*start, self.plan.path], script, word)
            parsed = await self._run(workspace, start, script, word) if script.endswith(".py") else ""
            return parsed or await self._run(workspace, self.plan.command, script, None)

    async def _run(self, workspace: Workspace, words: Sequence[str], script: str, word: str | None) -> str:
        """Run a command and return its problem; with a word, it must be the last that it prints."""
        modules = f"{workspace.seen}/{posixpath.dirname(script)}:{workspace.seen}"
        result = await self.programs.run(workspace, words, modules)
        ended = result.why == "ended" and result.status == 0
        if ended and (word is None or result.stdout.decode(errors="replace").rstrip("\n").rpartition("\n")[2] == word):
            return ""
        return self._described(result, workspace)

    def _described(self, result: CommandResult, workspace: Workspace) -> str:
        printed = (self.programs.shown(each, workspace, SHOWN) for each in (result.stdout, result.stderr))
        texts = [_SECONDS.sub("... s", each) for each in printed]
        if result.why != "ended":
            texts.insert(0, self.programs.stopped(result))
        elif result.status == 0:
            texts.insert(0, "the tests ended early: the script ended the process that runs them")
        elif not any(texts):
            texts.append(f"the tests ended with status {result.status} and printed nothing")
        return "\n".join(text for text in texts if text)
