"""Whether the models of a program answer: keys and addresses, and one small call for each."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from skillc.budget.bounds import tried_models
from skillc.dataclass import dataclass
from skillc.doctor.report import Finding
from skillc.errors import SkillcError
from skillc.language.loop import BudgetPlan
from skillc.models.backends.connections import disconnect
from skillc.models.endpoint import Transport
from skillc.models.ledger import NANO_PER_DOLLAR
from skillc.models.preflight import TIMEOUT, PreflightFailed, preflight_reservation, try_model
from skillc.models.roles import Role, resolve_roles
from skillc.plan.schema import Plan
from skillc.text import counted

_GROUP = "models"
_OFFLINE = "or put the embedded `rulebook` in its place: `--offline`"


@dataclass(frozen=True, slots=True)
class CallResults:
    """The findings about the models, and the roles that answered."""

    findings: tuple[Finding, ...]
    roles: frozenset[str]


@dataclass(frozen=True, slots=True)
class PreparedCalls:
    """Roles that are called once, as a compile's preflight does, and findings about the roles that are not called.

    `served` are the roles whose server skillc would start: it is called only if it runs already.
    """

    findings: tuple[Finding, ...]
    calls: tuple[Role, ...]
    served: frozenset[str]


def prepare_calls(plan: Plan, root: Path) -> PreparedCalls:
    """Resolve each role's name, key, address or command, without opening a socket.

    Servers that skillc starts are not called, and neither are users' own commands, which may be agents of unknown cost.
    """
    findings, calls = [], []
    for name, model in plan.models.items():
        if model.serve is not None and not (model.base_url or model.base_url_env):
            findings.append(Finding(_GROUP, "ok", name, f"`{model.model}`, served by skillc while it is needed"))
            continue
        # One role, without caps and without a server to start.
        models = {model.role: model.model_copy(update={"serve": None})}
        alone = plan.model_copy(update={"models": models, "budget": BudgetPlan()})
        try:
            role = resolve_roles(alone, offline=False, root=root)[name]
        except SkillcError as problem:
            findings.append(_missing(name, problem.message, problem.hint))
            continue
        if role.backend.embedded:
            findings.append(Finding(_GROUP, "ok", name, f"`{model.model}`, which is built in"))
        elif name not in tried_models(plan):
            detail = f"`{model.model}`: the agent calls it; doctor does not, as it may speak another protocol"
            findings.append(Finding(_GROUP, "ok", name, detail))
        elif role.backend.users:
            detail = f"`{model.model}`: the {role.backend.name} is there; doctor does not call it"
            findings.append(Finding(_GROUP, "ok", name, detail))
        else:
            calls.append(role)
    served = frozenset(name for name, model in plan.models.items() if model.serve is not None)
    return PreparedCalls(tuple(findings), tuple(calls), served)


async def send_calls(
    prepared: PreparedCalls, transport: Transport | None = None, *, timeout: float = TIMEOUT
) -> CallResults:
    """Send all calls at once; each may take `timeout` seconds, the import of the backends excluded."""
    for role in prepared.calls:
        role.backend.load()
    try:
        answers = await asyncio.gather(*[_send(each, prepared.served, transport, timeout) for each in prepared.calls])
    finally:
        await disconnect()
    answering = [finding.what for finding, is_there in answers if is_there]
    return CallResults(tuple(finding for finding, _ in answers), frozenset(answering))


def skip_calls(prepared: PreparedCalls) -> CallResults:
    """Return the findings without a call."""
    findings = [Finding(_GROUP, "ok", role.plan.role, f"{_describe(role)}; not called") for role in prepared.calls]
    return CallResults(tuple(findings), frozenset())


async def _send(
    role: Role, served: Collection[str], transport: Transport | None, timeout: float
) -> tuple[Finding, bool]:
    """Call a role; return the finding, and whether its model answered."""
    name, description = role.plan.role, _describe(role)
    try:
        found = await try_model(role, transport, timeout=timeout)
    except PreflightFailed as problem:
        if name in served:
            later = f"{description}: does not answer yet, and is served by skillc while it is needed"
            return Finding(_GROUP, "note", name, later), False
        return _missing(name, f"{description}: {problem.detail}", problem.fix), False
    except SkillcError as problem:
        return _missing(name, problem.message, problem.hint), False
    if found.note is not None:
        return Finding(_GROUP, "note", name, f"{description}: is there, but too busy to answer: {found.note}"), True
    model = role.plan.model
    alias = f" as `{found.model}`" if found.model not in (model, model.split("/")[-1]) else ""
    return Finding(_GROUP, "ok", name, f"{description}: answers{alias}"), True


def _describe(role: Role) -> str:
    """Return a role's model, its address and the variable of its key."""
    endpoint = role.endpoint
    key = f", `{endpoint.key_env}` set" if endpoint.key_env else ""
    return f"`{role.plan.model}` at `{endpoint.id}`{key}"


def _missing(name: str, detail: str, hint: str | None) -> Finding:
    """Report a model that cannot be called, with the fix and the offline alternative."""
    offline = _OFFLINE.removeprefix("or ") if hint is None else hint if "--offline" in hint else f"{hint}; {_OFFLINE}"
    return Finding(_GROUP, "missing", name, detail, offline)


def describe_cost(prepared: PreparedCalls) -> str:
    """Describe the cost of the calls before they are sent."""
    price = "at an unknown price"
    if all(role.price is not None for role in prepared.calls):
        nano = sum(preflight_reservation(role).cost for role in prepared.calls)
        price = f"for at most ${nano / NANO_PER_DOLLAR:.6f}"
    return f"sends one test call to {counted(len(prepared.calls), 'model')}, {price}; `--no-calls` skips this"
