"""The loop's mechanisms, and the caps on what it may spend."""

from __future__ import annotations

from typing import Any, Literal, cast

from skillc.language.checked import Amount, Entity, Invocation, Items, Value, Word
from skillc.plan.resolve.values import amount_of, count_of, switch_of, value_of, word_of
from skillc.plan.schema import BudgetPlan, OptimizePlan, SchedulePlan

_COUNTS = (
    *("batch", "minibatch", "samples", "candidates", "drafts", "screen", "replay", "retries", "wave"),
    *("slow_update_samples", "trajectory_limit", "accumulate", "lookups"),
)
_SWITCHES = (
    *("successes", "rejected_buffer", "slow_update", "meta_skill"),
    *("speculate", "merge", "lapses", "rule_counts", "control", "together", "tidy"),
)
_WORDS = ("method", "accept", "parents", "update", "pairs", "knowledge")
_COUNTED_CAPS = ("epochs", "steps", "calls", "tokens", "patience")
_AMOUNTS = ("cost", "time", "min_gain")
_SIGHTS = ("gold", "feedback", "trajectory")


def resolve_optimize(optimize: Entity | None) -> OptimizePlan:
    """The mechanisms; what is not given has its default."""
    if optimize is None:
        return OptimizePlan()
    settings: dict[str, Any] = {name: count_of(optimize, name) for name in _COUNTS}
    settings |= {name: switch_of(optimize, name) for name in _SWITCHES}
    settings |= {name: word_of(optimize, name) for name in _WORDS}
    settings["rollback"] = amount_of(optimize, "rollback")
    settings |= {"edits": schedule(value_of(optimize, "edits")), "sees": _sees(value_of(optimize, "sees"))}
    return OptimizePlan(**{name: value for name, value in settings.items() if value is not None})


def resolve_budget(budget: Entity | None) -> BudgetPlan:
    """The caps; what is not given is not capped."""
    if budget is None:
        return BudgetPlan()
    counts: dict[str, Any] = {
        name: count_of(budget, name) for name in ("epochs", "steps", "calls", "tokens", "patience")
    }
    amounts: dict[str, Any] = {name: amount_of(budget, name) for name in ("cost", "time", "min_gain")}
    return BudgetPlan(**{name: value for name, value in (counts | amounts).items() if value is not None})


def schedule(value: Value | None) -> SchedulePlan | None:
    """`constant(4)`, `linear(4, 2)`, `cosine(4, 2)`, `model`, or a number alone, which is constant."""
    if isinstance(value, Word):
        return SchedulePlan(kind="model")
    if isinstance(value, Amount):
        return SchedulePlan(kind="constant", start=int(value.value), end=int(value.value))
    if not isinstance(value, Invocation):
        return None
    numbers = [int(argument.value) for argument in value.arguments if isinstance(argument, Amount)]
    if not numbers:
        return SchedulePlan(kind=_kind(value.function))
    return SchedulePlan(kind=_kind(value.function), start=numbers[0], end=numbers[-1])


def _kind(name: str) -> Literal["constant", "linear", "cosine", "model"]:
    return cast('Literal["constant", "linear", "cosine", "model"]', name)


def _sees(value: Value | None) -> tuple[str, ...] | None:
    if isinstance(value, Word):
        value = Items((value,))
    if not isinstance(value, Items):
        return None
    named = {item.text for item in value.items if isinstance(item, Word)}
    return tuple(sight for sight in _SIGHTS if sight in named)
