"""Rollouts by a function of the user, `rollout = python("my_agent:run")`: the agent that they already have."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from skillc.data.attachments import attachments
from skillc.document.folder import files_of
from skillc.document.offer import shown_descriptions
from skillc.document.skill import Document, for_target
from skillc.errors import SkillcError
from skillc.json_values import as_text
from skillc.models.dspy_lm import make_lm
from skillc.models.failures import find_failure
from skillc.models.scope import current_scope
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.skill_files import write_folder
from skillc.tasks.answers import read_answer
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, rollout_kind
from skillc.tasks.opening import Openings
from skillc.text import listed
from skillc.trajectories.signals import opened_skills
from skillc.trajectories.trajectory import Message, Step, Trajectory
from skillc.user_code import ThreadExit, call_function, describe_exception, load_function, source_digest

ARGUMENTS = {
    "inputs": "value by input; an image or a file is its name",
    "files": "the absolute path of each image and file by its name",
    "skill": "the text of the skill, with links to its files if `folder` is a parameter too; empty without one",
    "skills": "description by name of the skills that the agent may open, with `load = on_demand`",
    "open_skill": "a function that returns the text of such a skill by its name, and records that it was opened",
    "folder": "a folder with `NAME/SKILL.md` and its files, as agents load skills; empty without a skill",
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
    opens = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._function = load_function(self.name(site.plan), site.root, "agent")
        self._wanted = _parameters(self.name(site.plan), self._function)
        if site.plan.skill.load == "on_demand" and "skill" in self._wanted and "skills" not in self._wanted:
            raise SkillcError(
                f"`{self.name(site.plan)}` takes `skill`, the text of a skill that is always read",
                hint="with `load = on_demand` take `skills` and `open_skill`, or `folder`",
            )
        self.folders = "folder" in self._wanted
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
        offered, loaded = self.site.offered(skill), self.site.read_at_once(skill)
        installed = offered if skill is None or loaded is None else (skill.document, *offered)
        openings = _Openings(offered)
        text = ""
        if skill is not None and loaded is not None:
            # With `folder`, sections in files are links, which the function can open.
            text = for_target(skill.document, linked=True) if self.folders else skill.text
        with _installed(installed if self.folders else ()) as folder:
            given = {
                "inputs": dict(attached.example.inputs),
                "files": {name: str(path) for name, path in attached.files.items()},
                "skill": text,
                "skills": dict(shown_descriptions(offered)),
                "open_skill": openings,
                "folder": folder,
                "lm": self._lm,
                "example": example.id,
                "sample": sample,
            }
            try:
                returned = await call_function(self._function, **{name: given[name] for name in self._wanted})
            except Exception as raised:
                return self._failed(raised, openings)
        return self._trajectory(returned, openings)

    def _failed(self, raised: Exception, openings: _Openings) -> Trajectory:
        cause = raised.problem if isinstance(raised, ThreadExit) else raised
        if find_failure(cause) is not None or isinstance(raised, RolloutFailed):
            raise raised
        reason = describe_exception(cause, self.site.root, self._function)
        if isinstance(cause, OSError):
            raise RolloutFailed("agent", reason) from raised
        if not self._noted:
            self._noted = True
            self.site.note(f"`{self.name(self.site.plan)}` raised {reason}; such rollouts get the worst score")
        turns = len(current_scope().completions) or 1
        return Trajectory(openings.steps(), problem=f"the agent raised {reason}", turns=turns, outcome="failed")

    def _trajectory(self, returned: Any, openings: _Openings) -> Trajectory:
        if isinstance(returned, Mapping):
            returned = as_text(dict(returned))
        if isinstance(returned, str):
            steps = openings.steps()
            said = steps if steps and steps[-1] == Message(returned) else (*steps, Message(returned))
            returned = Trajectory(said, turns=len(current_scope().completions) or 1)
        elif isinstance(returned, Trajectory) and not opened_skills(returned):
            returned = replace(returned, steps=(*openings.recorded, *returned.steps))
        if not isinstance(returned, Trajectory):
            raise SkillcError(
                f"`{self.name(self.site.plan)}` returned {type(returned).__name__}",
                hint="return a text, the value of each output by name, or a `skillc.Trajectory`",
            )
        if returned.answer is not None or returned.problem is not None:
            return returned
        answer, problem = read_answer(self.site.plan.task, returned.reply)
        return replace(returned, answer=answer, problem=problem)


class _Openings:
    """The argument `open_skill`: opens a skill, and records after how many replies of the model."""

    def __init__(self, offered: Sequence[Document]) -> None:
        self._openings = Openings(offered)
        self._after: list[int] = []

    def __call__(self, name: str) -> str:
        self._after.append(len(current_scope().completions))
        return self._openings.open(name).text

    @property
    def recorded(self) -> tuple[Step, ...]:
        """The calls and what they returned."""
        return tuple(self._openings.steps)

    def steps(self) -> tuple[Step, ...]:
        """The replies of the rollout's calls so far, and the skills that were opened between them."""
        opened = [self._openings.steps[2 * i : 2 * i + 2] for i in range(len(self._after))]
        texts = [completion.text for completion in current_scope().completions]
        found: list[Step] = []
        for i in range(len(texts) + 1):
            found += [step for after, steps in zip(self._after, opened, strict=True) if after == i for step in steps]
            found += [Message(text) for text in texts[i : i + 1] if text]
        return tuple(found)


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
def _installed(skills: Sequence[Document]) -> Iterator[str]:
    """Write skills as agents load them, for the time of a rollout."""
    if not skills:
        yield ""
        return
    with TemporaryDirectory(prefix="skillc-") as folder:
        for skill in skills:
            write_folder(Path(folder) / skill.name, files_of(skill), lasting=False)
        yield folder
