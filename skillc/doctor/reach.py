"""Whether the models of a program answer: keys and addresses, and one small call for each that may be sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from skillc.doctor.finding import Finding
from skillc.errors import SkillcError
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.models.pacing.retries import Retries
from skillc.models.roles import Role
from skillc.plan.schema import BudgetPlan, ModelPlan, Plan

_GROUP = "models"
_QUESTION = (Message("user", "Say ok."),)
_REPLY = 16  # tokens
_SECONDS = 30
_OFFLINE = "or put the embedded `rulebook` in its place: `--offline`"

# A client for one role of a plan; raises SkillcError where the role lacks a key, an address or a command.
Open = Callable[[Plan], Client]


@dataclass(frozen=True, slots=True)
class Reached:
    """What a check of the models has found, and which roles have answered."""

    findings: tuple[Finding, ...]
    roles: frozenset[str]


@dataclass(frozen=True, slots=True)
class Question:
    """One small call that may be sent.

    Attributes:
        cost: nano-dollars at most; None where nobody knows the price.
        served: whether skillc would start its server, which is asked only if it runs already.
    """

    role: str
    client: Client
    call: Call
    cost: int | None
    served: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """The roles of a program: what is to be said of those that cannot be asked, and the questions for the others."""

    findings: tuple[Finding, ...]
    questions: tuple[Question, ...]

    @property
    def cost(self) -> int | None:
        """Nano-dollars that all questions cost at most; None where a price is not known."""
        costs = [question.cost for question in self.questions]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    def close(self) -> None:
        """Closes the clients."""
        for question in self.questions:
            question.client.close()


def client_at(root: Path) -> Open:
    """Opens clients that keep no reply and try nothing again, for a program in a folder."""
    return lambda plan: Client(plan, cache_folder=None, retries=Retries(attempts=1, patience=0), root=root)


def prepare(plan: Plan, opened: Open) -> Ready:
    """Looks for each role's name, key, address or command. Opens no socket.

    A server that skillc starts itself is not asked, and neither is what costs nobody knows how much: a command of the
    user's own, which may be an agent.
    """
    findings, questions = [], []
    for role, model in plan.models.items():
        if model.serve is not None and not (model.base_url or model.base_url_env):
            findings.append(Finding(_GROUP, "ok", role, f"`{model.model}`, served by skillc while it is needed"))
            continue
        try:
            client = opened(_alone(plan, model))
        except SkillcError as problem:
            findings.append(Finding(_GROUP, "missing", role, problem.message, _offered(problem.hint)))
            continue
        if client.roles[role].is_rulebook:
            client.close()
            findings.append(Finding(_GROUP, "ok", role, f"`{model.model}`, which is built in"))
        elif client.roles[role].transport is not None:
            client.close()
            what = "command" if model.exec is not None else "function"
            findings.append(Finding(_GROUP, "ok", role, f"`{model.model}`: the {what} is there; never asked by doctor"))
        else:
            questions.append(_question(client, role, served=model.serve is not None))
    return Ready(tuple(findings), tuple(questions))


async def ask(ready: Ready) -> Reached:
    """Sends the questions, all at once."""
    for question in ready.questions:
        # Loading takes seconds, which are none of the model's.
        question.client.make_ready()
    answers = await asyncio.gather(*[_ask(question) for question in ready.questions])
    reached = [question.role for question, (_, good) in zip(ready.questions, answers, strict=True) if good]
    return Reached(tuple(finding for finding, _ in answers), frozenset(reached))


def unasked(ready: Ready, why: str) -> Reached:
    """What is known without a call."""
    told = [_known(question.client.roles[question.role]) for question in ready.questions]
    findings = [Finding(_GROUP, "ok", role, f"{text}; {why}") for role, text in told]
    return Reached(tuple(findings), frozenset())


def _alone(plan: Plan, model: ModelPlan) -> Plan:
    """The plan with one role, quick to give up and under no cap; no server is started for it."""
    pacing = model.pacing.model_copy(update={"timeout": min(model.pacing.timeout, Fraction(_SECONDS))})
    alone = model.model_copy(update={"pacing": pacing, "serve": None})
    return plan.model_copy(update={"models": {model.role: alone}, "budget": BudgetPlan()})


def _question(client: Client, role: str, *, served: bool) -> Question:
    call = Call(role, "doctor", _QUESTION, parameters={"max_tokens": _REPLY})
    here = client.roles[role]
    reserved = here.reservation(here.arguments(call))
    return Question(role, client, call, reserved.cost if here.price is not None else None, served)


async def _ask(question: Question) -> tuple[Finding, bool]:
    role = question.client.roles[question.role]
    _, told = _known(role)
    try:
        async with asyncio.timeout(_SECONDS):
            completion = await question.client.complete(question.call)
    except CallFailed as problem:
        # A reply that was cut or is empty came from the model all the same.
        if problem.kind in ("cut", "empty"):
            return Finding(_GROUP, "ok", question.role, f"{told}: answers"), True
        return _silent(question, told, problem.detail, role), False
    except TimeoutError:
        return _silent(question, told, f"no reply within {_SECONDS} s", role), False
    except SkillcError as problem:
        return Finding(_GROUP, "missing", question.role, problem.message, _offered(problem.hint)), False
    named = (
        f" as `{completion.model}`" if completion.model not in (role.plan.model, role.plan.model.split("/")[-1]) else ""
    )
    return Finding(_GROUP, "ok", question.role, f"{told}: answers{named}"), True


def _silent(question: Question, told: str, detail: str, role: Role) -> Finding:
    name = question.role
    fix = (
        "start its server, or check `base_url`"
        if role.endpoint.url
        else "check the network, or the provider's status page"
    )
    if question.served:
        return Finding(_GROUP, "note", name, f"{told}: does not answer yet, and is served by skillc while it is needed")
    return Finding(_GROUP, "missing", name, f"{told}: does not answer: {detail}", _offered(fix))


def _known(role: Role) -> tuple[str, str]:
    """A role's name, and its model, address and the variable of its key."""
    endpoint = role.endpoint
    key = f", `{endpoint.key_env}` set" if endpoint.key_env else ""
    return role.plan.role, f"`{role.plan.model}` at `{endpoint.id}`{key}"


def _offered(hint: str | None) -> str:
    """The fix, and the offer to do without the model; nothing is ever put in its place unasked."""
    if hint is None:
        return _OFFLINE.removeprefix("or ")
    return hint if "--offline" in hint else f"{hint}; {_OFFLINE}"


def cost_told(ready: Ready) -> str:
    """What the questions cost, before they are sent."""
    count = len(ready.questions)
    what = f"asks {count} model{'s' if count != 1 else ''} one question each"
    if ready.cost is None:
        return f"{what}, at a price that is not known; `--no-calls` leaves that out"
    return f"{what}, for ${ready.cost / 1e9:.6f} at most; `--no-calls` leaves that out"
