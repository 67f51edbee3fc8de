"""Changes of a plan for one call: `--set budget.cost=1`, `--model target=provider/name`, `--offline`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar, get_args

from pydantic import JsonValue

from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.gates.units import SYNONYMS, UNITS, described
from skillc.plan.schema import ModelPlan, OptimizePlan, Plan, SchedulePlan
from skillc.text import listed

OFFLINE_MODEL = "rulebook/v1"

# Parameters that mean the same to every provider, so that they outlive a change of provider.
_COMMON = frozenset({"temperature", "top_p", "max_tokens", "seed", "stop"})

Reader = Callable[[str, str], Any]
P = TypeVar("P")

_NUMBER = re.compile(r"(?P<dollar>\$\s?)?(?P<number>\d[\d_]*(?:\.\d+)?)(?P<scale>[kM]\b)?\s*(?P<unit>%|\w+)?")
_SCALES = {"k": 1_000, "M": 1_000_000}
_CALL = re.compile(r"(\w+)\s*\(([^)]*)\)")


def override(plan: Plan, changes: Mapping[str, str]) -> Plan:
    """The plan with settings of `budget`, `optimize` and `data.seed` changed.

    Values are written as in a program (`90 min`, `31M`, `cosine(4, 2)`, `off`); `none` takes a cap away.

    Raises:
        SkillcError: there is no such setting, or the value does not fit it.
    """
    for key, text in changes.items():
        block, dot, name = key.partition(".")
        reader = _SETTINGS.get(key)
        if reader is None or not dot:
            near = suggest(key, _SETTINGS) or next((known for known in _SETTINGS if known.endswith(f".{key}")), None)
            hint = f"did you mean `{near}`?" if near else f"there are {listed(_SETTINGS)}"
            if key == "require":
                hint = f"it has an option of its own: `--require {text.strip()}`"
            raise SkillcError(f"there is no setting `{key}`", hint=hint)
        part = getattr(plan, block)
        changed = type(part)(**{**dict(part), name: reader(key, text.strip())})
        plan = plan.model_copy(update={block: changed})
    return plan


def override_models(plan: Plan, changes: Mapping[str, str]) -> Plan:
    """The plan with other models in its roles.

    A role keeps its settings where the provider stays the same, its price excepted; else those that belong to the old
    provider go: address, key, server, and all parameters that not every provider knows.

    Raises:
        SkillcError: there is no such role, or the model names no provider.
    """
    models = dict(plan.models)
    for role, name in changes.items():
        if role not in models:
            near = suggest(role, models)
            hint = f"did you mean `{near}`?" if near else f"there are {listed(models)}"
            raise SkillcError(f"there is no model `{role}`", hint=hint)
        provider, slash, rest = name.partition("/")
        if not (provider and slash and rest):
            raise SkillcError(f"`{name}` names no provider", hint=f"write `--model {role}=openai/{name.strip('/')}`")
        models[role] = _replaced(models[role], name)
    return plan.model_copy(update={"models": models})


def named(plan: Plan, environ: Mapping[str, str]) -> Plan:
    """The plan with the names of models that the environment holds; those that it does not hold are left open.

    Raises:
        SkillcError: a variable holds no name of a model. Its value is not shown, for it may be a key.
    """
    models = dict(plan.models)
    for role, model in plan.models.items():
        if model.model_env is None or not environ.get(model.model_env):
            continue
        name = environ[model.model_env].strip()
        provider, slash, rest = name.partition("/")
        if not (provider and slash and rest):
            raise SkillcError(
                f"model `{role}` takes its name from `{model.model_env}`, and what that holds names no provider",
                hint=f"export {model.model_env}=openai/gpt-5.5-mini",
            )
        models[role] = model.model_copy(update={"model": name, "model_env": None})
    return plan.model_copy(update={"models": models})


def require_names(plan: Plan) -> None:
    """Sees to it that every model has a name.

    Raises:
        SkillcError: the environment variable that should hold it is not set.
    """
    for role, model in plan.models.items():
        if model.model_env is not None:
            raise SkillcError(
                f"model `{role}` takes its name from `{model.model_env}`, which is not set",
                hint=f"export {model.model_env}=openai/gpt-5.5-mini, or give it once: `--model {role}=provider/name`",
            )


def offline(plan: Plan) -> Plan:
    """The plan with the rulebook in place of every model; settings of other providers go, the reply's limit stays."""
    models = {
        role: model
        if _provider(model.model) == _provider(OFFLINE_MODEL)
        else ModelPlan(role=role, model=OFFLINE_MODEL, max_reply=model.max_reply)
        for role, model in plan.models.items()
    }
    return plan.model_copy(update={"models": models})


def _replaced(model: ModelPlan, name: str) -> ModelPlan:
    if name == model.model:
        return model
    if _provider(name) == _provider(model.model):
        return model.model_copy(update={"model": name, "price": None, "serve": _served_as(model, name)})
    if _provider(name) == _provider(OFFLINE_MODEL):
        return ModelPlan(role=model.role, model=name, max_reply=model.max_reply)
    kept: dict[str, JsonValue] = {key: value for key, value in model.parameters.items() if key in _COMMON}
    return ModelPlan(role=model.role, model=name, parameters=kept, max_reply=model.max_reply)


def _served_as(model: ModelPlan, name: str) -> dict[str, JsonValue] | None:
    """The server's settings for another model: what named the old one goes, unless the new one is its adapter."""
    if model.serve is None:
        return None
    lora = model.serve.get("lora")
    listed = [str(each).partition("=")[0] for each in lora] if isinstance(lora, list) else []
    kept = name.partition("/")[2] in (lora if isinstance(lora, dict) else listed)
    own = ("model", "revision", "tokenizer", "chat_template", "lora")
    return {key: value for key, value in model.serve.items() if kept or key not in own}


def _provider(model: str) -> str:
    return model.partition("/")[0]


# ---- reading values -------------------------------------------------------------------------------


def _amount(unit: str, *, least: int = 0, whole: bool = False, bare: bool = True, none: bool = False) -> Reader:
    """A number in a base unit; `bare` lets the unit be left out, `none` takes the setting away."""

    def read(key: str, text: str) -> Fraction | int | None:
        if none and text == "none":
            return None
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise SkillcError(f"`{key}` takes {_described(unit, whole)}, not `{text}`", hint=_example(key, unit))
        value = Fraction(match["number"].replace("_", "")) * _SCALES.get(match["scale"] or "", 1)
        written = "$" if match["dollar"] else match["unit"]
        value, given = _in_base(key, value, written)
        if given != unit and not (given == "" and bare and written != "%"):
            message = f"`{key}` takes {_described(unit, whole)}, not {described(given)}"
            raise SkillcError(message, hint=_example(key, unit))
        if value < least or (whole and value.denominator != 1):
            kind = "a whole number" if whole else "a number"
            raise SkillcError(f"`{key}` is {kind} of at least {least}, not `{text}`", hint=_example(key, unit))
        return int(value) if whole else value

    return read


def _in_base(key: str, value: Fraction, unit: str | None) -> tuple[Fraction, str]:
    if unit is None:
        return value, ""
    if unit == "$":
        return value, "$"
    if unit not in UNITS:
        near = SYNONYMS.get(unit) or suggest(unit, UNITS)
        raise SkillcError(f"`{key}`: there is no unit `{unit}`", hint=f"did you mean `{near}`?" if near else None)
    base, factor = UNITS[unit]
    return value * factor, base


def _described(unit: str, whole: bool) -> str:
    if unit == "$":
        return "dollars"
    if unit == "s":
        return "a time"
    return f"a number of {unit}" if unit else "a whole number" if whole else "a number"


def _example(key: str, unit: str) -> str:
    value = {"$": "1", "s": "90min", "": "3"}.get(unit, "20")
    return f"for example `--set {key}={value}`"


def _word(*choices: str) -> Reader:
    def read(key: str, text: str) -> str:
        if text not in choices:
            near = suggest(text, choices)
            hint = f"did you mean `{near}`?" if near else f"there are {listed(choices)}"
            raise SkillcError(f"`{key}` is not `{text}`", hint=hint)
        return text

    return read


def _switch(key: str, text: str) -> bool:
    if text not in ("on", "off"):
        raise SkillcError(f"`{key}` is on or off, not `{text}`", hint=f"for example `--set {key}=off`")
    return text == "on"


def _schedule(key: str, text: str) -> SchedulePlan:
    match = _CALL.fullmatch(text)
    kinds = [kind for kind in get_args(SchedulePlan.model_fields["kind"].annotation) if kind != "model"]
    if text == "model":
        return SchedulePlan(kind="model")
    numbers = (match[2] if match else text).split(",")
    kind = match[1] if match else "constant"
    counts = [int(number) for number in numbers if number.strip().isdigit() and int(number) > 0]
    wanted = 1 if kind == "constant" else 2
    if kind not in kinds or len(counts) != len(numbers) or len(counts) != wanted:
        hint = "write `cosine(4, 2)`, `linear(4, 2)`, `constant(4)` or `model`"
        raise SkillcError(f"`{key}` is not `{text}`", hint=hint)
    return SchedulePlan.model_validate({"kind": kind, "start": counts[0], "end": counts[-1]})


def _sees(key: str, text: str) -> tuple[str, ...]:
    sights = ("gold", "feedback", "trajectory")
    named = [name.strip() for name in text.strip("[]").split(",") if name.strip()]
    for name in named:
        _word(*sights)(key, name)
    return tuple(sight for sight in sights if sight in named)


_count = _amount("", least=1, whole=True)
_count_or_zero = _amount("", whole=True)
_SETTINGS: Mapping[str, Reader] = {
    "budget.epochs": _amount("epochs", least=1, whole=True, none=True),
    "budget.steps": _amount("steps", least=1, whole=True, none=True),
    "budget.calls": _amount("", least=1, whole=True, none=True),
    "budget.tokens": _amount("tokens", least=1, whole=True, none=True),
    "budget.cost": _amount("$", none=True),
    "budget.time": _amount("s", bare=False, none=True),
    "budget.patience": _amount("steps", least=1, whole=True, none=True),
    "budget.min_gain": _amount("", bare=True),
    "optimize.method": _word(*get_args(OptimizePlan.model_fields["method"].annotation)),
    "optimize.batch": _amount("examples", least=1, whole=True),
    "optimize.edits": _schedule,
    "optimize.minibatch": _amount("examples", least=1, whole=True),
    "optimize.samples": _count,
    "optimize.candidates": _count,
    "optimize.drafts": _count_or_zero,
    "optimize.screen": _amount("examples", whole=True),
    "optimize.control": _switch,
    "optimize.together": _switch,
    "optimize.replay": _amount("examples", whole=True),
    "optimize.retries": _count_or_zero,
    "optimize.wave": _amount("examples", least=1, whole=True, none=True),
    "optimize.speculate": _switch,
    "optimize.accept": _word("gates", "always"),
    "optimize.rollback": _amount("", none=True),
    "optimize.parents": _word("incumbent", "pareto"),
    "optimize.merge": _switch,
    "optimize.update": _word("edits", "rewrite_section", "rewrite_all"),
    "optimize.tidy": _switch,
    "optimize.accumulate": _count,
    "optimize.sees": _sees,
    "optimize.knowledge": _word("open", "examples"),
    "optimize.successes": _switch,
    "optimize.lapses": _switch,
    "optimize.lookups": _count_or_zero,
    "optimize.rule_counts": _switch,
    "optimize.rejected_buffer": _switch,
    "optimize.slow_update": _switch,
    "optimize.slow_update_samples": _amount("examples", whole=True),
    "optimize.pairs": _word("mixed", "changed", "unchanged"),
    "optimize.meta_skill": _switch,
    "optimize.trajectory_limit": _amount("tokens", least=1, whole=True),
    "data.seed": _count_or_zero,
}
