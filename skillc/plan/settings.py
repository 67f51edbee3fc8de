"""The settings of a program as values of the plan, and their changes for one call: `--set`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeVar, cast, get_args

from pydantic import JsonValue

from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.gates.units import SYNONYMS, UNITS, described
from skillc.language.checked import Amount, Entity, Invocation, Items, Setting, Shares, Value, Word
from skillc.language.kinds import REMOVED
from skillc.plan.schema import BudgetPlan, OptimizePlan, Plan, SchedulePlan
from skillc.syntax.source import Source, Span
from skillc.text import listed

_LITERALS: Mapping[str, JsonValue] = {"on": True, "true": True, "off": False, "false": False, "none": None}


@dataclass(slots=True)
class Findings:
    """What resolving has to say."""

    items: list[Diagnostic] = field(default_factory=list)

    def error(self, code: str, message: str, source: Source, span: Span, hint: str | None = None) -> None:
        """Adds an error."""
        self.items.append(Diagnostic(code, message, Label(source, span), hint=hint))

    def failed(self) -> bool:
        """Whether there is an error among them."""
        return any(item.severity is Severity.ERROR for item in self.items)


def value_of(entity: Entity, name: str) -> Value | None:
    """The value of a setting, None where it is not given."""
    setting = entity.settings.get(name)
    return setting.value if setting is not None else None


def amount_of(entity: Entity, name: str) -> Fraction | None:
    """A number in its base unit."""
    value = value_of(entity, name)
    return value.value if isinstance(value, Amount) else None


def count_of(entity: Entity, name: str) -> int | None:
    """A whole number; the checker has seen to it that it is one."""
    value = amount_of(entity, name)
    return int(value) if value is not None else None


def text_of(entity: Entity, name: str) -> str | None:
    """A quoted text."""
    value = value_of(entity, name)
    return value if isinstance(value, str) else None


def word_of(entity: Entity, name: str) -> str | None:
    """A bare word."""
    value = value_of(entity, name)
    return value.text if isinstance(value, Word) else None


def switch_of(entity: Entity, name: str) -> bool | None:
    """`on` or `off`."""
    value = value_of(entity, name)
    if isinstance(value, bool):
        return value
    literal = _LITERALS.get(value.text) if isinstance(value, Word) else None
    return literal if isinstance(literal, bool) else None


def env_of(value: Value | None) -> str | None:
    """The variable that `env("NAME")` names."""
    if isinstance(value, Invocation) and value.function == "env" and value.arguments:
        name = value.arguments[0]
        return name if isinstance(name, str) else None
    return None


def plain(value: Value) -> JsonValue:
    """A literal as JSON has it: whole numbers as integers, `on` and `off` as true and false, other words as texts."""
    if isinstance(value, Amount):
        return number(value.value)
    if isinstance(value, Word):
        return _LITERALS.get(value.text, value.text)
    if isinstance(value, Items):
        return [plain(item) for item in value.items]
    if isinstance(value, Shares):
        return [number(part.value) for part in value.parts]
    if isinstance(value, Invocation):
        options: dict[str, JsonValue] = {name: plain(option) for name, option in value.options}
        return {"function": value.function, "arguments": [plain(item) for item in value.arguments], **options}
    return value


def number(value: Fraction) -> int | float:
    """The number as JSON has it; `1.0` and `1` are the same."""
    return value.numerator if value.denominator == 1 else float(value)


def plain_block(block: Mapping[str, Setting]) -> dict[str, JsonValue]:
    """The settings of a block as JSON; one with a block of its own holds that, with its word as `kind`."""
    return {name: _plain_setting(setting) for name, setting in block.items()}


def _plain_setting(setting: Setting) -> JsonValue:
    if not setting.block:
        return plain(setting.value)
    head = plain(setting.value)
    return {**({"kind": head} if head not in (None, "", True) else {}), **plain_block(setting.block)}


_COUNTS = (
    *("batch", "minibatch", "samples", "candidates", "drafts", "screen", "replay", "retries", "wave"),
    *("slow_update_samples", "trajectory_limit", "accumulate", "lookups"),
)
_SWITCHES = (
    *("successes", "rejected_buffer", "slow_update", "meta_skill"),
    *("speculate", "lapses", "rule_counts", "control", "together", "tidy"),
)
_WORDS = ("method", "accept", "update", "pairs", "knowledge")
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
            hint = REMOVED.get((block, name), hint)
            if key == "require":
                hint = f"it has an option of its own: `--require {text.strip()}`"
            raise SkillcError(f"there is no setting `{key}`", hint=hint)
        part = getattr(plan, block)
        changed = type(part)(**{**dict(part), name: reader(key, text.strip())})
        plan = plan.model_copy(update={block: changed})
    return plan


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


def _read_sees(key: str, text: str) -> tuple[str, ...]:
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
    "optimize.update": _word("edits", "rewrite_section", "rewrite_all"),
    "optimize.tidy": _switch,
    "optimize.accumulate": _count,
    "optimize.sees": _read_sees,
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
