"""Whether a budget can pay: an error only if not even the least would do, a warning if the estimate is above it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from skillc.budget.bounds import Bounds
from skillc.budget.spend import Least, Spend, price_hint
from skillc.diagnostics.diagnostic import Severity
from skillc.plan import figures
from skillc.plan.advice import Advice
from skillc.plan.schema import Plan

Measure = Callable[[Spend], int | Fraction | None]

_MEASURES: dict[str, Measure] = {
    "calls": lambda spend: spend.calls,
    "tokens": lambda spend: spend.tokens,
    "cost": lambda spend: spend.cost,
}


def budget_advice(plan: Plan, bounds: Bounds) -> Iterator[Advice]:
    """What is to be said about the caps on calls, tokens and cost."""
    yield from _unknown_prices(plan, bounds)
    for name, measure in _MEASURES.items():
        cap, least = getattr(plan.budget, name), measure(bounds.minimum.total)
        if cap is None or least is None:
            continue
        at = ("budget", None, name)
        if least > cap:
            sums = arithmetic(bounds.minimum, name)
            message = f"the budget can't pay for a run with a result: {sums}, the budget allows {_shown(name, cap)}"
            yield Advice("SK501", Severity.ERROR, message, at, f"the least that would do is `{_setting(name, least)}`")
            continue
        estimate = measure(bounds.estimate)
        if estimate is not None and estimate > cap:
            message = f"a whole run is estimated at {_shown(name, estimate)}, the budget ends it at {_shown(name, cap)}"
            hint = f"`{_setting(name, estimate)}` would do; what was learnt till then is kept and tested"
            yield Advice("SK551", Severity.WARNING, message, at, hint)


def arithmetic(least: Least, measure: str) -> str:
    """The sum behind the least, written out: `baseline 80 + 3 decisions x (...) + final test 2 x 160 = 766 calls`."""
    of = _MEASURES[measure]
    parts = [f"preflight {_shown(measure, of(least.preflight), bare=True)}"] if least.preflight.calls else []
    parts.append(f"baseline {_shown(measure, of(least.baseline), bare=True)}")
    if least.once.calls:
        parts.append(f"training examples {_shown(measure, of(least.once), bare=True)}")
    if measure == "calls":
        each = {
            "rollouts": least.rollouts,
            "reflections": least.reflections,
            "on the batch": least.on_batch,
            "validation": least.validation,
        }
        inner = " + ".join(f"{figures.count(spend.calls)} {name}" for name, spend in each.items() if spend.calls)
        parts.append(f"{least.decisions} decisions x ({inner})")
    else:
        parts.append(f"{least.decisions} decisions x {_shown(measure, of(least.decision), bare=True)}")
    if least.test.calls:
        half = of(least.test)
        assert half is not None
        one = half / 2 if isinstance(half, Fraction) else half // 2
        parts.append(f"final test 2 x {_shown(measure, one, bare=True)}")
    return f"{' + '.join(parts)} = {_shown(measure, of(least.total))}"


def _shown(measure: str, value: int | Fraction | None, *, bare: bool = False) -> str:
    if measure == "cost":
        return figures.dollars(Fraction(value) if value is not None else None)
    whole = int(value or 0)
    text = figures.tokens(whole) if measure == "tokens" else figures.count(whole)
    return text if bare else f"{text} {measure}"


def _setting(measure: str, value: int | Fraction) -> str:
    if measure == "cost":
        return f"cost = ${figures.cents_up(Fraction(value))}"
    return f"{measure} = {figures.rounded_up(int(value)) if measure == 'tokens' else int(value)}"


def _unknown_prices(plan: Plan, bounds: Bounds) -> Iterator[Advice]:
    if plan.budget.cost is None:
        return
    for role, price in bounds.prices.items():
        if price is None:
            model = plan.models[role]
            message = f"the budget caps the cost, and the price of `{model.model}` is not known"
            yield Advice("SK651", Severity.ERROR, message, ("model", role, None), price_hint(model))
