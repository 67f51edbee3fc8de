"""All checks, in the order in which a user would ask: installation, program, models, cost, disk, memory."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from skillc import __version__
from skillc.budget.bounds import Bounds
from skillc.budget.call_sizes import CallSizer
from skillc.budget.spend import Spend, price_hint
from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Severity
from skillc.doctor.machine import free_disk, machine_here
from skillc.doctor.reach import CallResults, PreparedCalls
from skillc.doctor.report import Finding, Level
from skillc.doctor.servers import check_servers, check_vllm
from skillc.errors import SkillcError
from skillc.frontend import Estimated, Planned, UnfitDataError, estimate
from skillc.gates import units
from skillc.language.rollouts import is_agent
from skillc.models.cache import DATABASE
from skillc.models.cache_folder import disk_used
from skillc.models.endpoint import KEY_VARIABLES
from skillc.models.prices import price_table
from skillc.plan.models import TARGET
from skillc.plan.schema import Plan
from skillc.run.folder import RunFolder
from skillc.sandbox.container import ENGINES, is_rootless
from skillc.sandbox.policy import IMAGE, DeclaredSandbox, Kind, declared_sandbox
from skillc.sandbox.run import CHOSEN, problem_of
from skillc.tasks.agents.installed import program_of
from skillc.text import counted, in_bytes, joined

_INSTALLED, _SANDBOX, _COST, _DISK = "installed", "sandbox", "cost", "disk"
_GROUPS = (_INSTALLED, "program", _SANDBOX, "models", _COST, _DISK, "memory")
# Extras by the setting of `method` that needs them, with their packages.
_EXTRAS = {"gepa": "gepa", "miprov2": "optuna"}
# Bytes of a call beside its text, in the cache and the run folder together (1,155 were measured with replies of 20
# tokens), and of a token's text, which is in both.
_A_CALL, _A_TOKEN = 1_200, 2 * 5


@dataclass(frozen=True, slots=True)
class ExaminedProgram:
    """A program with the findings about it, and its estimate if its data could be read."""

    planned: Planned
    estimated: Estimated | None
    findings: tuple[Finding, ...]


def check_installation(folder: Path) -> list[Finding]:
    """Check everything that needs no program, in a folder."""
    return [*check_packages(None), check_vllm(folder), check_keys(), *_check_machine()]


def examine_program(planned: Planned) -> ExaminedProgram:
    """Read a program's data; each problem that would block a compile there becomes a finding."""
    findings = [
        Finding("program", "missing", "version", f"{feature.what} needs skillc {feature.version}", "remove it")
        for feature in planned.checked.unsupported
    ]
    try:
        estimated = estimate(planned)
    except SkillcError as problem:
        causes = problem.diagnostics if isinstance(problem, UnfitDataError) else (problem,)
        findings += [Finding("program", "missing", "data", cause.message, cause.hint) for cause in causes]
        return ExaminedProgram(planned, None, tuple(findings))
    findings += [
        Finding("program", "missing", "budget", found.message, found.hint)
        for found in estimated.diagnostics
        if found.severity is Severity.ERROR
    ]
    sizes = estimated.sizes
    splits = f"{sizes.train:,} training, {sizes.validation:,} validation and {sizes.test:,} test examples"
    return ExaminedProgram(planned, estimated, (*findings, Finding("program", "ok", "data", splits)))


def check_program(
    program: ExaminedProgram, calls: PreparedCalls, results: CallResults, environ: Mapping[str, str] = os.environ
) -> list[Finding]:
    """Return all findings about a program, by group."""
    plan, root, estimated = program.planned.plan, program.planned.root, program.estimated
    served = list(check_servers(plan, root, results.roles, environ))
    models = [_without_weights(finding, served) for finding in (*calls.findings, *results.findings)]
    roles = list(plan.models)
    findings = [
        *check_packages(plan),
        *check_agent(plan, root, environ),
        *program.findings,
        *sorted(models, key=lambda finding: roles.index(finding.what)),
        *check_prices(plan),
        *(check_spend(plan, estimated) if estimated is not None else ()),
        check_disk(plan, root / ".skillc", estimated.bounds if estimated is not None else None),
        *check_sandboxes(plan),
    ]
    return sorted([*findings, *served], key=lambda finding: _GROUPS.index(finding.group))


def _without_weights(finding: Finding, served: Sequence[Finding]) -> Finding:
    """Report a model that skillc would serve as missing if its weights are missing."""
    role = f"`{finding.what}`"
    lacks = any(each.group == "disk" and each.level == "missing" and role in each.what for each in served)
    if not lacks or finding.level == "missing" or "served by skillc" not in finding.detail:
        return finding
    return replace(finding, level="missing", detail=f"{finding.detail}, and its weights are missing", fix="see `disk`")


def _check_machine() -> Iterator[Finding]:
    machine = machine_here()
    if not machine.gpus:
        yield Finding("memory", "ok", "GPU", "none in `nvidia-smi`; servers that skillc starts run on the CPU")
    for number, gpu in enumerate(machine.gpus):
        memory = f"{in_bytes(gpu.free)} of {in_bytes(gpu.total)} free"
        yield Finding("memory", "ok", f"GPU {number}", f"{gpu.name}, {memory}")
    if machine.memory is not None:
        free, total = in_bytes(machine.memory.free), in_bytes(machine.memory.total)
        yield Finding("memory", "ok", "memory", f"{free} of {total} free")


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, or None, without importing it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def check_packages(plan: Plan | None, find: Callable[[str], str | None] = installed_version) -> Iterator[Finding]:
    """Check Python and the packages; a missing package that the program does not need is a note."""
    yield Finding(_INSTALLED, "ok", "python", f"{platform.python_version()} at {sys.executable}")
    yield Finding(_INSTALLED, "ok", "skillc", __version__)
    with suppress(PackageNotFoundError):
        for requirement in map(Requirement, requires("skillc") or ()):
            if requirement.marker is None:
                yield _package(requirement, find(requirement.name))
    for method, package in _EXTRAS.items():
        yield _extra(method, package, find(package), plan)
    shared = sys.platform != "win32"
    calls = "share" if shared else "do not share"
    detail = f"SQLite {sqlite3.sqlite_version}; processes with one cache {calls} calls in flight"
    yield Finding(_INSTALLED, "ok" if shared else "note", "cache", detail)


def _package(requirement: Requirement, found: str | None) -> Finding:
    name = requirement.name
    if found is not None and requirement.specifier.contains(found, prereleases=True):
        return Finding(_INSTALLED, "ok", name, found)
    detail = "not installed" if found is None else f"{found}, and skillc needs {requirement.specifier}"
    return Finding(_INSTALLED, "missing", name, detail, f'pip install "{name}{requirement.specifier}"')


def _extra(method: str, package: str, found: str | None, plan: Plan | None) -> Finding:
    if found is not None:
        return Finding(_INSTALLED, "ok", package, f"{found}, for `method = {method}`")
    install = f'pip install "skillc[{method}]"'
    if plan is not None and plan.optimize.method == method:
        detail = f"not installed, and the program's `method = {method}` needs it"
        return Finding(_INSTALLED, "missing", package, detail, install)
    return Finding(_INSTALLED, "note", package, f"not installed; only `method = {method}` needs it", install)


def check_keys(environ: Mapping[str, str] = os.environ) -> Finding:
    """Report which provider keys are set in the environment, by the names of their variables."""
    known = [name for name in KEY_VARIABLES.values() if environ.get(name)]
    if known:
        return Finding("models", "ok", "keys", f"set: {', '.join(known)}")
    return Finding("models", "note", "keys", "no provider's key is set; `--offline` and your own servers need none")


def check_prices(plan: Plan) -> Iterator[Finding]:
    """Report the price of each role's model per million tokens, or per call."""
    capped = plan.budget.cost is not None
    for role, price in price_table(plan).items():
        model = plan.models[role]
        if price is None:
            detail = f"the price of `{model.model}` is unknown" + (", and the budget caps the cost" if capped else "")
            yield Finding(_COST, "missing" if capped else "note", role, detail, price_hint(model))
            continue
        rates = []
        if price.input or price.output:
            entry, reply = units.dollars(price.input), units.dollars(price.output)
            rates.append(f"{entry} in, {reply} out per million tokens at most")
        if price.call:
            rates.append(f"{units.dollars(price.call)} a call")
        yield Finding(_COST, "ok", role, f"`{model.model}`: {joined(rates) or 'free'}")


def check_spend(plan: Plan, estimated: Estimated) -> Iterator[Finding]:
    """Report the estimated cost of one rollout with its judges, and of the whole compile."""
    bounds = estimated.bounds
    one = CallSizer(plan, bounds.sizes, bounds.prices, bounds.steps).all().rollout.estimate
    detail = f"{_about(one)}: {counted(one.calls, 'call')}, {units.tokens(one.tokens)} tokens"
    yield Finding(_COST, "ok", "one rollout", detail)
    whole = bounds.total.estimate
    cap = f"; the budget ends it at {units.dollars(plan.budget.cost)}" if plan.budget.cost is not None else ""
    detail = f"{_about(whole)}: {whole.calls:,} calls, {units.tokens(whole.tokens)} tokens{cap}"
    yield Finding(_COST, "ok", "a compile", detail)


def _about(spend: Spend) -> str:
    if spend.cost is None:
        return "at an unknown price"
    return f"about {units.dollars(spend.cost)}" if spend.cost else "free"


def check_disk(plan: Plan, home: Path, bounds: Bounds | None) -> Finding:
    """Check the free disk space for what a compile writes into its `.skillc` folder."""
    cache = RunFolder(home, "").cache
    free = free_disk(home)
    if not os.access(next((each for each in (home, *home.parents) if each.exists()), home), os.W_OK):
        fix = f"chmod u+w {home if home.exists() else home.parent}"
        return Finding(_DISK, "missing", "run folder", f"{home} cannot be written", fix)
    kept = f"; {in_bytes(disk_used(cache))} of replies are cached" if (cache / DATABASE).is_file() else ""
    if free is None or bounds is None:
        return Finding(_DISK, "note", "run folder", f"the free space in {home} is unknown{kept}")
    need = most_written(plan, bounds)
    detail = f"about {in_bytes(need)} for a compile, {in_bytes(free)} are free in {home}{kept}"
    if need > free:
        return Finding(_DISK, "missing", "run folder", detail, f"skillc cache prune {home.parent} --older-than 30d")
    return Finding(_DISK, "ok", "run folder", detail)


def most_written(plan: Plan, bounds: Bounds) -> int:
    """Return the maximum bytes that a compile writes, by the plan's estimate and caps."""
    estimate = bounds.total.estimate
    calls = min(estimate.calls, plan.budget.calls) if plan.budget.calls is not None else estimate.calls
    return calls * _A_CALL + estimate.reply * _A_TOKEN


# ---- what rollouts of code and agents need: the program of the agent, and a sandbox ----

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
        yield Finding(_INSTALLED, "ok", rollout.kind, program_of(plan, root, environ))
    except SkillcError as problem:
        yield Finding(_INSTALLED, "missing", rollout.kind, problem.message, problem.hint)


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
            yield Finding(_SANDBOX, "note", "unsafe", detail, "declare another sandbox, or remove the setting")
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
            yield Finding(_SANDBOX, "ok", kind, f"{_describe(kind)}{used}")
        else:
            suffix = ", and the program declares it" if declared else ""
            level: Level = "missing" if declared else "note"
            yield Finding(_SANDBOX, level, kind, f"{why}{suffix}", _fix(kind, why))
    if best is None:
        for user, sandbox in needs.items():
            if sandbox.kind is None:
                detail = f"none works here, and {user} run nothing without one"
                yield Finding(_SANDBOX, "missing", "any", detail, _fix("bubblewrap", ""))


def _needs(plan: Plan) -> Iterator[tuple[str, DeclaredSandbox]]:
    """Yield what of a program runs in a sandbox, and which it declares."""
    rollout = plan.task.rollout
    if rollout.kind in ("code", "harbor") or is_agent(rollout.kind):
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
