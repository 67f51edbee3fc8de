"""The client: every call to a model is reserved, looked up in the cache, sent and settled here."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from skillc.budget.bounds import preflight_groups, tried_models
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.models.attempts import Attempts, overuse_of
from skillc.models.backends.connections import begin, end
from skillc.models.cache import Claims, ReplyCache, ReplyLabel, whole_reply
from skillc.models.calls import Call, Completion, Usage
from skillc.models.concurrency import CallLoop, PrefixWarmup, SingleFlight, Ticket, TicketQueue
from skillc.models.endpoint import Transport
from skillc.models.failures import CallFailed, EndpointUnreachable, PermanentFailure
from skillc.models.ledger import Ledger, Receipts, RoleStage, Spending
from skillc.models.pace import RetryPolicy
from skillc.models.pacing import Pacing, Sleep
from skillc.models.preflight import Preflight
from skillc.models.roles import Role, call_key, resolve_roles, servers_of
from skillc.models.serving.installed import refused_seed
from skillc.models.spans import traced, traced_agent
from skillc.plan.schema import Plan
from skillc.redaction import NOTHING, Secret
from skillc.store import RunStore

_TICKET: ContextVar[Ticket | None] = ContextVar("skillc_ticket", default=None)


class Clock(Protocol):
    """The clock of a run's deadline."""

    def begin(self) -> None:
        """Start with the first call that is sent or answered from the cache."""

    def excuse(self, seconds: float) -> None:
        """Leave out the seconds in which servers started and models were tried."""


class Charge(NamedTuple):
    """The charge of one logical call; `cost` in nano-dollars, None if unknown."""

    where: RoleStage
    reserved: Spending
    usage: Usage
    cost: int | None


@dataclass(slots=True)
class Outside:
    """What a program that calls a model without the client reports of it.

    Attributes:
        usages: of its calls, or their sum as one; None if it reports none, which counts as the whole reservation.
        cost: nano-dollars as it reports them, for a model whose price is not known.
    """

    usages: tuple[Usage, ...] | None = None
    cost: int | None = None


# The stored form of a reply, and whether it was cached.
_Fetched = tuple[dict[str, Any], bool]

_CHARGES: ContextVar[list[Charge] | None] = ContextVar("skillc_charges", default=None)


class Client:
    """Calls of all roles under one budget.

    Args:
        plan: the models and the budget's caps.
        cache_folder: the folder of replies, shared by all processes that name it; None keeps replies in memory.
        concurrency: the most attempts in flight at one endpoint whose roles declare none. The number below is learned;
            it affects speed alone.
        offline: replace every model by the rulebook; no socket is opened.
        transport: sends every attempt in place of the roles' backends.
        retries: how transient failures are retried.
        sleep: waits before a retry.
        root: the program's folder, where the user's commands, functions and models are looked up; by default the
            working folder.
        preflight: whether to try every model and start every server before the first call is sent.
        secrets: to redact besides those that the plan declares.
        ledger: of another client, whose caps hold for both together; by default one with the plan's caps.

    Attributes:
        hide: redacts the secrets of the run in a text.
        clock: started with the first call; the start of servers and the preflight do not count.

    Raises:
        SkillcError: as `resolve_roles`, or the cache folder cannot be used.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        cache_folder: Path | None = None,
        concurrency: int = 256,
        offline: bool = False,
        transport: Transport | None = None,
        retries: RetryPolicy | None = None,
        sleep: Sleep = asyncio.sleep,
        root: Path | None = None,
        preflight: bool = False,
        secrets: Iterable[Secret] = (),
        ledger: Ledger | None = None,
    ) -> None:
        self.roles = resolve_roles(plan, offline=offline, root=root, transport=transport, secrets=secrets)
        roles = self.roles.values()
        self.hide = next((role.hide for role in roles), NOTHING)
        self._sends = transport is None
        if self._sends:
            refused = next(filter(None, (refused_seed(role.plan, root or Path()) for role in roles)), None)
            if refused is not None:
                raise refused
        self.servers = servers_of([role.endpoint for role in roles], [role.plan for role in roles], root or Path())
        if self._sends:
            self.roles = {
                name: replace(role, send=self.servers.transport(role.send)) if role.endpoint.launch else role
                for name, role in self.roles.items()
            }
        self.ledger = ledger or Ledger(plan.budget)
        self._cache = ReplyCache(cache_folder)
        self._claims = Claims(cache_folder)
        self._salt = ""
        self._receipts = Receipts(self.ledger.paid)
        self.pacing = Pacing(self.roles, concurrency, retries or RetryPolicy(), sleep)
        self._attempts = Attempts(self._receipts, self.pacing)
        asked = tried_models(plan)
        tried = {
            name: role.plan
            for name, role in self.roles.items()
            if preflight and name in asked and role.backend.networked
        }
        self._preflight = Preflight(self.roles, preflight_groups(tried), self._receipts, self.pacing.answered)
        self._starts_servers = preflight and self._sends
        self._flights: SingleFlight[str, _Fetched] = SingleFlight()
        self._warmup = PrefixWarmup()
        self._tickets = TicketQueue()
        self.clock: Clock | None = None
        self._preparing_since: float | None = None
        self._prepared = False
        self._loop = CallLoop(self._reset)
        self.servers.on_restart(self.hold, self.free)

    async def complete(self, call: Call) -> Completion:
        """Return the reply to one call, from any event loop.

        Raises:
            CallFailed: no complete reply came, retries included.
            PermanentFailure: no retry can fix the error.
            BudgetReached: a cap does not admit the call.
            EndpointUnreachable: the endpoint has answered before, and stays out of reach.
        """
        return await traced(self.roles.get(call.role), call, lambda: self._loop.run(lambda: self._complete(call)))

    def complete_sync(self, call: Call) -> Completion:
        """Return the reply to one call, from a thread without an event loop."""
        return self._loop.run_sync(lambda: traced(self.roles.get(call.role), call, lambda: self._complete(call)))

    @asynccontextmanager
    async def outside(self, role: str, stage: str, most: Spending, *, fix: str) -> AsyncIterator[Outside]:
        """Charge the calls that a program makes without this client, all together as one call.

        Reserves `most` before the block, in the order of the tickets, and settles what the block reports behind it:
        the reservation if that is nothing. With 0 tokens no maximum is declared, so that only the number is reserved.

        Args:
            role: the model that it calls.
            stage: for the ledger.
            most: the most that it may spend.
            fix: how the user raises that, for the error.

        Raises:
            BudgetReached: a cap does not admit it.
            PermanentFailure: it reports more than was reserved, or a model's server or endpoint does not work.
        """
        where, own = (role, stage), self.roles[role]
        with traced_agent(own, role, stage) as used:
            number = await self._loop.run(lambda: self._open(where, own, most))
            report, ended = Outside(), False
            try:
                yield report
                ended = True
            except Exception:
                ended = True
                raise
            finally:
                used(report.usages)
                await self._loop.run(lambda: self._close(where, own, most, number, report, fix, ended))

    async def address(self, role: str) -> tuple[str | None, str | None]:
        """Return the address and the key of a role's endpoint, None for the provider's own and without a key.

        A server that skillc starts answers then.
        """
        endpoint = self.roles[role].endpoint
        served = await self.servers.ready(endpoint.url or "") if endpoint.launch is not None else None
        return (served.url, served.key) if served is not None else (endpoint.url, endpoint.key)

    async def _open(self, where: RoleStage, role: Role, most: Spending) -> int:
        """Reserve in both accounts, and record the receipt; return its number."""
        await self._admit(most)
        try:
            await self._prepare(role)
            await self.ledger.paid.reserve(most)
            return await self._receipts.sent(where, most)
        except BaseException:
            self.ledger.charged.release(most)
            raise

    async def _close(
        self, where: RoleStage, role: Role, most: Spending, number: int, report: Outside, fix: str, ended: bool
    ) -> None:
        """Settle a report in both accounts; a cancelled block is charged nothing, as a cancelled call."""
        if report.usages is None or not ended:
            usage = Usage(prompt=most.tokens, bound=True)
            listed = paid = most.cost if most.cost or role.cost(Usage(1)) == 0 else None
        else:
            usage = sum_of(report.usages)
            listed, paid = (
                report.cost if role.price is None else sum(cost(each) or 0 for each in report.usages)
                for cost in (role.cost, role.discounted_cost)
            )
        # Without a price nothing is reserved, and no cost is too much.
        excess = most.overuse(usage, listed or 0 if most.cost else 0, "rollout") if most.tokens else None
        overuse = PermanentFailure(f"an agent with the model `{where[0]}` {excess}", hint=fix) if excess else None
        if overuse is not None:
            # Before the reservation is released, so that it admits no other call.
            self.ledger.paid.refuse(overuse)
        self._receipts.ended(number, where, most, usage, paid)
        if overuse is not None or not ended:
            self.ledger.charged.release(most)
        else:
            self._settle(Charge(where, most, usage, listed))
        if overuse is not None:
            raise overuse

    @property
    def lost(self) -> EndpointUnreachable | None:
        """The error of an endpoint that stayed out of reach."""
        return self.pacing.lost

    def in_flight(self) -> Mapping[str, int]:
        """Return how many attempts of each role were sent and have not ended; safe in any thread."""
        return {role: count for role in self.roles if (count := self._receipts.in_flight[role]) > 0}

    @contextmanager
    def ticket(self) -> Iterator[None]:
        """Take a ticket for the first call made inside: calls are charged in the order of their tickets."""
        self._loop.bind()
        queue = self._tickets
        ticket = queue.take()
        token = _TICKET.set(ticket)
        try:
            yield
        finally:
            _TICKET.reset(token)
            self._loop.post(lambda: queue.leave(ticket))

    def hold(self, role: str) -> None:
        """Send nothing more to a role's endpoint until `free`, from any thread; its calls wait."""
        self._loop.post(lambda: self.pacing.hold(role))

    def free(self, role: str) -> None:
        """Reopen a held endpoint as a new one, from any thread."""
        self._loop.post(lambda: self.pacing.free(role))

    def preload(self) -> None:
        """Import what the first call needs, which would block an event loop for seconds."""
        if self._sends:
            for role in self.roles.values():
                role.backend.load()

    async def try_early(self, role: str) -> None:
        """Try the models now if no reply is cached, so that a call of a role is certain, instead of before that call.

        A model that cannot be used is then reported before slow work on the call itself.
        """
        if not self.roles[role].backend.embedded and self._cache.is_empty():
            await self._loop.run(self._preflight.passed)

    def bind_store(self, store: RunStore | None, salt: str) -> None:
        """Bind the client to one run.

        Args:
            store: receipts are kept there, and added to those of earlier sessions; it must stay open while calls are
                made. None keeps no receipts from here on.
            salt: part of every cache key: another salt, fresh replies.

        Raises:
            SkillcError: the store cannot be read.
        """
        self._salt = salt
        self._receipts.bind(store)

    @contextmanager
    def recorded(self) -> Iterator[list[Charge]]:
        """Collect the charges of the calls made inside; travels with the context, tasks included."""
        charges: list[Charge] = []
        token = _CHARGES.set(charges)
        try:
            yield charges
        finally:
            _CHARGES.reset(token)

    async def charge(self, charges: Sequence[Charge]) -> None:
        """Charge recorded calls again in the order of the tickets; raise `BudgetReached` at a cap."""
        with self.ticket():
            for charge in charges:
                await self._loop.run(lambda charge=charge: self._charge(charge))  # type: ignore[misc]

    async def _charge(self, charge: Charge) -> None:
        await self._admit(charge.reserved)
        self._settle(charge)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Close the connections opened inside at the end, unless another client uses them."""
        await self._loop.run(begin)
        try:
            yield
        finally:
            await self._loop.run(end)

    def close(self) -> None:
        """Stop the servers that were started for it, and close the cache."""
        self.servers.close()
        self._cache.close()
        self._claims.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reset(self) -> None:
        """Forget the event loop, because another one takes over."""
        self._tickets = TicketQueue()
        self._flights = SingleFlight()
        self._warmup = PrefixWarmup()
        self.pacing.move()
        self._preflight.move()

    async def _complete(self, call: Call) -> Completion:
        role = self.roles.get(call.role)
        if role is None:
            raise SkillcError(f"the program has no model `{call.role}`", hint=f"declare `model {call.role} = ...`")
        arguments = role.arguments(call)
        key = call_key(role, arguments, call.sample, self._salt)
        reserved = role.reservation(arguments)
        if call.judges:
            reserved = reserved.judging()
        start = time.monotonic()
        await self._admit(reserved)
        where = (call.role, call.stage)
        try:
            data, cached = await self._reply(key, role, arguments, call, reserved)
        except CallFailed as problem:
            usage = problem.usage or Usage()
            self._settle(Charge(where, reserved, usage, role.cost(usage)))
            raise
        except BaseException:
            self.ledger.charged.release(reserved)
            raise
        usage = Usage.of(data["usage"], data.get("bound"))
        overuse = overuse_of(usage, reserved, role)
        if overuse is not None:
            self.ledger.charged.release(reserved)
            raise overuse
        cost = role.cost(usage)
        self._settle(Charge(where, reserved, usage, cost))
        self._receipts.answered(call.role, data["model"])
        tool_calls = tuple(data.get("tool_calls", ()))
        seconds, waited = data.get("seconds"), time.monotonic() - start
        return Completion(
            data["text"],
            data["finish"],
            usage,
            cost,
            data["model"],
            cached,
            tool_calls,
            seconds if isinstance(seconds, int | float) else None,
            waited,
        )

    def _settle(self, charge: Charge) -> None:
        self.ledger.charged.settle(*charge)
        charges = _CHARGES.get()
        if charges is not None:
            charges.append(charge)

    async def _admit(self, reserved: Spending) -> None:
        """Reserve in the order of the tickets."""
        ticket = _TICKET.get()
        if ticket is None or ticket.left:
            ticket = self._tickets.take()
        try:
            await self._tickets.reach(ticket)
            place = self.ledger.charged.ask(reserved)
        finally:
            self._tickets.leave(ticket)
        await self.ledger.charged.granted(reserved, place)

    async def _reply(self, key: str, role: Role, arguments: dict[str, Any], call: Call, reserved: Spending) -> _Fetched:
        """Return a reply from the cache, or from one flight for all equal calls."""
        known = await self._cached(key)
        if known is not None:
            if self.clock is not None:
                self.clock.begin()
            return known, True
        return await self._flights.join(key, lambda: self._fetch(key, role, arguments, call, reserved))

    async def _fetch(self, key: str, role: Role, arguments: dict[str, Any], call: Call, reserved: Spending) -> _Fetched:
        claim = await self._claims.take(key, float(role.plan.pacing.timeout))
        try:
            # An earlier holder of the claim may have fetched it since the first look.
            known = await self._cached(key) if self._claims.shared else None
            if known is not None:
                return known, True
            await self._prepare(role)
            async with (
                self._warmup.warmed(role.endpoint.id, arguments) if role.backend.keeps_prefixes else nullcontext()
            ):
                text = await self._attempts.run(role, arguments, call, reserved)
            await self._cache.put(key, text, ReplyLabel(role.endpoint.id, role.plan.model, time.time()))
            return json.loads(text), False
        finally:
            if claim is not None:
                claim.free()

    async def _prepare(self, role: Role) -> None:
        """Wait until every model was tried and every server answers, and exclude that time from the clock."""
        self._preparing_since = self._preparing_since or time.monotonic()
        if not role.backend.embedded:
            await self._preflight.passed()
        if self._starts_servers:
            await self.servers.ready_all()
        if not self._prepared:
            self._prepared = True
            if self.clock is not None:
                self.clock.excuse(time.monotonic() - self._preparing_since)
                self.clock.begin()

    async def _cached(self, key: str) -> dict[str, Any] | None:
        stored = await self._cache.get(key)
        return whole_reply(stored) if stored is not None else None


def sum_of(usages: Sequence[Usage]) -> Usage:
    """Return the usage of several calls together."""
    counts = [sum(each) for each in zip(*(usage.counts for usage in usages), strict=True)] or [0, 0, 0, 0]
    return Usage.of(counts, any(usage.bound for usage in usages))
