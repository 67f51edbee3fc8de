"""Rollouts by a function of the user, `rollout = python("my_agent:run")`: the agent that they already have."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from skillc.data.attachments import attachments
from skillc.document.skill_md import to_skill_md
from skillc.errors import SkillcError
from skillc.json_values import as_text
from skillc.models.dspy_lm import current_scope, make_lm
from skillc.models.failures import find_failure
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.tasks.answers import read_answer
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, rollout_kind
from skillc.text import listed
from skillc.trajectories.trajectory import Message, Trajectory
from skillc.user_code import ThreadExit, call_function, describe_exception, load_function, source_digest

ARGUMENTS = {
    "inputs": "value by input; an image or a file is its name",
    "files": "the absolute path of each image and file by its name",
    "skill": "the text of the skill; empty without one",
    "folder": "a folder with `NAME/SKILL.md`, as agents load skills; empty without a skill",
    "lm": "a `dspy.LM` of the target, whose calls are cached and charged to the run",
    "example": "the id of the example",
    "sample": "the number of the sample",
}
"""What a function is given of, by the names of its parameters."""
_SLOTS = 32


@rollout_kind("python")
class FunctionRollout(RolloutKind):
    """Calls a function for each rollout, on a thread unless it is a coroutine function.

    It returns the answer as a text or as value by output, or a `skillc.Trajectory`. `ConnectionError`, `TimeoutError`
    and other `OSError` make the rollout unmeasured; any other exception is a wrong answer with its reason.
    """

    slots = _SLOTS

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._function = load_function(self.name(site.plan), site.root, "agent")
        self._wanted = _parameters(self.name(site.plan), self._function)
        self._lm = make_lm(site.client, site.role)
        self._noted = False

    @staticmethod
    def name(plan: Plan) -> str:
        """Return the function's name, `module:function`."""
        return str(plan.task.rollout.arguments[0])

    @classmethod
    def source(cls, plan: Plan, root: Path) -> str:
        """As `RolloutKind.source`: the digest of the function and of the files that it imports."""
        name = cls.name(plan)
        return source_digest(name, load_function(name, root, "agent"), root)

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`."""
        attached = attachments(self.site.plan, example, self.site.root)
        with _installed(skill if "folder" in self._wanted else None) as folder:
            given = {
                "inputs": dict(attached.example.inputs),
                "files": {name: str(path) for name, path in attached.files.items()},
                "skill": skill.text if skill is not None else "",
                "folder": folder,
                "lm": self._lm,
                "example": example.id,
                "sample": sample,
            }
            try:
                returned = await call_function(self._function, **{name: given[name] for name in self._wanted})
            except Exception as raised:
                return self._failed(raised)
        return self._trajectory(returned)

    def _failed(self, raised: Exception) -> Trajectory:
        cause = raised.problem if isinstance(raised, ThreadExit) else raised
        if find_failure(cause) is not None or isinstance(raised, RolloutFailed):
            raise raised
        reason = describe_exception(cause, self.site.root, self._function)
        if isinstance(cause, OSError):
            raise RolloutFailed("agent", reason) from raised
        if not self._noted:
            self._noted = True
            self.site.note(f"`{self.name(self.site.plan)}` raised {reason}; such rollouts get the worst score")
        return Trajectory(_steps(), problem=f"the agent raised {reason}", turns=len(_steps()) or 1, outcome="failed")

    def _trajectory(self, returned: Any) -> Trajectory:
        if isinstance(returned, Mapping):
            returned = as_text(dict(returned))
        if isinstance(returned, str):
            steps = _steps()
            said = steps if steps and steps[-1].text == returned else (*steps, Message(returned))
            returned = Trajectory(said, turns=len(steps) or 1)
        if not isinstance(returned, Trajectory):
            raise SkillcError(
                f"`{self.name(self.site.plan)}` returned {type(returned).__name__}",
                hint="return a text, the value of each output by name, or a `skillc.Trajectory`",
            )
        if returned.answer is not None or returned.problem is not None:
            return returned
        answer, problem = read_answer(self.site.plan.task, returned.reply)
        return replace(returned, answer=answer, problem=problem)


def _steps() -> tuple[Message, ...]:
    """The replies of the rollout's calls so far."""
    return tuple(Message(completion.text) for completion in current_scope().completions if completion.text)


def _parameters(name: str, function: Any) -> tuple[str, ...]:
    """Return which arguments the function takes.

    Raises:
        SkillcError: it requires another one.
    """
    wanted = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            return tuple(ARGUMENTS)
        if parameter.name in ARGUMENTS and parameter.kind is not parameter.POSITIONAL_ONLY:
            wanted.append(parameter.name)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
            raise SkillcError(
                f"`{name}` requires `{parameter.name}`, which no rollout has",
                hint=f"its parameters may be {listed(ARGUMENTS)}",
            )
    return tuple(wanted)


@contextmanager
def _installed(skill: Skill | None) -> Iterator[str]:
    """Write a skill as agents load it, for the time of a rollout."""
    if skill is None:
        yield ""
        return
    with TemporaryDirectory(prefix="skillc-") as folder:
        place = Path(folder) / skill.document.name
        place.mkdir()
        (place / "SKILL.md").write_text(to_skill_md(skill.document), encoding="utf-8")
        yield folder
