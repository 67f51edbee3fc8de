"""The agent of a program: where its program is on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from skillc.doctor.report import Finding
from skillc.errors import SkillcError
from skillc.language.kinds import is_agent
from skillc.plan.schema import Plan
from skillc.tasks.agents.installed import program_of


def check_agent(plan: Plan, root: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Report where the program of an agent is; nothing for other kinds of rollouts."""
    rollout = plan.task.rollout
    if not is_agent(rollout.kind):
        return
    try:
        yield Finding("installed", "ok", rollout.kind, program_of(plan, root, environ))
    except SkillcError as problem:
        yield Finding("installed", "missing", rollout.kind, problem.message, problem.hint)
