"""Caps that no run fits into, as far as the text alone says; what the data adds to that is the plan's to say."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from skillc.diagnostics.diagnostic import Report
from skillc.gates.units import decimal
from skillc.language.checked import Amount, CheckedMetric, Entity, Setting, Shares
from skillc.language.facts import amount

LEAST_ROLLOUT_TOKENS = 150
LEAST_QUESTION_TOKENS = 1_000
"""Tokens that stand around a prompt's own content, as `plan/call_sizes.py` reckons them."""


def note_caps(report: Report, entities: Sequence[Entity], metrics: Sequence[CheckedMetric]) -> None:
    """Reports caps on calls, tokens, cost and time that end a run before it shows anything."""
    by_kind = {entity.kind: entity for entity in entities if entity.name is None}
    budget = by_kind.get("budget")
    if budget is None:
        return
    _calls(report, by_kind, budget)
    cost, time = amount(budget.settings, "cost"), amount(budget.settings, "time")
    if cost == 0:
        _no_money(report, entities, budget.settings["cost"])
    if time == 0:
        setting = budget.settings["time"]
        report.warn("SK516", setting.source, setting.span, "no time is allowed", hint="write `time = 90 min`")
    _gain(report, budget, metrics)


def _calls(report: Report, by_kind: dict[str, Entity], budget: Entity) -> None:
    """A run scores the first skill on validation, asks the optimizer once, and tests two skills."""
    validation, test = _sides(by_kind.get("data"))
    optimize = by_kind.get("optimize")
    samples = int(amount(optimize.settings, "samples") or 1) if optimize is not None else 1
    rollouts = validation * samples + 2 * test * samples
    least = {"calls": rollouts + 1, "tokens": rollouts * LEAST_ROLLOUT_TOKENS + LEAST_QUESTION_TOKENS}
    sums = f"the first skill on validation {validation * samples} + a question 1"
    if test:
        sums += f" + final test 2 x {test * samples}"
    for name, needed in least.items():
        cap = amount(budget.settings, name)
        if cap is None or cap >= needed:
            continue
        setting = budget.settings[name]
        message = f"no run does with {decimal(cap)} {name}: it takes at least {sums} = {rollouts + 1} calls"
        hint = f"write `{name} = {needed}` or more"
        if name == "tokens":
            message += f" of {LEAST_ROLLOUT_TOKENS} tokens and more"
            thousands = next(
                (f"{decimal(cap)}{unit}" for unit, by in (("k", 1e3), ("M", 1e6)) if cap * by >= needed), ""
            )
            hint = f"did you mean `{thousands}`?" if thousands else hint
        report.warn("SK516", setting.source, setting.span, message, hint=hint)


def _sides(data: Entity | None) -> tuple[int, int]:
    """The fewest examples of validation and of test: as counted, else one."""
    settings = data.settings if data is not None else {}
    split = settings.get("split")
    if split is None or not isinstance(split.value, Shares):
        return 1, 0 if "source" not in settings and "test" not in settings else 1
    validation, test = [*split.value.parts[1:], Amount(Fraction(0))][:2]
    if validation.unit != "examples":
        return 1, min(1, int(test.value > 0))
    return int(validation.value), int(test.value)


def _no_money(report: Report, entities: Sequence[Entity], setting: Setting) -> None:
    for model in entities:
        price = model.settings.get("price") if model.kind == "model" else None
        rates = (
            {name: each.value.value for name, each in price.block.items() if isinstance(each.value, Amount)}
            if price
            else {}
        )
        if any(rates.values()):
            message = f"the budget is $0, and a call of `{model.name}` has a price"
            report.warn("SK516", setting.source, setting.span, message, hint="write `cost = $3`")
            return


def _gain(report: Report, budget: Entity, metrics: Sequence[CheckedMetric]) -> None:
    """Patience that no accept can reset."""
    gain, goal = amount(budget.settings, "min_gain"), next((metric for metric in metrics if metric.goal), None)
    if gain is None or goal is None or goal.low is None or goal.high is None or gain <= goal.high - goal.low:
        return
    setting = budget.settings["min_gain"]
    message = f"no accept adds more than {decimal(goal.high - goal.low)} to `{goal.name}`, so none resets the patience"
    percent = gain / 100 <= goal.high - goal.low and not goal.unit
    hint = f"did you mean `{decimal(gain)}%`?" if percent else "make it smaller"
    report.warn("SK517", setting.source, setting.span, message, hint=hint)
