"""Accounts with caps, the receipts of paid attempts, and the reserve for the final test.

Nothing is sent without a reservation, and no call exceeds a cap. `charged` counts every logical call once, from the
network or the cache: it is deterministic, and decides where a run stops. `paid` counts what the network took, including
retries and orphaned attempts. The invariants are in docs/design/budgets.md.
"""

from __future__ import annotations

import asyncio
import math
import operator
from collections import Counter, deque
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from pydantic import JsonValue

from skillc.budget.bounds import Bounds
from skillc.budget.spend import Spend
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.language.loop import BudgetPlan
from skillc.models.calls import Usage
from skillc.models.failures import BudgetReached, PermanentFailure
from skillc.store import RunStore

NANO_PER_DOLLAR = 1_000_000_000


class Spending(NamedTuple):
    """Calls, tokens, and nano-dollars; the last two are the part of judges."""

    calls: int = 0
    tokens: int = 0
    cost: int = 0
    judge_calls: int = 0
    judge_cost: int = 0

    def plus(self, other: Spending) -> Spending:
        """Add each of them."""
        return Spending(*map(operator.add, self, other))

    def minus(self, other: Spending) -> Spending:
        """Subtract each of them."""
        return Spending(*map(operator.sub, self, other))

    def judging(self) -> Spending:
        """Return the same, as spent by judges."""
        return self._replace(judge_calls=self.calls, judge_cost=self.cost)

    def overuse(self, usage: Usage, cost: int, unit: str) -> str | None:
        """Describe how one call or rollout exceeded this reservation, in tokens or in nano-dollars; None if not."""
        if usage.total > self.tokens:
            return f"used {usage.total:,} tokens in one {unit}; {self.tokens:,} were reserved"
        if cost > self.cost:
            return f"cost ${cost / NANO_PER_DOLLAR:.6f} in one {unit}; ${self.cost / NANO_PER_DOLLAR:.6f} was reserved"
        return None


class Caps(NamedTuple):
    """The most of each; None means no cap."""

    calls: int | None = None
    tokens: int | None = None
    cost: int | None = None
    judge_calls: int | None = None
    judge_cost: int | None = None

    @classmethod
    def of(cls, budget: BudgetPlan) -> Caps:
        """Convert the declared caps; dollars become whole nano-dollars, rounded down."""
        return cls(
            budget.calls, budget.tokens, _whole_nano(budget.cost), budget.judge_calls, _whole_nano(budget.judge_cost)
        )

    def exceeded_by(self, amount: Spending) -> str | None:
        """Return the name of the first cap that an amount exceeds."""
        limits = zip(self._fields, self, amount, strict=True)
        return next((name for name, cap, value in limits if cap is not None and value > cap), None)


def _whole_nano(dollars: Fraction | None) -> int | None:
    return None if dollars is None else int(Fraction(dollars) * NANO_PER_DOLLAR)


# Role and stage.
RoleStage: TypeAlias = tuple[str, str]


class Account:
    """Spending under caps, with a queue of reservations and totals per role and stage; all on one event loop.

    Reservations are granted first in, first out. A head of the queue that does not fit waits for calls in flight, since
    each settlement frees the difference between the worst case and the actual usage. If nothing is in flight and it
    still does not fit, the account closes: the head and all behind it get `BudgetReached`. So the order of the calls
    alone decides where a run stops.

    Attributes:
        lines: totals by role and stage.
        spent: by all settled calls.
        reserved: the most that calls in flight may spend.
        closed_by: the cap that closed the account.
    """

    def __init__(self, caps: Caps) -> None:
        self.lines: dict[RoleStage, Tally] = {}
        self.spent = Spending()
        self.reserved = Spending()
        self.closed_by: str | None = None
        self._caps = caps if any(cap is not None for cap in caps) else None
        self._queue: deque[tuple[Spending, asyncio.Future[None]]] = deque()
        self._aside = Spending()
        self._largest = Spending()
        self._refusal: SkillcError | None = None

    def ask(self, amount: Spending) -> asyncio.Future[None]:
        """Join the queue; the future raises `BudgetReached`, or the error that `refuse` was given."""
        self._largest = Spending(*map(max, self._largest, amount))
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((amount, granted))
        self._advance()
        return granted

    async def reserve(self, amount: Spending) -> None:
        """Wait until the amount is reserved; raise `BudgetReached` if a cap does not admit it."""
        await self.granted(amount, self.ask(amount))

    def try_reserve(self, amount: Spending) -> bool:
        """Reserve an amount now if it fits and the queue is empty; return whether it did. Never closes the account."""
        self._advance()
        if self._queue or self.closed_by or self._refusal is not None or self._exceeded(amount):
            return False
        self.reserved = self.reserved.plus(amount)
        return True

    async def granted(self, amount: Spending, place: asyncio.Future[None]) -> None:
        """Wait for a place returned by `ask`; a cancelled caller leaves the queue and holds no reservation."""
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.release(amount)
            else:
                place.cancel()
                self._advance()
            raise

    def settle(self, where: RoleStage, reserved: Spending, usage: Usage, cost: int | None) -> None:
        """Replace a reservation by the usage of one call; `cost` in nano-dollars, None if unknown."""
        self.lines.setdefault(where, Tally()).add(usage, cost)
        spent = Spending(1, usage.total, cost or 0)
        self.spent = self.spent.plus(spent.judging() if reserved.judge_calls else spent)
        self.release(reserved)

    def release(self, reserved: Spending) -> None:
        """Return a reservation."""
        self.reserved = self.reserved.minus(reserved)
        self._advance()

    def set_aside(self, amount: Spending) -> None:
        """Hold an amount back from all calls until `open_reserve`: the expected spending of the final test."""
        self._aside = amount

    def open_reserve(self) -> None:
        """Release the amount set aside, and reopen an account that its caps had closed."""
        self._aside = Spending()
        self.closed_by = None

    def admits(self, calls: int) -> bool:
        """Whether so many calls, each as large as the largest so far, fit under the caps."""
        return self._exceeded(Spending(*(calls * each for each in self._largest))) is None

    def refuse(self, problem: SkillcError) -> None:
        """Refuse all further calls, including those in the queue: a call exceeded its reservation."""
        self._refusal = self._refusal or problem
        self._advance()

    def check(self) -> None:
        """Raise the error that `refuse` was given, for a call that has a reservation and waits to be sent."""
        if self._refusal is not None:
            raise self._refusal

    def as_json(self) -> dict[str, JsonValue]:
        """Return the total, and a line per role and stage in alphabetical order."""
        lines: list[JsonValue] = [
            {"role": role, "stage": stage, **tally.as_json()} for (role, stage), tally in sorted(self.lines.items())
        ]
        return {"total": _sum(self.lines.values()).as_json(), "lines": lines}

    def _exceeded(self, amount: Spending) -> str | None:
        if self._caps is None:
            return None
        return self._caps.exceeded_by(self.spent.plus(self.reserved).plus(self._aside).plus(amount))

    def _advance(self) -> None:
        while self._queue:
            amount, granted = self._queue[0]
            if granted.cancelled():
                self._queue.popleft()
                continue
            if self._refusal is not None:
                self._queue.popleft()
                granted.set_exception(self._refusal)
                continue
            exceeded = self.closed_by or self._exceeded(amount)
            if exceeded and not self.closed_by and self.reserved.calls:
                return
            self._queue.popleft()
            if exceeded:
                self.closed_by = exceeded
                granted.set_exception(BudgetReached(exceeded))
            else:
                self.reserved = self.reserved.plus(amount)
                granted.set_result(None)


@dataclass(slots=True)
class Tally:
    """Running totals.

    Attributes:
        cost: nano-dollars.
        unpriced: calls whose price is not known.
        bounds: calls whose usage was not reported, so that their reservation is counted.
        bound_tokens: tokens of those calls, a part of `prompt` and `completion`.
    """

    calls: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0
    cost: int = 0
    unpriced: int = 0
    bounds: int = 0
    bound_tokens: int = 0

    def add(self, usage: Usage, cost: int | None) -> None:
        """Count one call."""
        self.calls += 1
        self.prompt += usage.prompt
        self.cached += usage.cached
        self.completion += usage.completion
        self.reasoning += usage.reasoning
        self.cost += cost or 0
        self.unpriced += cost is None
        self.bounds += usage.bound
        self.bound_tokens += usage.total if usage.bound else 0

    def include(self, other: Tally) -> None:
        """Add other totals."""
        self.calls += other.calls
        self.prompt += other.prompt
        self.cached += other.cached
        self.completion += other.completion
        self.reasoning += other.reasoning
        self.cost += other.cost
        self.unpriced += other.unpriced
        self.bounds += other.bounds
        self.bound_tokens += other.bound_tokens

    def as_json(self) -> dict[str, JsonValue]:
        """Return the totals by name; `cost_nano` is null where a call had no known price."""
        return {
            "calls": self.calls,
            "prompt": self.prompt,
            "cached": self.cached,
            "completion": self.completion,
            "reasoning": self.reasoning,
            "tokens": self.prompt + self.completion,
            "cost_nano": None if self.unpriced else self.cost,
            "bounds": {"calls": self.bounds, "tokens": self.bound_tokens},
        }


def _sum(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for each in tallies:
        total.include(each)
    return total


class Ledger:
    """The two accounts of a run."""

    def __init__(self, budget: BudgetPlan) -> None:
        caps = Caps.of(budget)
        self.charged = Account(caps)
        self.paid = Account(caps)

    @property
    def stopped(self) -> str | None:
        """The cap that stopped the run, None while none has."""
        return self.charged.closed_by or self.paid.closed_by

    def set_aside(self, amount: Spending) -> None:
        """Hold an amount back for the final test."""
        self.charged.set_aside(amount)
        self.paid.set_aside(amount)

    def open_reserve(self) -> None:
        """Release the amount set aside, for the final test."""
        self.charged.open_reserve()
        self.paid.open_reserve()

    def snapshot(self) -> dict[str, JsonValue]:
        """Return both accounts as JSON values, costs in nano-dollars."""
        return {"charged": self.charged.as_json(), "paid": self.paid.as_json(), "stopped": self.stopped}


class Receipts:
    """Records what the network took, over all sessions of one run, in an account and on the disk.

    A receipt is on the disk before its attempt is sent. An attempt that was in flight when a session was killed keeps
    its whole reservation.

    Attributes:
        in_flight: attempts that were sent and have not ended, by role.
    """

    def __init__(self, account: Account) -> None:
        self.account = account
        self.in_flight: Counter[str] = Counter()
        self.bind(None)

    def bind(self, store: RunStore | None) -> None:
        """Keep receipts in the store of a run from here on, None in no store; add those of its earlier sessions."""
        self._store = store
        self._models = store.models() if store is not None else {}
        self._next = 0
        for attempt in store.attempts() if store is not None else ():
            self._next = attempt.number + 1
            if attempt.state != "refused":
                self._restore((attempt.role, attempt.stage), Spending(*attempt.reserved), attempt.used)

    async def sent(self, where: RoleStage, reserved: Spending) -> int:
        """Record an attempt that is about to be sent under a reservation, and return its number.

        The reservation is released if that fails, or if the account refuses all calls: then raises its error.
        """
        try:
            self.account.check()
            number, self._next = self._next, self._next + 1
            if self._store is not None:
                await self._store.add_attempt(number, *where, reserved)
        except BaseException:
            self.account.release(reserved)
            raise
        self.in_flight[where[0]] += 1
        return number

    def ended(self, number: int, where: RoleStage, reserved: Spending, usage: Usage, cost: int | None) -> None:
        """Replace the reservation of an attempt by its usage, `cost` in nano-dollars."""
        self.in_flight[where[0]] -= 1
        self.account.settle(where, reserved, usage, cost)
        if self._store is not None:
            self._store.end_attempt(number, {"usage": usage.counts, "bound": usage.bound, "cost": cost})

    def unserved(self, number: int, role: str, reserved: Spending) -> None:
        """Release the reservation of an attempt that was refused or not connected, which no cap counts."""
        self.in_flight[role] -= 1
        self.account.release(reserved)
        if self._store is not None:
            self._store.refuse_attempt(number)

    def answered(self, role: str, model: str) -> None:
        """Raise `PermanentFailure` if another model answered for a role earlier in this run."""
        before = self._models.get(role)
        if before is None:
            self._models[role] = model
            if self._store is not None:
                self._store.add_model(role, model)
        elif before != model:
            raise PermanentFailure(
                f"model `{role}` answered as `{before}` earlier in this run and answers as `{model}` now",
                hint="scores of two models are never mixed: pin one version of the model, or start over: `--fresh`",
            )

    def _restore(self, where: RoleStage, reserved: Spending, used: dict[str, Any] | None) -> None:
        self.account.reserved = self.account.reserved.plus(reserved)
        if used is None:
            self.account.settle(where, reserved, Usage(prompt=reserved.tokens, bound=True), reserved.cost)
        else:
            self.account.settle(where, reserved, Usage.of(used["usage"], used["bound"]), used["cost"])


_BASELINE = "baseline"
_TEST = "final test"


class ClosingReserve:
    """The expected spending of the final test of two skills: the plan's estimate, corrected by the baseline's spending.

    If the baseline took more than its own estimate (the provider counts other tokens than the plan, attempts were
    retried, an agent took more turns), the test is assumed to exceed its estimate in the same proportion. The
    reservation of one largest call is added: a call is sent only if its worst case fits, and so is the last one.
    """

    def __init__(self, ledger: Ledger, bounds: Bounds) -> None:
        estimates = {stage.name: stage.bound.estimate for stage in bounds.stages}
        self._ledger = ledger
        self._test = estimates.get(_TEST, Spend())
        self._baseline = estimates.get(_BASELINE, Spend())
        held = [spend for role, spend in bounds.held.items() if role != "optimizer"]
        self._held = max(held, key=lambda spend: spend.tokens, default=Spend())
        judged = (stage.bound.estimate for stages in bounds.judged.values() for stage in stages if stage.name == _TEST)
        self._judged = sum(judged, Spend())

    def set_aside(self) -> None:
        """Set the reserve aside; call it after the baseline."""
        if self._test.calls:
            for account in (self._ledger.charged, self._ledger.paid):
                account.set_aside(self._amount(account))

    def open_reserve(self) -> None:
        """Release it, for the final test."""
        self._ledger.open_reserve()

    def _amount(self, account: Account) -> Spending:
        calls, expected = _baseline_of(self._ledger.charged).calls, max(1, self._baseline.calls)
        # Fewer calls than expected are a part of the baseline; more are rollouts of more turns than expected.
        taken, share = _baseline_of(account), min(Fraction(1), Fraction(calls, expected))
        tokens = self._test.tokens * _excess(taken.prompt + taken.completion, self._baseline.tokens * share)
        return Spending(
            calls=math.ceil(self._test.calls * _excess(taken.calls, min(calls, expected))),
            tokens=math.ceil(tokens) + self._held.tokens,
            cost=math.ceil(_nano(self._test) * _excess(taken.cost, _nano(self._baseline) * share) + _nano(self._held)),
            judge_calls=self._judged.calls,
            judge_cost=math.ceil(_nano(self._judged) + _nano(self._held)) if self._judged.calls else 0,
        )


def _baseline_of(account: Account) -> Tally:
    """Add up the baseline of all roles."""
    return _sum(tally for (_, stage), tally in account.lines.items() if stage == _BASELINE)


def _nano(spend: Spend) -> Fraction:
    return (spend.cost or Fraction(0)) * NANO_PER_DOLLAR


def _excess(taken: int, expected: Fraction | int) -> Fraction:
    """Return the ratio of taken to expected, at least 1."""
    return max(Fraction(1), Fraction(taken) / expected) if expected else Fraction(1)
