"""Run the tests of a skill's scripts; a version that fails them is rejected before any rollout uses it.

Test results are recorded like outcomes, so that a resumed run makes the same decisions. If tests cannot be run, there
is no result: the proposal waits, or its candidate stays undecided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from skillc.dataclass import dataclass
from skillc.document.edits import Add, Edit, apply_edits
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.models.concurrency import SingleFlight
from skillc.optimize.host import Record, Unrecorded, Value
from skillc.tasks.programs import SandboxFailed

if TYPE_CHECKING:
    from skillc.tasks.script_tests import ScriptTests

ATTEMPTS = 3
"""Number of attempts if the sandbox does not start the tests."""


@dataclass(frozen=True, slots=True)
class ScriptVerdict:
    """Whether the scripts of a skill pass their tests.

    Attributes:
        problem: the script that fails, with the output of its tests; empty if all pass.
        unmeasured: whether tests could not be run, so that the scripts may be right or wrong.
    """

    problem: str = ""
    unmeasured: bool = False

    @property
    def passed(self) -> bool:
        """Whether all tests passed."""
        return not self.problem

    @property
    def summary(self) -> str:
        """The problem on one line, without the traceback."""
        return self.problem.split("\n")[0].strip()


PASSED = ScriptVerdict()


class TestedScripts:
    """The tests of a program's scripts; each version of the code is tested once.

    Args:
        tests: None if the program trains no script, so that every skill passes.
        record: the recorded results of a resumed run.
    """

    __test__ = False

    def __init__(self, tests: ScriptTests | None = None, record: Record | None = None) -> None:
        self._tests = tests
        self._record = record or Unrecorded()
        self._known: dict[str, str] = {}
        self._flights: SingleFlight[str, str] = SingleFlight()

    @property
    def sources(self) -> Mapping[str, str]:
        """The tests that the optimizer may read, by the section of their script."""
        return self._tests.sources if self._tests is not None else MappingProxyType({})

    async def check(self, document: Document, *, first: bool = False) -> ScriptVerdict:
        """Test the scripts of a skill: all of them if one changed, because they may import each other.

        `first` is the skill that the run begins with: a failure is not recorded, because the user will fix it.
        """
        if self._tests is None:
            return PASSED
        for name, key in self._tests.keys(document).items():
            section = document.section(name)
            file = section.file if section is not None else name
            try:
                problem = await self._result(document, name, key, first=first)
            except SandboxFailed as failure:
                return ScriptVerdict(f"the tests of `{file}` could not be run: {failure.detail}", unmeasured=True)
            if problem:
                return ScriptVerdict(f"`{file}` fails its tests: {problem}")
        return PASSED

    async def require(self, initial: Document) -> None:
        """Check the scripts of the run's initial skill.

        Raises:
            SkillcError: a script fails its tests, or they cannot be run.
        """
        verdict = await self.check(initial, first=True)
        if verdict.unmeasured:
            raise SkillcError(verdict.problem, hint="`skillc doctor` shows which sandboxes work here")
        if not verdict.passed:
            hint = "fix the script, or its tests; the run begins with a script that passes them"
            raise SkillcError(verdict.problem, hint=hint)

    async def _result(self, document: Document, name: str, key: str, *, first: bool) -> str:
        if key not in self._known:
            self._known[key] = await self._flights.join(key, lambda: self._recorded(document, name, key, first=first))
        return self._known[key]

    async def _recorded(self, document: Document, name: str, key: str, *, first: bool) -> str:
        tests = self._tests
        assert tests is not None

        async def work() -> tuple[Value, bool]:
            detail = ""
            for _ in range(ATTEMPTS):
                try:
                    problem = await tests.run(document, name)
                except SandboxFailed as failure:
                    detail = failure.detail
                else:
                    return {"problem": problem}, not (first and problem)
            return {"failed": detail}, False

        value: Any = await self._record.step().once(["script tests", key], work)
        if "failed" in value:
            raise SandboxFailed(str(value["failed"]))
        return str(value["problem"])


UNTESTED = TestedScripts()
"""For programs that train no script."""


def changes_script(document: Document, edit: Edit) -> bool:
    """Return whether an edit changes a script."""
    section = document.section(edit.section) if isinstance(edit, Add) else document.section_of(edit.rule)
    return section is not None and section.is_script


def without_scripts(document: Document, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return the edits that change no script, if all of them apply to the skill; otherwise none."""
    left = tuple(edit for edit in edits if not changes_script(document, edit))
    return left if all(report.applied for report in apply_edits(document, left).results) else ()
