"""One reply from the network: attempts, each reserved anew, until one is whole or no retry helps."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from skillc.errors import SkillcError
from skillc.models import failures
from skillc.models.accounts import Account, Amount
from skillc.models.calls import Call, Usage
from skillc.models.failures import CallFailed, FailureKind, PermanentFailure
from skillc.models.receipts import Receipts
from skillc.models.roles import Role
from skillc.models.slots import Slots
from skillc.models.transport import Transport, read_reply

Sleep = Callable[[float], Awaitable[None]]

_CUT = frozenset({"length", "max_tokens"})


@dataclass(frozen=True, slots=True)
class Retries:
    """How transient failures are tried again; times in seconds. The jitter spreads attempts and decides nothing."""

    attempts: int = 6
    first: float = 0.5
    most: float = 60.0

    def delay(self, attempt: int, asked: float | None) -> float:
        """Seconds before the attempt after number `attempt`, counted from 0: what the server asks, else backoff."""
        if asked is not None:
            return float(asked + random.uniform(0, self.first))
        return random.uniform(0.5, 1.0) * min(self.most, self.first * 2.0**attempt)


class Attempts:
    """Sends attempts, at most `concurrency` at once, and books each one as paid."""

    def __init__(
        self,
        account: Account,
        receipts: Receipts,
        transport: Transport,
        retries: Retries,
        sleep: Sleep,
        concurrency: int,
    ) -> None:
        self._account = account
        self.receipts = receipts
        self._transport = transport
        self._retries = retries
        self._sleep = sleep
        self._concurrency = concurrency
        self.move()

    def move(self) -> None:
        """Forgets the event loop, because another one takes over."""
        self._slots = Slots(self._concurrency)

    async def run(self, role: Role, arguments: dict[str, Any], call: Call, reserved: Amount) -> str:
        """A whole reply in the form that is stored.

        Raises:
            CallFailed, PermanentFailure, BudgetReached: as `Client.complete`.
        """
        for attempt in range(self._retries.attempts):
            try:
                return await self._once(role, arguments, call, reserved)
            except _Again as again:
                last = again
                if attempt + 1 < self._retries.attempts:
                    await self._sleep(self._retries.delay(attempt, again.after))
        raise CallFailed(last.kind, f"{last.detail}, {self._retries.attempts} attempts") from None

    async def _once(self, role: Role, arguments: dict[str, Any], call: Call, reserved: Amount) -> str:
        await self._account.reserve(reserved)
        where, most = (call.role, call.stage), _most(role, arguments)
        number: int | None = None
        sent = False

        def book(usage: Usage) -> None:
            if number is not None:
                cost = role.price.discounted(usage) if role.price else None
                self.receipts.ended(number, where, reserved, usage, cost)

        try:
            async with self._slots.held():
                self._account.check()
                number = await self.receipts.sent(where, reserved)
                self._account.check()
                sent = True
                raw = await (role.transport or self._transport)(to_send(role, arguments, call))
        except Exception as problem:
            if not sent:
                book(Usage())
                raise
            book(Usage() if failures.was_refused(problem) else most)
            raise _classified(problem, role) from None
        except BaseException:
            book(most)
            raise
        finally:
            if number is None:
                self._account.release(reserved)
        try:
            text, finish, reported, model, tool_calls = read_reply(raw)
        except CallFailed as problem:
            book(most)
            raise _Again(problem.kind, problem.detail, None) from None
        usage = reported or most
        passed = overuse(usage, reserved, role)
        if passed is not None:
            # Before the reservation is given back, so that nobody is let in by it.
            self._account.refuse(passed)
        book(usage)
        if passed is not None:
            raise passed
        return _stored(text, finish, usage, model or role.plan.model, tool_calls)


def _stored(text: str, finish: str, usage: Usage, model: str, tool_calls: Sequence[dict[str, Any]]) -> str:
    """A whole reply in the form that is stored."""
    if finish in _CUT:
        raise CallFailed("cut", f"the reply ended at its limit, after {usage.completion:,} tokens", usage=usage)
    if finish == "content_filter" or not (text.strip() or tool_calls):
        raise CallFailed("empty", f"the reply holds no text (finish reason `{finish}`)", usage=usage)
    stored: dict[str, Any] = {"text": text, "finish": finish, "usage": list(usage.counts), "model": model}
    if tool_calls:
        stored["tool_calls"] = list(tool_calls)
    return json.dumps(stored)


class _Again(Exception):  # noqa: N818
    """An attempt that failed so that another one may help."""

    def __init__(self, kind: FailureKind, detail: str, after: float | None) -> None:
        super().__init__(detail)
        self.kind: FailureKind = kind
        self.detail = detail
        self.after = after


def to_send(role: Role, arguments: dict[str, Any], call: Call) -> dict[str, Any]:
    """The arguments with what is in no cache key: address, key, timeout. Only the rulebook is told the sample."""
    sent = {"timeout": float(role.plan.pacing.timeout), **arguments}
    if role.is_rulebook:
        sent["sample"] = list(call.sample) if isinstance(call.sample, tuple) else call.sample
    if role.endpoint.url is not None:
        sent["api_base"] = role.endpoint.url
    if role.endpoint.key is not None:
        sent["api_key"] = role.endpoint.key
    return sent


def _most(role: Role, arguments: dict[str, Any]) -> Usage:
    prompt, reply = role.bounds(arguments)
    return Usage(prompt=prompt, completion=reply)


def overuse(usage: Usage, reserved: Amount, role: Role) -> PermanentFailure | None:
    """What ends the run where a call used more tokens, or cost more at list price, than it had reserved; else None."""
    cost = role.price.cost(usage) if role.price else 0
    if usage.total > reserved.tokens:
        much = f"used {usage.total:,} tokens in one call, where at most {reserved.tokens:,} were reserved"
    elif cost > reserved.cost:
        much = f"cost ${cost / 10**9:.6f} in one call, where at most ${reserved.cost / 10**9:.6f} was reserved"
    else:
        return None
    return PermanentFailure(
        f"model `{role.plan.role}` (`{role.plan.model}` at `{role.endpoint.id}`) {much}",
        hint="raise `max_tokens` in its block, so that a reply's whole length is reserved",
    )


def _classified(problem: Exception, role: Role) -> Exception:
    """What an attempt's exception means to us; the original is dropped, because its text may hold the key."""
    if isinstance(problem, SkillcError | CallFailed):
        return problem
    detail = failures.scrub(failures.told(problem), role.endpoint.secrets)
    if failures.is_refusal(problem):
        return CallFailed("empty", detail)
    if not role.is_rulebook:
        if failures.is_malformed(problem):
            return _Again("malformed", detail, None)
        if failures.is_transient(problem):
            return _Again("transient", detail, failures.retry_after(problem, time.time()))
    return PermanentFailure(
        f"model `{role.plan.role}` (`{role.plan.model}` at `{role.endpoint.id}`) refuses: {detail}",
        hint=failures.fix_for(problem, role.endpoint.key_env),
    )
