"""What rollouts of code and agents need of this machine: the program of the agent, and a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from skillc.doctor.report import Finding, Level
from skillc.errors import SkillcError
from skillc.language.kinds import is_agent
from skillc.plan.models import TARGET
from skillc.plan.schema import Plan
from skillc.sandbox.container import ENGINES, is_rootless
from skillc.sandbox.policy import IMAGE, DeclaredSandbox, Kind, declared_sandbox
from skillc.sandbox.run import CHOSEN, problem_of
from skillc.tasks.agents.installed import program_of
from skillc.text import joined

_GROUP = "sandbox"
_INSTALL = {
    "bubblewrap": "install the package `bubblewrap` of your system",
    "landlock": '`pip install "skillc[sandbox]"`',
    "docker": "install Docker, rootless if possible",
    "podman": "install Podman",
}
_STOPS = {
    "bubblewrap": "namespaces: no other files, processes or network",
    "landlock": "Landlock and seccomp: no other files or network",
}


def check_agent(plan: Plan, root: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Report where the program of an agent is; nothing for other kinds of rollouts."""
    rollout = plan.task.rollout
    if not is_agent(rollout.kind):
        return
    sandbox = declared_sandbox(rollout.settings.get("sandbox"))
    if sandbox.kind in ENGINES and problem_of(sandbox.kind, sandbox.image) is not None:
        # Its image cannot be asked; the line of the sandbox reports why.
        return
    try:
        yield Finding("installed", "ok", rollout.kind, program_of(plan, root, environ))
    except SkillcError as problem:
        yield Finding("installed", "missing", rollout.kind, problem.message, problem.hint)


def check_sandboxes(plan: Plan, problem: Callable[[Kind, str, bool], str | None] = problem_of) -> Iterator[Finding]:
    """Report each sandbox that the program could use; one that it declares and that does not work is missing.

    Args:
        plan: a program without rollouts of code or agents, and without tests of scripts, has no finding.
        problem: why a sandbox with an image does not work here, None if it does; whether it must reach hosts.
    """
    needs = dict(_needs(plan))
    for sandbox in needs.values():
        if sandbox.kind == "unsafe":
            detail = "`sandbox = unsafe`: code runs with your rights, and can read and change all of your files"
            yield Finding(_GROUP, "note", "unsafe", detail, "declare another sandbox, or remove the setting")
    needs = {user: each for user, each in needs.items() if each.kind != "unsafe"}
    if not needs:
        return
    problems: dict[tuple[Kind, str], str | None] = {(kind, IMAGE): problem(kind, IMAGE, False) for kind in CHOSEN}
    hosts = _reaches_hosts(plan)
    for sandbox in needs.values():
        if sandbox.kind in ENGINES:
            problems[sandbox.kind, sandbox.image] = problem(sandbox.kind, sandbox.image, hosts)
    best = next((kind for kind in CHOSEN if problems[kind, IMAGE] is None), None)
    for (kind, image), why in problems.items():
        declared = [u for u, each in needs.items() if each.kind == kind and (kind in CHOSEN or each.image == image)]
        if why is None:
            users = [*declared, *(u for u, each in needs.items() if each.kind is None and kind == best)]
            used = f"; {joined(users, 'and')} use it" if users else ""
            yield Finding(_GROUP, "ok", kind, f"{_describe(kind)}{used}")
        else:
            suffix = ", and the program declares it" if declared else ""
            level: Level = "missing" if declared else "note"
            yield Finding(_GROUP, level, kind, f"{why}{suffix}", _fix(kind, why))
    if best is None:
        for user, sandbox in needs.items():
            if sandbox.kind is None:
                detail = f"none works here, and {user} run nothing without one"
                yield Finding(_GROUP, "missing", "any", detail, _fix("bubblewrap", ""))


def _needs(plan: Plan) -> Iterator[tuple[str, DeclaredSandbox]]:
    """Yield what of a program runs in a sandbox, and which it declares."""
    rollout = plan.task.rollout
    if rollout.kind == "code" or is_agent(rollout.kind):
        yield "rollouts", declared_sandbox(rollout.settings.get("sandbox"))
    for section in plan.skill.sections:
        if section.tests is not None:
            yield f"the tests of `{section.file}`", declared_sandbox(section.tests.sandbox)


def _reaches_hosts(plan: Plan) -> bool:
    """Whether rollouts reach hosts: declared ones, or the model of an agent."""
    rollout = plan.task.rollout
    target = plan.models[TARGET]
    addressed = any((target.base_url, target.base_url_env, target.serve))
    return bool(rollout.settings.get("hosts")) or (is_agent(rollout.kind) and (addressed or rollout.kind != "command"))


def _describe(kind: Kind) -> str:
    if kind in ENGINES:
        return f"containers{', rootless' if is_rootless(kind) else ' of an engine with the rights of root'}"
    return _STOPS[kind]


def _fix(kind: Kind, why: str) -> str:
    _, pull, command = why.partition("; run ")
    return command if pull else _INSTALL[kind]
