"""Values of a plan as a program writes them, and the plain differences between two of its parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction

from pydantic import BaseModel

from skillc.gates.units import decimal, written
from skillc.plan.schema import AnswerPlan, ExecPlan, PricePlan, RolloutPlan, SchedulePlan, SplitPlan

_TIMES = ((Fraction(3600), "h"), (Fraction(60), "min"))


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
        return _duration(Fraction(value)) if unit == "s" else written(Fraction(value), unit)
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


def fields_that_differ(
    old: BaseModel, new: BaseModel, but: Collection[str] = ()
) -> Iterator[tuple[str, object, object]]:
    """Yield name, old and new value of each field that is not the same."""
    for name in type(new).model_fields:
        before, after = getattr(old, name), getattr(new, name)
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


def _duration(seconds: Fraction) -> str:
    """Render seconds in the largest unit that leaves a whole number: `90 min`."""
    for size, unit in _TIMES:
        if seconds and seconds % size == 0:
            return written(seconds / size, unit)
    return written(seconds, "s")


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


def _schedule(plan: SchedulePlan) -> str:
    arguments = {"model": "", "constant": f"({plan.start})"}
    return plan.kind + arguments.get(plan.kind, f"({plan.start}, {plan.end})")


def _rollout(plan: RolloutPlan) -> str:
    arguments = f"({', '.join(_literal(each) for each in plan.arguments)})" if plan.arguments else ""
    settings = f" {{ {_block(plan.settings)} }}" if plan.settings else ""
    return f"{plan.kind}{arguments}{settings}"


def _split(plan: SplitPlan) -> str:
    unit = " examples" if plan.unit == "examples" else ""
    return " : ".join(f"{part}{unit}" for part in plan.parts)


def _price(plan: PricePlan) -> str:
    pairs = (("input", plan.input), ("output", plan.output), ("cached", plan.cached), ("call", plan.call or None))
    return "; ".join(f"{name} = {written(each, '$')}" for name, each in pairs if each is not None)


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
    SchedulePlan: _schedule,
    RolloutPlan: _rollout,
    SplitPlan: _split,
    PricePlan: _price,
    AnswerPlan: _answer,
    ExecPlan: _exec,
}
