"""One small call per model before anything is spent: a wrong key, name or address fails in a second, with its fix."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from skillc.budget.bounds import STAGE
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.models import failures
from skillc.models.attempts import overuse_of, read_reply, to_send
from skillc.models.calls import Call, Message, Usage
from skillc.models.concurrency import SingleFlight
from skillc.models.endpoint import Transport
from skillc.models.failures import OFFLINE_INSTEAD, CallFailed, PermanentFailure
from skillc.models.ledger import Receipts, Spending
from skillc.models.roles import Role, describe_roles

QUESTION = "Reply with the word ok."
# Seconds. A reply of one word takes one or two; a starting server may need longer than a run should wait.
TIMEOUT = 20.0
# Seconds that the other tries still have when one has failed, so that the message can name their errors too.
_GRACE = 1.0


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """The answer of a usable model.

    Attributes:
        model: the name that the reply gives its model, else the plan's.
        usage: an upper bound if it is not reported.
        note: the error of a server that answered but was too busy.
    """

    model: str
    usage: Usage
    note: str | None = None


class PreflightFailed(PermanentFailure):
    """A model of some roles that cannot be used as the program declares it; `usage` is what the try may have taken."""

    def __init__(self, roles: Sequence[Role], detail: str, fix: str, usage: Usage) -> None:
        super().__init__(f"{describe_roles(roles)} cannot be used: {detail}", hint=f"{fix}, or {OFFLINE_INSTEAD}")
        self.detail = detail
        self.fix = fix
        self.usage = usage


async def try_model(role: Role, transport: Transport | None = None, *, timeout: float = TIMEOUT) -> PreflightResult:
    """Ask a role's model for one word, with all settings of the role, without retries, reservation or receipt.

    A reply that is cut or empty is an answer, and so is a refusal for lack of capacity: the server accepted the key.
    `transport` replaces the role's backend, `timeout` in seconds its timeout. Raises `PreflightFailed`.
    """
    call = _question(role)
    arguments = role.arguments(call)
    most = role.worst_case(arguments)
    try:
        async with asyncio.timeout(timeout):
            raw = await (transport or role.send)({**to_send(role, arguments, call), "timeout": timeout})
        reply = read_reply(raw, role.hide)
        return PreflightResult(reply.model or role.plan.model, reply.usage or most)
    except CallFailed as problem:
        problem = failures.redact(problem, role.hide)
        if problem.kind == "malformed":
            raise PreflightFailed([role], problem.detail, failures.fix_for(problem, None), most) from None
        return PreflightResult(role.plan.model, problem.usage or most, problem.detail)
    except SkillcError as problem:
        raise failures.redact(problem, role.hide) from None
    except Exception as problem:
        usage = Usage() if failures.was_refused(problem) else most
        if failures.is_late(problem):
            raise PreflightFailed([role], f"no reply within {timeout:g} s", failures.FIXES["late"], usage) from None
        detail = failures.scrub(failures.describe(problem), role.hide)
        if failures.is_unreachable(problem) or not (failures.is_transient(problem) or failures.is_refusal(problem)):
            fix = failures.fix_for(problem, role.endpoint.key_env)
            raise PreflightFailed([role], detail, fix, usage) from None
        return PreflightResult(role.plan.model, usage, detail)


def preflight_reservation(role: Role) -> Spending:
    """Return the most that one try of a role can use."""
    return role.reservation(role.arguments(_question(role)))


class Preflight:
    """Tries all models of a plan at once, before the first call is sent.

    Each try is reserved and paid, never charged: a run's charges depend on its own calls alone. Tries that the caps do
    not admit are left out.

    Args:
        roles: by name.
        groups: names of the roles to try; the roles of one group would send the same, so only the first is tried.
        receipts: of the tries.
        reached: receives the name of each role whose model answered.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        groups: Sequence[Sequence[str]],
        receipts: Receipts,
        reached: Callable[[str], None],
    ) -> None:
        self._groups = [[roles[name] for name in group] for group in groups]
        self._receipts = receipts
        self._account = receipts.account
        self._reached = reached
        self._done = False
        self._failed: SkillcError | None = None
        self.move()

    def move(self) -> None:
        """Forget the event loop, because another one takes over."""
        self._flights: SingleFlight[str, None] = SingleFlight()

    async def passed(self) -> None:
        """Wait until all models have been tried; raise `PermanentFailure` with all that cannot be used."""
        if self._failed is not None:
            raise self._failed
        if not self._done:
            await self._flights.join(STAGE, self._try_all)

    async def _try_all(self) -> None:
        waiting = list(self._groups)
        while waiting:
            tries: dict[asyncio.Task[None], list[Role]] = {}
            left = []
            for group in waiting:
                reserved = preflight_reservation(group[0])
                if self._account.try_reserve(reserved):
                    tries[asyncio.ensure_future(self._try(group[0], reserved))] = group
                else:
                    left.append(group)
            if not tries:
                break
            await self._finish(tries)
            waiting = left
        self._done = True

    async def _finish(self, tries: Mapping[asyncio.Task[None], list[Role]]) -> None:
        """Wait for tries in flight, and raise their errors."""
        try:
            _, pending = await asyncio.wait(tries, return_when=asyncio.FIRST_EXCEPTION)
            if pending:
                await asyncio.wait(pending, timeout=_GRACE)
        finally:
            left = [task for task in tries if not task.done()]
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)
        problems = [(group, task.exception()) for task, group in tries.items() if not task.cancelled()]
        failed = [(group, problem) for group, problem in problems if isinstance(problem, PreflightFailed)]
        if failed:
            self._failed = _joined(failed)
            raise self._failed
        for _, problem in problems:
            if problem is not None:
                raise problem

    async def _try(self, role: Role, reserved: Spending) -> None:
        where = (role.plan.role, STAGE)
        used = role.worst_case(role.arguments(_question(role)))
        number = await self._receipts.sent(where, reserved)
        try:
            used = (await try_model(role)).usage
            self._reached(role.plan.role)
            overuse = overuse_of(used, reserved, role)
            if overuse is not None:
                self._account.refuse(overuse)
                raise overuse
        except PreflightFailed as problem:
            used = problem.usage
            raise
        finally:
            self._receipts.ended(number, where, reserved, used, role.discounted_cost(used))


def _question(role: Role) -> Call:
    return Call(role.plan.role, STAGE, (Message("user", QUESTION),))


def _joined(failed: Sequence[tuple[list[Role], PreflightFailed]]) -> PermanentFailure:
    """Return one error for all models that cannot be used."""
    if len(failed) == 1:
        group, problem = failed[0]
        return PreflightFailed(group, problem.detail, problem.fix, problem.usage)
    lines = [f"\n  {describe_roles(group)}: {problem.detail}; {problem.fix}" for group, problem in failed]
    return PermanentFailure(f"{len(failed)} models cannot be used:{''.join(lines)}", hint=OFFLINE_INSTEAD)
