"""Changes of budgets, loop settings and models; values rendered as a program writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction
from typing import TypeVar

from pydantic import BaseModel

from skillc.gates.units import decimal, format_duration, format_quantity
from skillc.json_values import fields_of
from skillc.language.loop import BUDGET, OptimizePlan
from skillc.plan.digest import redact_plan
from skillc.plan.schema import (
    AnswerPlan,
    ExecPlan,
    ModelPlan,
    PricePlan,
    RolloutPlan,
    SplitPlan,
)
from skillc.text import listed
from skillc.versions.change import Anchor, Bearing, Change
from skillc.versions.version import Version

T = TypeVar("T")


def render_value(value: object, unit: str = "") -> str:
    """Render a value on one line, as a program writes it.

    Args:
        value: of a plan.
        unit: of a number, as the language writes it.
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | Fraction):
        return format_duration(Fraction(value)) if unit == "s" else format_quantity(Fraction(value), unit)
    if isinstance(value, float | str):
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) and " " in value else str(value)
    if isinstance(value, BaseModel):
        return _block_text(value)
    if isinstance(value, Mapping):
        return _block(value) or "none"
    if isinstance(value, Collection):
        return ", ".join(render_value(each) for each in value) or "none"
    return str(value)


def fields_that_differ(old: object, new: object, but: Collection[str] = ()) -> Iterator[tuple[str, object, object]]:
    """Yield name, old and new value of each field that changed."""
    for name in {**fields_of(old), **fields_of(new)}:
        before, after = getattr(old, name), getattr(new, name)
        if name not in but and before != after:
            yield name, before, after


def entries_that_differ(old: Mapping[str, T], new: Mapping[str, T]) -> Iterator[tuple[str, T | None, T | None]]:
    """Yield key, old and new value of each entry that changed, those of `old` first; None if it is missing."""
    for name in {**old, **new}:
        before, after = old.get(name), new.get(name)
        if before != after:
            yield name, before, after


def _block_text(value: BaseModel) -> str:
    render = _RENDERERS.get(type(value))
    if render is not None:
        return render(value)
    pairs = ((name, getattr(value, name)) for name in type(value).model_fields)
    return "; ".join(f"{name} = {render_value(each)}" for name, each in pairs if each not in (None, (), {}))


def _block(settings: Mapping[str, object]) -> str:
    """Render settings without their braces: `max_len = 8192; env { A = "b" }`."""
    return "; ".join(
        f"{name} {{ {_block(each)} }}" if isinstance(each, Mapping) else f"{name} = {_literal(each)}"
        for name, each in settings.items()
    )


def _literal(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(each) for each in value)}]"
    return render_value(value)


def _rollout(plan: RolloutPlan) -> str:
    arguments = f"({', '.join(_literal(each) for each in plan.arguments)})" if plan.arguments else ""
    settings = f" {{ {_block(plan.settings)} }}" if plan.settings else ""
    return f"{plan.kind}{arguments}{settings}"


def _split(plan: SplitPlan) -> str:
    unit = " examples" if plan.unit == "examples" else ""
    return " : ".join(f"{part}{unit}" for part in plan.parts)


def _price(plan: PricePlan) -> str:
    pairs = (("input", plan.input), ("output", plan.output), ("cached", plan.cached), ("call", plan.call or None))
    return "; ".join(f"{name} = {format_quantity(each, '$')}" for name, each in pairs if each is not None)


def _answer(plan: AnswerPlan) -> str:
    if plan.kind == "json":
        return f"json {'.'.join(str(step) for step in plan.path)}"
    return f"{plan.kind} {_literal(plan.text)}" if plan.text else plan.kind


def _exec(plan: ExecPlan) -> str:
    parts = [f"`{plan.shown}`", *([f"answer {_answer(plan.answer)}"] if plan.answer != AnswerPlan() else [])]
    parts += [f"in `{plan.folder}`"] if plan.folder is not None else []
    parts += [f"given {', '.join(plan.environment)}"] if plan.environment else []
    return ", ".join(parts)


_RENDERERS: Mapping[type[BaseModel], Callable[..., str]] = {
    RolloutPlan: _rollout,
    SplitPlan: _split,
    PricePlan: _price,
    AnswerPlan: _answer,
    ExecPlan: _exec,
}


# ---- budget ---------------------------------------------------------------------------------------

_UNITS = {each.name: each.unit for each in BUDGET}


def budget_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of the budget."""
    for name, before, after in fields_that_differ(old.plan.budget, new.plan.budget):
        if name == "min_gain":
            one, other = Fraction(str(before)), Fraction(str(after))
            was, is_ = (f"{decimal(value * 100)}%" for value in (one, other))
            raised = other < one
            message = f"a smaller gain now resets `patience`: `min_gain` was {was} and is {is_}"
        else:
            was, is_ = ("no cap" if value is None else render_value(value, _UNITS[name]) for value in (before, after))
            raised = before is not None and (after is None or Fraction(str(after)) > Fraction(str(before)))
            message = f"the budget's `{name}` was {was} and is {is_}"
            if after is None:
                message = f"the budget no longer caps `{name}`"
        anchor = Anchor("budget", None, name if after is not None else None)
        rule = "budget-raised" if raised else None
        yield Change("budget", name, was, is_, anchor, rule, message, stated="looser" if raised else "stricter")


# ---- the loop -------------------------------------------------------------------------------------


def optimize_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of the loop. `breaking` reports those that decide on less or see more."""
    before, after = old.plan.optimize, new.plan.optimize
    for name, one, other in fields_that_differ(before, after):
        weaker = _weaker(name, before, after)
        stated: Bearing = "stricter" if name in ("accept", "samples", "sees") and weaker is None else ""
        rule, message = weaker or (None, "")
        anchor = Anchor("optimize", None, name)
        yield Change("optimize", name, render_value(one), render_value(other), anchor, rule, message, stated=stated)
    if old.plan.language != new.plan.language:
        yield Change("optimize", "language", render_value(old.plan.language), render_value(new.plan.language))


def _weaker(name: str, old: OptimizePlan, new: OptimizePlan) -> tuple[str, str] | None:
    """Return the rule and message of a setting that decides on less or sees more."""
    if name == "accept" and new.accept == "always":
        return "accept-always", "every candidate is accepted now, whatever the gates decide"
    if name == "samples" and new.samples < old.samples:
        return "samples-lowered", f"gates decide on {new.samples} rollouts per example, before on {old.samples}"
    more = [each for each in new.sees if each not in old.sees]
    if name == "sees" and more:
        return "sees-widened", f"the optimizer may see {listed(more, 'and')} now"
    return None


# ---- models ---------------------------------------------------------------------------------------

# Settings that change replies; the others change only speed and address.
_CHANGE_REPLIES = ("model", "exec", "backend")


def model_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of each role's model and its settings."""
    before, after = redact_plan(old.plan).models, redact_plan(new.plan).models
    for role, one, other in sorted(entries_that_differ(before, after), key=lambda each: each[0]):
        if one is not None and other is not None:
            yield from _changed_model(role, one, other)
        elif other is not None:
            yield Change("models", f"model {role}", None, _model_name(other), Anchor("model", role))
        elif one is not None:
            yield Change("models", f"model {role}", _model_name(one), None)


def _changed_model(role: str, old: ModelPlan, new: ModelPlan) -> Iterator[Change]:
    if _model_name(old) != _model_name(new):
        yield _setting(role, "model", _model_name(old), _model_name(new))
    if old.pacing != new.pacing:
        yield from (_setting(role, *each) for each in fields_that_differ(old.pacing, new.pacing))
    for name, before, after in entries_that_differ(old.parameters, new.parameters):
        yield _setting(role, name, before, after, is_parameter=True)
    for name, was, is_ in fields_that_differ(old, new, but=("role", "model", "model_env", "parameters", "pacing")):
        if name.endswith("_env"):
            was, is_ = (None if value is None else f'env("{value}")' for value in (was, is_))
        yield _setting(role, name.removesuffix("_env"), was, is_)


def _setting(role: str, name: str, before: object, after: object, *, is_parameter: bool = False) -> Change:
    whole = name == "model"
    subject = f"model {role}" if whole else f"model {role}: {name}"
    was, is_ = (render_value(value, "s" if name == "timeout" else "") for value in (before, after))
    rule = "model-changed" if is_parameter or name in _CHANGE_REPLIES else None
    message = f"the {subject} was `{was}` and is `{is_}`"
    return Change("models", subject, was, is_, Anchor("model", role, None if whole else name), rule, message)


def _model_name(model: ModelPlan) -> str:
    return model.model or f'env("{model.model_env}")'
