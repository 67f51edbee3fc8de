"""What a kind of rollout is, and the registry of all kinds."""

from __future__ import annotations

import hashlib
import importlib
import json
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.skill import Document, digest, for_target, has_files
from skillc.errors import SkillcError
from skillc.models.calls import Completion
from skillc.models.client import Client
from skillc.outcomes import Example, UnmeasuredKind
from skillc.plan.company import NOBODY, Company
from skillc.plan.initial import task_text
from skillc.plan.schema import Plan
from skillc.text import listed
from skillc.tools.tool import Tool
from skillc.trajectories.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as a rollout gets it: the document, and the text that the target reads."""

    document: Document
    text: str

    @classmethod
    def of(cls, document: Document) -> Skill:
        """Return a document with its text."""
        return cls(document, for_target(document))

    def digest(self, load: Literal["always", "on_demand"]) -> str:
        """Return the sha256 of what a target can read of it: the text, and the description that makes it open it.

        Of a skill whose folder has more files, all that is in them.
        """
        if has_files(self.document):
            return digest(self.document)
        read = self.text if load == "always" else json.dumps([self.document.name, self.document.about, self.text])
        return hashlib.sha256(read.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Site:
    """Where rollouts run.

    Attributes:
        plan: its `task.rollout` has the arguments and settings of the kind.
        client: sends the calls of a rollout.
        role: the model that answers.
        root: the program's folder, where the user's functions and files are.
        note: reports something to the user.
        company: the skills beside the one of a rollout.
    """

    plan: Plan
    client: Client
    role: str
    root: Path
    note: Callable[[str], None] = lambda message: None
    company: Company = NOBODY

    def offered(self, skill: Skill | None) -> tuple[Document, ...]:
        """Return the skills that the target opens by itself, sorted by name, so that the one in training does not show.

        Empty with `load = always` and without other skills.
        """
        own = () if skill is None or self.plan.skill.load == "always" else (skill.document,)
        return tuple(sorted((*own, *self.company.offered), key=lambda document: document.name))

    def read_at_once(self, skill: Skill | None) -> str | None:
        """Return the text of the skill that the target reads from the start; None if it has to open it, or has none."""
        own = None if skill is None or self.plan.skill.load == "on_demand" else skill.text
        if not self.company.read:
            return own
        first = own if own is not None else task_text(self.plan.task)
        return "\n\n".join(text.strip() for text in (first, *map(for_target, self.company.read)))

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """The settings of the kind, as declared."""
        return self.plan.task.rollout.settings


class RolloutFailed(Exception):  # noqa: N818
    """A rollout was not measured, for a reason that is no fault of the skill: a server, an agent, an environment.

    Attributes:
        kind: the kind of failure.
        detail: its cause in one line.
    """

    def __init__(self, kind: UnmeasuredKind, detail: str = "") -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class RolloutKind(ABC):
    """A place where a skill is used. One object runs all rollouts of a run, many at once.

    Attributes:
        slots: the most rollouts at once; None for any number.
        opens: whether its targets can open skills by themselves, those of `site.offered`.
        folders: whether its targets get the skill's folder, and can open its files.
        scripts: whether its targets can run the skill's scripts, as all can that get its folder.
        tools: those of an agent, by which the emitted module runs without skillc.

    Raises:
        SkillcError: a setting is wrong, or this machine lacks what the kind needs.
    """

    slots: int | None = None
    opens: bool = False
    folders: bool = False
    scripts: bool = False
    tools: tuple[Tool, ...] = ()

    def __init__(self, site: Site) -> None:
        self.site = site

    @classmethod
    def source(cls, plan: Plan, root: Path) -> str:
        """Return a digest of the code beside skillc that decides what a rollout does; it belongs to the run."""
        return ""

    @abstractmethod
    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """Run one example with a skill, None for no skill, within the settings of the kind.

        Calls of models go through `site.client`; its caps are the budget. Files of a rollout are its own.

        Raises:
            RolloutFailed: an infrastructure failure.
            CallFailed, PermanentFailure, BudgetReached: from the models.
        """

    async def close(self) -> None:  # noqa: B027  # most kinds start nothing
        """End everything that the kind has started."""


def last_reply(completions: Sequence[Completion]) -> str:
    """Return the text of the last reply; empty without one."""
    return completions[-1].text if completions else ""


Key = TypeVar("Key")
Made = TypeVar("Made")


class Recent(OrderedDict[Key, Made]):
    """What was made for the keys that were used last, such as modules by the text of their skill."""

    _MOST = 64

    def of(self, key: Key, make: Callable[[], Made]) -> Made:
        """Return what was made for a key; make it if it is not there."""
        if key not in self:
            self.add(key, make())
        self.move_to_end(key)
        return self[key]

    def add(self, key: Key, made: Made) -> None:
        """Keep what was made for a key."""
        self[key] = made
        self.move_to_end(key)
        if len(self) > self._MOST:
            self.popitem(last=False)


Kind = TypeVar("Kind", bound=type[RolloutKind])

ENTRY_POINTS = "skillc.rollouts"
_KINDS: dict[str, type[RolloutKind]] = {}
# Loaded on use: some kinds import dspy, others an optional package.
_MODULES: Mapping[str, str] = {
    "predict": "skillc.tasks.one_turn",
    "chain_of_thought": "skillc.tasks.one_turn",
    "python": "skillc.tasks.function",
    "codex": "skillc.tasks.agents.codex",
    "opencode": "skillc.tasks.agents.opencode",
    "hermes": "skillc.tasks.agents.hermes",
    "claude_code": "skillc.tasks.agents.claude_code",
    "code": "skillc.tasks.code",
    "command": "skillc.tasks.agents.command",
    "environment": "skillc.tasks.environments.play",
    "harbor": "skillc.tasks.harbor.play",
    "react": "skillc.tasks.react",
}
PLUGIN = "plugin"
"""`rollout = plugin("name") { ... }` is a kind of another package."""


def rollout_kind(*names: str) -> Callable[[Kind], Kind]:
    """Register a class as the kind of rollout with these names."""

    def register(cls: Kind) -> Kind:
        for name in names:
            _KINDS[name] = cls
        return cls

    return register


def find_kind(plan: Plan) -> type[RolloutKind]:
    """Return the class of a plan's kind of rollout.

    Raises:
        SkillcError: no package provides it, or its package cannot be imported.
    """
    rollout = plan.task.rollout
    name = str(rollout.arguments[0]) if rollout.kind == PLUGIN else rollout.kind
    if name not in _KINDS:
        _load(name)
    if name not in _KINDS:
        known = sorted({*_MODULES, *_KINDS, *(each.name for each in entry_points(group=ENTRY_POINTS))})
        raise SkillcError(
            f"no installed package provides the kind of rollout `{name}`", hint=f"known kinds are {listed(known)}"
        )
    return _KINDS[name]


def _load(name: str) -> None:
    if name in _MODULES:
        importlib.import_module(_MODULES[name])
    for entry in entry_points(group=ENTRY_POINTS, name=name):
        try:
            _KINDS[name] = entry.load()
        except Exception as problem:
            raise SkillcError(
                f"the kind of rollout `{name}` of the package `{entry.dist.name if entry.dist else entry.value}` "
                f"cannot be imported: {problem}"
            ) from problem
