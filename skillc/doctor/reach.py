"""Whether the models of a program answer: keys and addresses, and one small call for each that may be sent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from skillc.doctor.report import Finding
from skillc.errors import SkillcError
from skillc.language.loop import BudgetPlan
from skillc.models.backends.litellm import disconnect
from skillc.models.endpoint import Transport
from skillc.models.preflight import TIMEOUT, PreflightFailed, preflight_reservation, try_model
from skillc.models.roles import Role, resolve_roles
from skillc.plan.schema import ModelPlan, Plan
from skillc.text import counted

_GROUP = "models"
_OFFLINE = "or put the embedded `rulebook` in its place: `--offline`"


@dataclass(frozen=True, slots=True)
class Reached:
    """The findings about the models, and the roles that answered."""

    findings: tuple[Finding, ...]
    roles: frozenset[str]


@dataclass(frozen=True, slots=True)
class Question:
    """One small call, as a compile's preflight sends it.

    Attributes:
        role: whose model is asked.
        served: whether skillc would start its server, which is asked only if it runs already.
    """

    role: Role
    served: bool = False

    @property
    def cost(self) -> int | None:
        """Nano-dollars at most; None if the price is unknown."""
        return preflight_reservation(self.role).cost if self.role.price is not None else None


@dataclass(frozen=True, slots=True)
class Ready:
    """The roles of a program: findings about those that cannot be asked, and questions for the others."""

    findings: tuple[Finding, ...]
    questions: tuple[Question, ...]

    @property
    def cost(self) -> int | None:
        """Nano-dollars that all questions cost at most; None if a price is unknown."""
        costs = [question.cost for question in self.questions]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None


def prepare(plan: Plan, root: Path) -> Ready:
    """Look up each role's name, key, address or command. Opens no socket.

    A server that skillc starts itself is not asked, and neither is what costs nobody knows how much: a command of the
    user's own, which may be an agent.
    """
    findings, questions = [], []
    for name, model in plan.models.items():
        if model.serve is not None and not (model.base_url or model.base_url_env):
            findings.append(Finding(_GROUP, "ok", name, f"`{model.model}`, served by skillc while it is needed"))
            continue
        try:
            role = resolve_roles(_alone(plan, model), offline=False, root=root)[name]
        except SkillcError as problem:
            findings.append(Finding(_GROUP, "missing", name, problem.message, _offered(problem.hint)))
            continue
        if role.backend.embedded:
            findings.append(Finding(_GROUP, "ok", name, f"`{model.model}`, which is built in"))
        elif role.backend.users:
            findings.append(
                Finding(_GROUP, "ok", name, f"`{model.model}`: the {role.backend.name} is there; never asked by doctor")
            )
        else:
            questions.append(Question(role, served=model.serve is not None))
    return Ready(tuple(findings), tuple(questions))


async def ask(ready: Ready, transport: Transport | None = None, *, timeout: float = TIMEOUT) -> Reached:
    """Send all questions at once; each may take `timeout` seconds."""
    if transport is None:
        # Loading takes seconds, which are none of the models'.
        for question in ready.questions:
            question.role.backend.load()
    try:
        answers = await asyncio.gather(*[_ask(question, transport, timeout) for question in ready.questions])
    finally:
        await disconnect()
    reached = [question.role.plan.role for question, (_, good) in zip(ready.questions, answers, strict=True) if good]
    return Reached(tuple(finding for finding, _ in answers), frozenset(reached))


def unasked(ready: Ready, why: str) -> Reached:
    """Return what is known without a call."""
    told = [_known(question.role) for question in ready.questions]
    findings = [Finding(_GROUP, "ok", role, f"{text}; {why}") for role, text in told]
    return Reached(tuple(findings), frozenset())


def _alone(plan: Plan, model: ModelPlan) -> Plan:
    """Return the plan with one role, without caps and without a server to start."""
    alone = model.model_copy(update={"serve": None})
    return plan.model_copy(update={"models": {model.role: alone}, "budget": BudgetPlan()})


async def _ask(question: Question, transport: Transport | None, timeout: float) -> tuple[Finding, bool]:
    name, told = _known(question.role)
    try:
        found = await try_model(question.role, transport, timeout=timeout)
    except PreflightFailed as problem:
        if question.served:
            later = f"{told}: does not answer yet, and is served by skillc while it is needed"
            return Finding(_GROUP, "note", name, later), False
        return Finding(_GROUP, "missing", name, f"{told}: {problem.detail}", _offered(problem.fix)), False
    except SkillcError as problem:
        return Finding(_GROUP, "missing", name, problem.message, _offered(problem.hint)), False
    if found.note is not None:
        return Finding(_GROUP, "note", name, f"{told}: is there, and too busy for an answer: {found.note}"), True
    model = question.role.plan.model
    named = f" as `{found.model}`" if found.model not in (model, model.split("/")[-1]) else ""
    return Finding(_GROUP, "ok", name, f"{told}: answers{named}"), True


def _known(role: Role) -> tuple[str, str]:
    """Return a role's name, and its model, address and the variable of its key."""
    endpoint = role.endpoint
    key = f", `{endpoint.key_env}` set" if endpoint.key_env else ""
    return role.plan.role, f"`{role.plan.model}` at `{endpoint.id}`{key}"


def _offered(hint: str | None) -> str:
    """Return the fix and the offline alternative; a model is never replaced without being asked."""
    if hint is None:
        return _OFFLINE.removeprefix("or ")
    return hint if "--offline" in hint else f"{hint}; {_OFFLINE}"


def cost_told(ready: Ready) -> str:
    """Describe the cost of the questions before they are sent."""
    count = len(ready.questions)
    what = f"asks {counted(count, 'model')} one question each"
    if ready.cost is None:
        return f"{what}, at a price that is not known; `--no-calls` leaves that out"
    return f"{what}, for ${ready.cost / 1e9:.6f} at most; `--no-calls` leaves that out"
