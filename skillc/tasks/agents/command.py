"""`rollout = command("...")`: any agent with a command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from skillc.json_values import digest
from skillc.language.commands import fill_placeholders, placeholders
from skillc.models.backends.command import AnswerMissing, take_answer
from skillc.plan.schema import Plan
from skillc.processes.command import CommandResult
from skillc.tasks.agents.agent import KEY, AgentRollout, Job, Launch, argument
from skillc.tasks.agents.installed import words_of
from skillc.tasks.agents.report import Report, Unreadable, all_known, nano, object_of, usage_of
from skillc.tasks.agents.workspace import digest_of
from skillc.tasks.kind import rollout_kind
from skillc.trajectories.trajectory import Trajectory

_SKILLS = ".agents/skills"
REPORT = "report.json"


@rollout_kind("command")
class CommandAgent(AgentRollout):
    """Runs the declared words; the prompt is on standard input unless a word contains it.

    The agent may write a report to `{report}`, a JSON object: `usage {input, cached, output}`, `cost` in dollars,
    `turns`, `steps` as in a trajectory, and `error`, which makes the rollout unmeasured.
    """

    needs_address: ClassVar[bool] = False

    @classmethod
    def source(cls, plan: Plan, root: Path) -> str:
        """As `RolloutKind.source`: also the files beside the program that the command names."""
        named = [digest_of(path) for path in _named(words_of(plan), root)]
        return digest([super().source(plan, root), *named])

    def further_reads(self) -> list[Path]:
        """As `AgentRollout.further_reads`: the files that the words name by `{here}`."""
        return _named(words_of(self.site.plan), self.site.root)

    def launch(self, job: Job) -> Launch:
        """As `AgentRollout.launch`; the skills are in `.agents/skills` of the home."""
        words = words_of(self.site.plan)
        skill = job.install(_SKILLS)
        values: dict[str, Callable[[], str]] = {
            "prompt": lambda: argument(job.prompt),
            "workspace": lambda: job.workspace.seen,
            "home": lambda: job.workspace.seen_home,
            "model": lambda: job.model.name,
            "base_url": lambda: job.model.url,
            "here": lambda: str(self.site.root.resolve()),
            "skill": lambda: skill,
            "report": lambda: f"{job.workspace.seen_home}/{REPORT}",
        }
        has_prompt = any("prompt" in placeholders(word) for word in words)
        return Launch(
            [fill_placeholders(word, lambda name: values[name]()) for word in words[1:]],
            {KEY: job.model.key},
            None if has_prompt else job.prompt.encode(),
        )

    def report(self, result: CommandResult, job: Job) -> Report:
        """As `AgentRollout.report`."""
        given = _written(job.workspace.home / REPORT)
        usage = object_of(given.get("usage"))
        counts = usage_of(usage.get("input"), usage.get("output"), cached=usage.get("cached"))
        error, turns = given.get("error"), given.get("turns")
        reply = ""
        if not error and not result.status:
            try:
                reply = take_answer(self.settings.answer, result.stdout, job.workspace.folder)
            except AnswerMissing as problem:
                raise Unreadable(str(problem)) from None
        return Report(
            reply=reply,
            steps=_steps(given.get("steps")),
            usages=all_known([counts]),
            cost=nano(given.get("cost")),
            turns=turns if isinstance(turns, int) else 1,
            failure=str(error) if error else None,
        )


def _named(words: tuple[str, ...], root: Path) -> list[Path]:
    """The files and folders that words name by `{here}/`."""
    found = []
    for word in words:
        _, here, rest = word.partition("{here}/")
        path = root.resolve() / rest
        if here and rest and path.exists():
            found.append(path)
    return found


def _written(file: Path) -> dict[str, Any]:
    """The report of the agent, empty if it wrote none."""
    if file.is_symlink() or not file.is_file():
        return {}
    try:
        value = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        raise Unreadable("its report is no JSON") from None
    if not isinstance(value, dict):
        raise Unreadable("its report is no JSON object")
    return value


def _steps(given: object) -> tuple[Any, ...]:
    if given is None:
        return ()
    try:
        return Trajectory.from_json({"steps": given}).steps
    except (TypeError, KeyError, ValueError):
        raise Unreadable("the steps of its report are not those of a trajectory") from None
