"""What a call, a rollout and a whole compile cost, by the plan's own estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skillc.budget.call_sizes import call_sizes
from skillc.budget.spend import Spend, price_hint
from skillc.doctor.finding import Finding
from skillc.frontend import Estimated
from skillc.plan import figures
from skillc.plan.schema import ModelPlan, Plan, PricePlan
from skillc.text import counted, joined

_GROUP = "cost"


def check_prices(plan: Plan, prices: Mapping[str, PricePlan | None]) -> Iterator[Finding]:
    """What each role's model costs by the million tokens, or by the call."""
    for model in plan.models.values():
        yield _price(model, prices.get(model.role), capped=plan.budget.cost is not None)


def _price(model: ModelPlan, price: PricePlan | None, *, capped: bool) -> Finding:
    if price is None:
        detail = f"the price of `{model.model}` is not known" + (", and the budget caps the cost" if capped else "")
        return Finding(_GROUP, "missing" if capped else "note", model.role, detail, price_hint(model))
    rates = []
    if price.input or price.output:
        entry, reply = figures.dollars(price.input), figures.dollars(price.output)
        rates.append(f"{entry} in, {reply} out per million tokens at most")
    if price.call:
        rates.append(f"{figures.dollars(price.call)} a call")
    return Finding(_GROUP, "ok", model.role, f"`{model.model}`: {joined(rates) or 'free'}")


def check_spend(plan: Plan, estimated: Estimated) -> Iterator[Finding]:
    """One rollout with its judges, and the whole compile, about."""
    bounds = estimated.bounds
    one = call_sizes(plan, bounds.sizes, bounds.prices, bounds.steps).rollout.estimate
    calls = counted(one.calls, "call")
    detail = f"{_about(one)}: {calls}, {figures.tokens(one.tokens)} tokens"
    yield Finding(_GROUP, "ok", "one rollout", detail)
    whole = bounds.estimate
    cap = f"; the budget ends it at {figures.dollars(plan.budget.cost)}" if plan.budget.cost is not None else ""
    detail = f"{_about(whole)}: {whole.calls:,} calls, {figures.tokens(whole.tokens)} tokens{cap}"
    yield Finding(_GROUP, "ok", "a compile", detail)


def _about(spend: Spend) -> str:
    if spend.cost is None:
        return "at a price that is not known"
    return f"about {figures.dollars(spend.cost)}" if spend.cost else "free"
