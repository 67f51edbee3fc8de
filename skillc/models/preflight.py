"""One cheap call per model before anything is spent: a wrong key, name or address fails in a second, with the fix."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from skillc.budget.bounds import STAGE
from skillc.errors import SkillcError
from skillc.models import failures
from skillc.models.attempts import overuse, read_reply, to_send
from skillc.models.calls import Call, Message, Usage
from skillc.models.concurrency import SingleFlight
from skillc.models.endpoint import Transport
from skillc.models.failures import OFFLINE_INSTEAD, CallFailed, PermanentFailure
from skillc.models.ledger import Account, Receipts, Spending
from skillc.models.roles import Role, describe_roles

QUESTION = "Reply with the word ok."
# Seconds. A reply of one word takes one or two; a server that is just starting may need longer than a run should wait.
TIMEOUT = 20.0
# Seconds that the others still have when one model has failed, so that the message can name them too.
_GRACE = 1.0


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """A model that can be used.

    Attributes:
        role: the role that was tried.
        model: the name that the reply gave its model; the plan's where it gave none.
        seconds: from question to reply.
        usage: tokens that it took; an upper bound where it is not reported.
        cost: nano-dollars at list price; None where the price is not known.
        note: the error of a server that answered but was too busy.
    """

    role: str
    model: str
    seconds: float
    usage: Usage
    cost: int | None
    note: str | None = None


class PreflightFailed(PermanentFailure):
    """A model that cannot be used as the program has it.

    Attributes:
        detail: what happened.
        fix: what to do about it.
        usage: tokens that the try may have taken.
    """

    def __init__(self, role: Role, detail: str, fix: str, usage: Usage) -> None:
        super().__init__(f"{describe_roles([role])} cannot be used: {detail}", hint=f"{fix}, or {OFFLINE_INSTEAD}")
        self.detail = detail
        self.fix = fix
        self.usage = usage


async def try_model(role: Role, transport: Transport | None = None, *, timeout: float = TIMEOUT) -> PreflightResult:
    """Ask a role's model for one word, with all settings of the role, and without retries.

    A reply that is cut or empty will do, and so will a refusal for want of capacity: a server is there, and the key was
    not turned away. Nothing is reserved and nothing booked: that is the caller's.

    Args:
        role: of a model that is reached over a network.
        transport: sends the question in place of the role's backend.
        timeout: seconds; how long the role lets a real attempt take does not count here.

    Raises:
        PreflightFailed: the model cannot be used; the message has model, address, reason and fix.
    """
    call = _question(role)
    arguments = role.arguments(call)
    prompt, reply = role.bounds(arguments)
    most = Usage(prompt=prompt, completion=reply, bound=True)
    began = time.monotonic()
    name, usage, note = role.plan.model, most, None
    try:
        async with asyncio.timeout(timeout):
            raw = await (transport or role.send)({**to_send(role, arguments, call), "timeout": timeout})
        _, _, reported, answered, _ = read_reply(raw)
        name, usage = answered or name, reported or most
    except CallFailed as problem:
        if problem.kind == "malformed":
            raise PreflightFailed(role, problem.detail, failures.fix_for(problem, None), most) from None
        note, usage = problem.detail, problem.usage or most
    except SkillcError:
        raise
    except Exception as problem:
        usage = Usage() if failures.was_refused(problem) else most
        note = failures.scrub(failures.told(problem), role.endpoint.secrets)
        if failures.is_late(problem):
            detail = f"no reply of one word within {timeout:g} s"
            raise PreflightFailed(role, detail, failures.FIXES["late"], usage) from None
        if failures.is_unreachable(problem) or not (failures.is_transient(problem) or failures.is_refusal(problem)):
            raise PreflightFailed(role, note, failures.fix_for(problem, role.endpoint.key_env), usage) from None
    cost = role.price.cost(usage) if role.price else None
    return PreflightResult(role.plan.role, name, time.monotonic() - began, usage, cost, note)


def preflight_reservation(role: Role) -> Spending:
    """The most that one try of a role can use."""
    return role.reservation(role.arguments(_question(role)))


class Preflight:
    """Tries all models of a plan at once, when the first call is about to be sent.

    Each try is reserved and booked as paid, and never charged: what a run is charged depends on its own calls alone.
    What the caps do not admit is not tried.

    Args:
        roles: by name.
        groups: the names of the roles to try; those of one group would send the very same, so its first is tried.
        account: what is paid from.
        receipts: where it is booked.
        reached: is given the name of each role whose model answered.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        groups: Sequence[Sequence[str]],
        account: Account,
        receipts: Callable[[], Receipts],
        reached: Callable[[str], None] = lambda role: None,
    ) -> None:
        self._groups = [[roles[name] for name in group] for group in groups]
        self._account = account
        self._receipts = receipts
        self._reached = reached
        self._done = False
        self._failed: SkillcError | None = None
        self.move()

    def move(self) -> None:
        """Forget the event loop, because another one takes over."""
        self._flights: SingleFlight[str, None] = SingleFlight()

    async def passed(self) -> None:
        """Wait until all models have been reached; concurrent callers wait for the same tries.

        Raises:
            PermanentFailure: some cannot be used; the message names every one of them.
        """
        if self._failed is not None:
            raise self._failed
        if not self._done:
            await self._flights.join(STAGE, self._all)

    async def _all(self) -> None:
        waiting = list(self._groups)
        while waiting:
            admitted = self._admitted(waiting)
            if not admitted:
                break
            waiting = [group for group in waiting if all(group is not other for other, _ in admitted)]
            await self._ended({asyncio.ensure_future(self._one(group[0], held)): group for group, held in admitted})
        self._done = True

    def _admitted(self, groups: Iterable[list[Role]]) -> list[tuple[list[Role], Spending]]:
        """The groups that the caps admit side by side, with what is reserved for each."""
        admitted = []
        for group in groups:
            held = preflight_reservation(group[0])
            if self._account.try_reserve(held):
                admitted.append((group, held))
        return admitted

    async def _ended(self, tries: Mapping[asyncio.Task[None], list[Role]]) -> None:
        """Wait for tries under way.

        Raises:
            SkillcError: what went wrong in them.
        """
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
        other = next((p for _, p in problems if p is not None and not isinstance(p, PreflightFailed)), None)
        failed = [(group, p) for group, p in problems if isinstance(p, PreflightFailed)]
        if other is not None and not failed:
            raise other
        if failed:
            self._failed = _told(failed)
            raise self._failed

    async def _one(self, role: Role, held: Spending) -> None:
        where, receipts = (role.plan.role, STAGE), self._receipts()
        prompt, reply = role.bounds(role.arguments(_question(role)))
        used, number = Usage(prompt=prompt, completion=reply, bound=True), None
        try:
            number = await receipts.sent(where, held)
            used = (await try_model(role)).usage
            self._reached(role.plan.role)
            passed = overuse(used, held, role)
            if passed is not None:
                self._account.refuse(passed)
                raise passed
        except PreflightFailed as problem:
            used = problem.usage
            raise
        finally:
            if number is None:
                self._account.release(held)
            else:
                receipts.ended(number, where, held, used, role.price.discounted(used) if role.price else None)


def _question(role: Role) -> Call:
    return Call(role.plan.role, STAGE, (Message("user", QUESTION),))


def _told(failed: Sequence[tuple[list[Role], PreflightFailed]]) -> PermanentFailure:
    """One error for all models that cannot be used."""
    if len(failed) == 1:
        group, problem = failed[0]
        return PermanentFailure(
            f"{describe_roles(group)} cannot be used: {problem.detail}", hint=f"{problem.fix}, or {OFFLINE_INSTEAD}"
        )
    lines = [f"\n  {describe_roles(group)}: {problem.detail}; {problem.fix}" for group, problem in failed]
    return PermanentFailure(f"{len(failed)} models cannot be used:{''.join(lines)}", hint=OFFLINE_INSTEAD)
