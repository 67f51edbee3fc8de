"""Changes of budgets, of the loop's settings and of models, and changes of plain values."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction

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


def shown(value: object, unit: str = "") -> str:
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
        return _part(value)
    if isinstance(value, Mapping):
        return _block(value) or "none"
    if isinstance(value, Collection):
        return ", ".join(shown(each) for each in value) or "none"
    return str(value)


def share(value: Fraction) -> str:
    """Render a share in percent."""
    return f"{decimal(value * 100)}%"


def fields_that_differ(old: object, new: object, but: Collection[str] = ()) -> Iterator[tuple[str, object, object]]:
    """Yield name, old and new value of each field that is not the same."""
    earlier = fields_of(old)
    for name, after in fields_of(new).items():
        before = earlier[name]
        if name not in but and before != after:
            yield name, before, after


def entries_that_differ(
    old: Mapping[str, object], new: Mapping[str, object]
) -> Iterator[tuple[str, object | None, object | None]]:
    """Yield key, old and new value of each entry that is not the same; None where it is missing."""
    for name in (*old, *(name for name in new if name not in old)):
        before, after = old.get(name), new.get(name)
        if before != after:
            yield name, before, after


def _part(value: BaseModel) -> str:
    render = _PARTS.get(type(value))
    if render is not None:
        return render(value)
    pairs = ((name, getattr(value, name)) for name in type(value).model_fields)
    return "; ".join(f"{name} = {shown(each)}" for name, each in pairs if each not in (None, (), {}))


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
    return shown(value)


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
    said = [f"`{plan.shown}`", *([f"answer {_answer(plan.answer)}"] if plan.answer != AnswerPlan() else [])]
    said += [f"in `{plan.folder}`"] if plan.folder is not None else []
    said += [f"given {', '.join(plan.environment)}"] if plan.environment else []
    return ", ".join(said)


_PARTS: Mapping[type[BaseModel], Callable[..., str]] = {
    RolloutPlan: _rollout,
    SplitPlan: _split,
    PricePlan: _price,
    AnswerPlan: _answer,
    ExecPlan: _exec,
}


_UNITS = {each.name: each.unit for each in BUDGET}


def budget_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of the budget."""
    for name, before, after in fields_that_differ(old.plan.budget, new.plan.budget):
        yield _cap(name, before, after)


def _cap(name: str, before: object, after: object) -> Change:
    place = Anchor("budget", None, name if after is not None else None)
    if name == "min_gain":
        one, other = Fraction(str(before)), Fraction(str(after))
        message = (
            f"an accept may add less and still put patience off: `min_gain` was {share(one)} and is {share(other)}"
        )
        return _ruled(name, share(one), share(other), raised=other < one, message=message, place=place)
    was, is_ = (_shown(name, value) for value in (before, after))
    raised = before is not None and (after is None or Fraction(str(after)) > Fraction(str(before)))
    message = (
        f"the budget's `{name}` was {was} and is {is_}" if after is not None else f"the budget caps `{name}` no more"
    )
    return _ruled(name, was, is_, raised=raised, message=message, place=place)


def _shown(name: str, value: object) -> str:
    return "no cap" if value is None else shown(value, _UNITS[name])


def _ruled(name: str, before: str, after: str, *, raised: bool, message: str, place: Anchor) -> Change:
    bearing: Bearing = "looser" if raised else "stricter"
    rule = "budget-raised" if raised else None
    return Change("budget", name, before, after, bearing, rule, message, place=place)


def optimize_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of the loop. `breaking` reports only what decides with less or sees more."""
    before, after = old.plan.optimize, new.plan.optimize
    for name, one, other in fields_that_differ(before, after):
        bearing, rule, message = _weaker(name, before, after)
        place = Anchor("optimize", None, name)
        yield Change("optimize", name, shown(one), shown(other), bearing, rule, message, place=place)
    if old.plan.language != new.plan.language:
        yield Change("optimize", "language", shown(old.plan.language), shown(new.plan.language))


def _weaker(name: str, old: OptimizePlan, new: OptimizePlan) -> tuple[Bearing, str | None, str]:
    if name == "accept":
        if new.accept == "always":
            return "looser", "accept-always", "every candidate is accepted now, whatever the gates say"
        return "stricter", None, ""
    if name == "samples":
        if new.samples < old.samples:
            message = f"gates decide on {new.samples} rollouts of an example where there were {old.samples}"
            return "looser", "samples-lowered", message
        return "stricter", None, ""
    if name == "sees":
        more = [each for each in new.sees if each not in old.sees]
        if more:
            return (
                "looser",
                "sees-widened",
                f"the optimizer may look at {listed(more, 'and')} now",
            )
        return "stricter", None, ""
    return "", None, ""


# What a reply depends on; the rest is how fast and from where it is asked.
_ANSWERS = ("model", "exec", "backend")
_DURATIONS = ("timeout",)


def model_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of each role's model and its settings."""
    before, after = redact_plan(old.plan).models, redact_plan(new.plan).models
    for role in sorted(before.keys() | after.keys()):
        one, other = before.get(role), after.get(role)
        if one is None and other is not None:
            yield Change("models", f"model {role}", None, _name(other), place=Anchor("model", role))
        elif other is None and one is not None:
            yield Change("models", f"model {role}", _name(one), None)
        elif one is not None and other is not None:
            yield from _changed(role, one, other)


def _changed(role: str, old: ModelPlan, new: ModelPlan) -> Iterator[Change]:
    if _name(old) != _name(new):
        yield _change(role, "model", _name(old), _name(new))
    if old.pacing != new.pacing:
        yield from (_change(role, *each) for each in fields_that_differ(old.pacing, new.pacing))
    for name, before, after in entries_that_differ(old.parameters, new.parameters):
        yield _change(role, name, before, after, answers=True)
    for name, before, after in fields_that_differ(old, new, but=("role", "model", "model_env", "parameters", "pacing")):
        if name.endswith("_env"):
            yield _change(role, name.removesuffix("_env"), _variable(before), _variable(after))
        else:
            yield _change(role, name, before, after)


def _change(role: str, name: str, before: object, after: object, *, answers: bool = False) -> Change:
    """Describe one setting that changed; `answers` marks what a reply depends on."""
    whole = name == "model"
    subject = f"model {role}" if whole else f"model {role}: {name}"
    unit = "s" if name in _DURATIONS else ""
    was, is_ = (shown(value, unit) for value in (before, after))
    rule = "model-changed" if answers or name in _ANSWERS else None
    message = f"the {subject} was `{was}` and is `{is_}`"
    return Change("models", subject, was, is_, "", rule, message, place=Anchor("model", role, None if whole else name))


def _name(model: ModelPlan) -> str:
    return model.model or f'env("{model.model_env}")'


def _variable(name: object) -> str | None:
    return None if name is None else f'env("{name}")'
