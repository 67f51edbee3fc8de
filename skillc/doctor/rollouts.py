"""What rollouts of code and agents need of this machine: the program of the agent, and a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from skillc.doctor.report import Finding
from skillc.errors import SkillcError
from skillc.language.kinds import is_agent
from skillc.plan.schema import Plan
from skillc.sandbox.container import ENGINES, is_rootless
from skillc.sandbox.declared import declared_sandbox
from skillc.sandbox.policy import Kind
from skillc.sandbox.run import CHOSEN, problem_of
from skillc.tasks.agents.installed import program_of

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


def check_sandboxes(plan: Plan, problem: Callable[[Kind, str], str | None] = problem_of) -> Iterator[Finding]:
    """Report each sandbox that the program could use; one that it declares and that does not work is missing.

    Args:
        plan: a program without rollouts of code or agents has no finding.
        problem: why a sandbox with an image does not work here, None if it does.
    """
    rollout = plan.task.rollout
    if rollout.kind != "code" and not is_agent(rollout.kind):
        return
    sandbox = declared_sandbox(rollout.settings.get("sandbox"))
    declared, image = sandbox.kind, sandbox.image
    if declared == "unsafe":
        detail = "`sandbox = unsafe`: code runs with your rights, and can read and change all of your files"
        yield Finding(_GROUP, "note", "unsafe", detail, "declare another sandbox, or remove the setting")
        return
    works: list[Kind] = []
    findings = []
    for kind in CHOSEN if declared is None else (*CHOSEN, *(each for each in ENGINES if each == declared)):
        why = problem(kind, image)
        if why is None:
            works.append(kind)
            used = kind == declared or (declared is None and works == [kind])
            findings.append(Finding(_GROUP, "ok", kind, f"{_describe(kind)}{'; rollouts use it' if used else ''}"))
        else:
            missing = kind == declared
            suffix = ", and the program declares it" if missing else ""
            findings.append(Finding(_GROUP, "missing" if missing else "note", kind, f"{why}{suffix}", _fix(kind, why)))
    yield from findings
    if declared is None and not works:
        detail = "none works here, and rollouts run nothing without one"
        yield Finding(_GROUP, "missing", "any", detail, _fix("bubblewrap", ""))


def _describe(kind: Kind) -> str:
    if kind in ENGINES:
        return f"containers{', rootless' if is_rootless(kind) else ' of an engine with the rights of root'}"
    return _STOPS[kind]


def _fix(kind: Kind, why: str) -> str:
    _, pull, command = why.partition("; run ")
    return command if pull else _INSTALL[kind]
