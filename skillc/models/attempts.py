"""One reply from the network: attempts, each with a reservation, until one is complete or no retry helps."""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.models import failures
from skillc.models.calls import Call, Usage, well_formed
from skillc.models.failures import CallFailed, FailureKind, PermanentFailure, outcome_of
from skillc.models.ledger import Receipts, Spending
from skillc.models.pacing import AwayTooLong, Pacing, RefusedTooLong, Slot
from skillc.models.roles import Role, describe_roles
from skillc.redaction import Redactor

_CUT = frozenset({"length", "max_tokens"})


class ChatReply(NamedTuple):
    """A reply in the chat format; `usage` is None where it is not reported."""

    text: str
    finish: str
    usage: Usage | None
    model: str
    tool_calls: tuple[dict[str, Any], ...]


class Attempts:
    """Sends attempts at the pace of their endpoints, with a receipt for each."""

    def __init__(self, receipts: Receipts, pacing: Pacing) -> None:
        self._receipts = receipts
        self._account = receipts.account
        self._pacing = pacing
        self._retries = pacing.retries

    async def run(self, role: Role, arguments: dict[str, Any], call: Call, reserved: Spending) -> str:
        """Return a complete reply in its stored form.

        A refused call waits with its endpoint and uses up no attempt; it gives up with the endpoint, or after many
        refusals while others are served. A lost connection to an endpoint that has answered before is waited out too,
        and uses up an attempt only if others are served meanwhile. Raises the errors of `Client.complete`.
        """
        queue = self._pacing.queue(call.role)
        tried = failed = refused = 0
        while True:
            served = queue.pace.served_count
            tried += 1
            try:
                return await self._once(role, arguments, call, reserved)
            except RefusedTooLong as problem:
                raise CallFailed("transient", f"{problem}, and the endpoint refuses all calls") from None
            except AwayTooLong as problem:
                raise self._pacing.unreachable(call.role, str(problem)) from None
            except _RetryableFailure as problem:
                failure = problem
            others_served = queue.pace.served_count > served
            if failure.waits:
                if queue.outage.over:
                    raise self._pacing.unreachable(call.role, failure.detail)
                failed += others_served
                if failed >= self._retries.attempts:
                    break
            elif failure.refused and self._retries.patience:
                refused += others_served
                if queue.pace.dead or refused >= self._retries.refusals:
                    break
            else:
                failed += 1
                if failed >= self._retries.attempts:
                    break
                await self._pacing.sleep(self._retries.delay(failed - 1, failure.retry_after))
        detail = failure.detail if tried == 1 else f"{failure.detail}, {tried} attempts"
        raise CallFailed(failure.kind, detail) from None

    async def _once(self, role: Role, arguments: dict[str, Any], call: Call, reserved: Spending) -> str:
        await self._account.reserve(reserved)
        queue = self._pacing.queue(call.role)
        try:
            slot = await queue.take(call.role, reserved.tokens)
        except BaseException:
            self._account.release(reserved)
            raise
        try:
            return await self._send(role, arguments, call, reserved, slot)
        finally:
            queue.give(slot)

    async def _send(self, role: Role, arguments: dict[str, Any], call: Call, reserved: Spending, slot: Slot) -> str:
        where = (call.role, call.stage)
        attempt = await self._receipts.sent(where, reserved)

        def settle(usage: Usage) -> None:
            self._receipts.ended(attempt, where, reserved, usage, role.discounted_cost(usage))

        try:
            self._account.check()
        except SkillcError:
            settle(Usage())
            raise
        start = time.monotonic()
        try:
            raw = await role.send(to_send(role, arguments, call))
            seconds = time.monotonic() - start
        except Exception as problem:
            failure = _classify(problem, role)
            if self._is_unserved(failure, problem, call, slot):
                self._receipts.unserved(attempt, call.role, reserved)
            else:
                settle(Usage() if failures.was_refused(problem) else role.worst_case(arguments))
            raise failure from None
        except BaseException:
            settle(role.worst_case(arguments))
            raise
        try:
            reply = read_reply(raw, role.hide)
        except CallFailed as problem:
            settle(role.worst_case(arguments))
            raise _RetryableFailure(problem.kind, problem.detail) from None
        usage = reply.usage or role.worst_case(arguments)
        slot.outcome, slot.used = "served", usage.total
        overuse = overuse_of(usage, reserved, role)
        if overuse is not None:
            # Before the reservation is released, so that it admits no other call.
            self._account.refuse(overuse)
        settle(usage)
        if overuse is not None:
            raise overuse
        return _stored(reply, usage, reply.model or role.plan.model, seconds)

    def _is_unserved(self, failure: Exception, problem: Exception, call: Call, slot: Slot) -> bool:
        """Note the outcome in the slot; return whether the endpoint served nothing and the call waits for it."""
        slot.outcome = outcome_of(problem)
        if not isinstance(failure, _RetryableFailure):
            return False
        failure.waits = slot.outcome == "unreachable" and self._pacing.queue(call.role).outage.known
        failure.refused = slot.outcome == "refused"
        if failure.waits or failure.refused:
            slot.detail, slot.retry_after, slot.used = failure.detail, failure.retry_after, 0
        return failure.waits or failure.refused


def _stored(reply: ChatReply, usage: Usage, model: str, seconds: float) -> str:
    """Return the stored form of a complete reply."""
    if reply.finish in _CUT:
        raise CallFailed("cut", f"the reply was cut at its limit, after {usage.completion:,} tokens", usage=usage)
    if reply.finish == "content_filter" or not (reply.text.strip() or reply.tool_calls):
        raise CallFailed("empty", f"the reply contains no text (finish reason `{reply.finish}`)", usage=usage)
    stored: dict[str, Any] = {
        "text": reply.text,
        "finish": reply.finish,
        "usage": list(usage.counts),
        "model": model,
        "seconds": round(seconds, 4),
    }
    if usage.bound:
        stored["bound"] = True
    if reply.tool_calls:
        stored["tool_calls"] = list(reply.tool_calls)
    return json.dumps(stored)


@dataclass(eq=False)
class _RetryableFailure(Exception):  # noqa: N818
    """A failed attempt that another attempt may repair, after `retry_after` seconds if the server asks for it.

    With `refused` the endpoint had no capacity; with `waits` the next attempt waits until it can be reached again.
    """

    kind: FailureKind
    detail: str
    retry_after: float | None = None
    refused: bool = False
    waits: bool = False


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


def overuse_of(usage: Usage, reserved: Spending, role: Role) -> PermanentFailure | None:
    """Return the error of a call that exceeded its reservation in tokens or in cost at list price; else None."""
    excess = reserved.overuse(usage, role.cost(usage) or 0, "call")
    return PermanentFailure(f"{describe_roles([role])} {excess}", hint=failures.FIXES["overuse"]) if excess else None


def _classify(problem: Exception, role: Role) -> Exception:
    """Classify an attempt's exception; the original is dropped, because its text may contain the key."""
    if isinstance(problem, SkillcError | CallFailed):
        return failures.redact(problem, role.hide)
    detail = failures.scrub(failures.describe(problem), role.hide)
    if failures.is_refusal(problem):
        return CallFailed("empty", detail)
    if not role.backend.embedded:
        if failures.is_malformed(problem):
            return _RetryableFailure("malformed", detail)
        if failures.is_transient(problem):
            return _RetryableFailure("transient", detail, failures.retry_after(problem, time.time()))
    fix = failures.fix_for(problem, role.endpoint.key_env)
    return PermanentFailure(f"{describe_roles([role])} refuses: {detail}", hint=fix)


def read_reply(raw: Any, hide: Redactor) -> ChatReply:
    """Read a reply in the chat format without its secrets; raise `CallFailed` if it is `malformed`.

    Every reply passes through here before anything keeps, shows or sends a part of it.
    """
    dump = getattr(raw, "model_dump", None)
    data = raw if isinstance(raw, dict) else dump() if callable(dump) else None
    choices = data.get("choices") if isinstance(data, dict) else None
    if data is None or not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise CallFailed("malformed", "the reply has no choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise CallFailed("malformed", "the reply has no message")
    text = message.get("content")
    return ChatReply(
        text=hide(well_formed(text)) if isinstance(text, str) else "",
        finish=hide(str(choices[0].get("finish_reason") or "stop")),
        usage=_usage(data.get("usage")),
        model=hide(str(data.get("model") or "")),
        tool_calls=tuple(hide.value(call) for call in message.get("tool_calls") or () if isinstance(call, dict)),
    )


def _usage(reported: Any) -> Usage | None:
    if not isinstance(reported, dict):
        return None
    prompt, completion = reported.get("prompt_tokens"), reported.get("completion_tokens")
    if not isinstance(prompt, int) or not isinstance(completion, int) or not (prompt or completion):
        return None
    cached = (reported.get("prompt_tokens_details") or {}).get("cached_tokens")
    reasoning = (reported.get("completion_tokens_details") or {}).get("reasoning_tokens")
    return Usage(prompt, min(int(cached or 0), prompt), completion, int(reasoning or 0))
