"""The agent of a program: its program and its sandbox on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from skillc.doctor.report import Finding
from skillc.errors import SkillcError
from skillc.language.kinds import is_agent
from skillc.plan.schema import Plan
from skillc.sandbox.run import choose
from skillc.tasks.agents.installed import program_of
from skillc.tasks.agents.settings import AgentSettings


def check_agent(plan: Plan, root: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Report where the program of an agent is and what it runs in; nothing for other kinds of rollouts."""
    rollout = plan.task.rollout
    if not is_agent(rollout.kind):
        return
    try:
        yield Finding("installed", "ok", rollout.kind, program_of(plan, root, environ))
    except SkillcError as problem:
        yield Finding("installed", "missing", rollout.kind, problem.message, problem.hint)
    try:
        sandbox = choose(AgentSettings.of(rollout.settings).sandbox)
    except SkillcError as problem:
        yield Finding("installed", "missing", "sandbox", problem.message, problem.hint)
        return
    if sandbox == "unsafe":
        fix = "remove `sandbox = unsafe`"
        yield Finding("installed", "note", "sandbox", "none: the agent can read and change all of your files", fix)
    else:
        yield Finding("installed", "ok", "sandbox", sandbox)
