"""One reply from the network: attempts, each reserved anew, until one is whole or no retry helps."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from skillc.errors import SkillcError
from skillc.models import failures
from skillc.models.calls import Call, Usage, well_formed
from skillc.models.failures import CallFailed, FailureKind, PermanentFailure, outcome_of
from skillc.models.ledger import Account, Receipts, Spending
from skillc.models.pace import RetryPolicy
from skillc.models.pacing import Away, Pacing, Slot, Unanswered
from skillc.models.roles import Role

_CUT = frozenset({"length", "max_tokens"})


class Attempts:
    """Sends attempts at the pace of their endpoints, and books each one as paid."""

    def __init__(self, account: Account, receipts: Receipts, retries: RetryPolicy, pacing: Pacing) -> None:
        self._account = account
        self.receipts = receipts
        self._retries = retries
        self.pacing = pacing

    async def run(self, role: Role, arguments: dict[str, Any], call: Call, reserved: Spending) -> str:
        """A whole reply in the form that is stored.

        A refusal is waited out by the endpoint and uses up no attempt: its call gives up with the endpoint, or where
        others are let through and it is not, again and again. So is an endpoint that is out of reach, if it has
        answered before; where others reach it meanwhile, an attempt is used up.

        Raises:
            CallFailed, PermanentFailure, BudgetReached, EndpointUnreachable: as `Client.complete`.
        """
        slots = self.pacing.slots(call.role)
        tried = failed = passed_over = 0
        while True:
            before = slots.served
            tried += 1
            try:
                return await self._once(role, arguments, call, reserved)
            except Unanswered as problem:
                raise CallFailed("transient", f"{problem}, and the endpoint lets nothing through") from None
            except Away as problem:
                raise self.pacing.away(call.role, str(problem)) from None
            except _Again as again:
                told = again
            if told.waits:
                if slots.away:
                    raise self.pacing.away(call.role, told.detail)
                failed += slots.served > before
                if failed >= self._retries.attempts:
                    break
            elif told.refused and self._retries.patience:
                passed_over += slots.served > before
                if slots.dead or passed_over >= self._retries.refusals:
                    break
            else:
                failed += 1
                if failed >= self._retries.attempts:
                    break
                await self.pacing.sleep(self._retries.delay(failed - 1, told.after))
        detail = told.detail if tried == 1 else f"{told.detail}, {tried} attempts"
        raise CallFailed(told.kind, detail) from None

    async def _once(self, role: Role, arguments: dict[str, Any], call: Call, reserved: Spending) -> str:
        await self._account.reserve(reserved)
        slots = self.pacing.slots(call.role)
        try:
            slot = await slots.take(call.role, reserved.tokens)
        except BaseException:
            self._account.release(reserved)
            raise
        try:
            return await self._send(role, arguments, call, reserved, slot)
        finally:
            slots.give(slot)

    async def _send(self, role: Role, arguments: dict[str, Any], call: Call, reserved: Spending, slot: Slot) -> str:
        where, slots = (call.role, call.stage), self.pacing.slots(call.role)
        attempt: int | None = None
        sent = False

        def book(usage: Usage) -> None:
            if attempt is not None:
                cost = role.price.discounted(usage) if role.price else None
                self.receipts.ended(attempt, where, reserved, usage, cost)

        try:
            self._account.check()
            attempt = await self.receipts.sent(where, reserved)
            self._account.check()
            sent = True
            raw = await role.send(to_send(role, arguments, call))
        except Exception as problem:
            if not sent:
                book(Usage())
                raise
            again = _classified(problem, role)
            slot.end = outcome_of(problem)
            if slot.end == "unreachable" and isinstance(again, _Again) and slots.awaited and attempt is not None:
                slot.told, slot.used = again.detail, 0
                again.waits = True
                self.receipts.unserved(attempt, reserved)
            elif slot.end == "refused" and isinstance(again, _Again) and attempt is not None:
                slot.asked, slot.told, slot.used = again.after, again.detail, 0
                again.refused = True
                self.receipts.unserved(attempt, reserved)
            else:
                book(Usage() if failures.was_refused(problem) else _most(role, arguments))
            raise again from None
        except BaseException:
            book(_most(role, arguments))
            raise
        finally:
            if attempt is None:
                self._account.release(reserved)
        try:
            text, finish, reported, model, tool_calls = read_reply(raw)
        except CallFailed as problem:
            book(_most(role, arguments))
            raise _Again(problem.kind, problem.detail, None) from None
        usage = reported or _most(role, arguments)
        slot.end, slot.used = "served", usage.total
        passed = overuse(usage, reserved, role)
        if passed is not None:
            # Before the reservation is released, so that it admits no other call.
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
    if usage.bound:
        stored["bound"] = True
    if tool_calls:
        stored["tool_calls"] = list(tool_calls)
    return json.dumps(stored)


class _Again(Exception):  # noqa: N818
    """An attempt that failed so that another one may help.

    Attributes:
        after: seconds that the server asks to wait.
        refused: whether the endpoint had no capacity for it.
        waits: whether there was no connection, so that the next attempt waits until the endpoint is back.
    """

    def __init__(self, kind: FailureKind, detail: str, after: float | None) -> None:
        super().__init__(detail)
        self.kind: FailureKind = kind
        self.detail = detail
        self.after = after
        self.refused = False
        self.waits = False


def to_send(role: Role, arguments: dict[str, Any], call: Call) -> dict[str, Any]:
    """Add what is in no cache key: address, key, timeout. Only an embedded model gets the sample."""
    sent = {"timeout": float(role.plan.pacing.timeout), **arguments}
    if role.backend.embedded:
        sent["sample"] = list(call.sample) if isinstance(call.sample, tuple) else call.sample
    if role.endpoint.url is not None:
        sent["api_base"] = role.endpoint.url
    if role.endpoint.key is not None:
        sent["api_key"] = role.endpoint.key
    return sent


def _most(role: Role, arguments: dict[str, Any]) -> Usage:
    prompt, reply = role.bounds(arguments)
    return Usage(prompt=prompt, completion=reply, bound=True)


def overuse(usage: Usage, reserved: Spending, role: Role) -> PermanentFailure | None:
    """The error of a call that used more tokens, or cost more at list price, than it had reserved; else None."""
    cost = role.price.cost(usage) if role.price else 0
    if usage.total > reserved.tokens:
        much = f"used {usage.total:,} tokens in one call, where at most {reserved.tokens:,} were reserved"
    elif cost > reserved.cost:
        much = f"cost ${cost / 10**9:.6f} in one call, where at most ${reserved.cost / 10**9:.6f} was reserved"
    else:
        return None
    return PermanentFailure(
        f"model `{role.plan.role}` (`{role.plan.model}` at `{role.endpoint.id}`) {much}",
        hint=failures.FIXES["overuse"],
    )


def _classified(problem: Exception, role: Role) -> Exception:
    """Classify an attempt's exception; the original is dropped, because its text may hold the key."""
    if isinstance(problem, SkillcError | CallFailed):
        return problem
    detail = failures.scrub(failures.told(problem), role.endpoint.secrets)
    if failures.is_refusal(problem):
        return CallFailed("empty", detail)
    if not role.backend.embedded:
        if failures.is_malformed(problem):
            return _Again("malformed", detail, None)
        if failures.is_transient(problem):
            return _Again("transient", detail, failures.retry_after(problem, time.time()))
    return PermanentFailure(
        f"model `{role.plan.role}` (`{role.plan.model}` at `{role.endpoint.id}`) refuses: {detail}",
        hint=failures.fix_for(problem, role.endpoint.key_env),
    )


def read_reply(raw: Any) -> tuple[str, str, Usage | None, str, tuple[dict[str, Any], ...]]:
    """Text, finish reason, usage (None where it is not reported), model, and tool calls of a reply.

    Raises:
        CallFailed: `malformed`: it is no reply in the chat format.
    """
    data = raw if isinstance(raw, dict) else _plain(raw)
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise CallFailed("malformed", "the reply holds no choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise CallFailed("malformed", "the reply holds no message")
    text = message.get("content")
    calls = tuple(call for call in message.get("tool_calls") or () if isinstance(call, dict))
    finish = choices[0].get("finish_reason") or "stop"
    return (
        well_formed(text) if isinstance(text, str) else "",
        str(finish),
        _usage(data.get("usage")),
        str(data.get("model") or ""),
        calls,
    )


def _plain(raw: Any) -> Any:
    dump = getattr(raw, "model_dump", None)
    return dump() if callable(dump) else None


def _usage(reported: Any) -> Usage | None:
    if not isinstance(reported, dict):
        return None
    prompt, completion = reported.get("prompt_tokens"), reported.get("completion_tokens")
    if not isinstance(prompt, int) or not isinstance(completion, int) or not (prompt or completion):
        return None
    cached = (reported.get("prompt_tokens_details") or {}).get("cached_tokens")
    reasoning = (reported.get("completion_tokens_details") or {}).get("reasoning_tokens")
    return Usage(prompt, min(int(cached or 0), prompt), completion, int(reasoning or 0))
