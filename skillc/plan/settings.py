"""The settings of a program as values of the plan, and their overrides for one call: `--set`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar, cast

from pydantic import JsonValue

from skillc.diagnostics.diagnostic import Diagnostic
from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.language.checked import Amount, Entity, Invocation, Items, Setting, Settings, Shares, Value, Word
from skillc.language.forms import SettingKind, settings_of
from skillc.language.kinds import KINDS, REMOVED
from skillc.language.loop import EvolvePlan, SchedulePlan
from skillc.language.settings import read_setting
from skillc.plan.schema import Frozen, Plan
from skillc.text import listed

_LITERALS: Mapping[str, JsonValue] = {"on": True, "true": True, "off": False, "false": False, "none": None}


def plain(value: Value) -> JsonValue:
    """A value as JSON: whole numbers as integers, `on` and `off` as true and false, other words as strings."""
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
    """A number as JSON; whole numbers as integers."""
    return value.numerator if value.denominator == 1 else float(value)


def plain_block(block: Settings) -> dict[str, JsonValue]:
    """The settings of a block as JSON; a setting with a block becomes that block, its word under `kind`."""
    return {name: _plain_setting(setting) for name, setting in block.items()}


def _plain_setting(setting: Setting) -> JsonValue:
    head = plain(setting.value)
    if not setting.block:
        return head
    return {**({"kind": head} if head not in (None, "", True) else {}), **plain_block(setting.block)}


B = TypeVar("B")


def block_plan(block: type[B], entity: Entity | None) -> B:
    """The part of the plan that a block declares, with defaults for the other settings."""
    given = entity.settings if entity is not None else {}
    return block(
        **{each.name: _in_plan(each, given[each.name].value) for each in settings_of(block) if each.name in given}
    )


def override(plan: Plan, changes: Mapping[str, str]) -> Plan:
    """Change settings of a plan: `budget.cost=1`.

    Values are written as in a program (`90 min`, `31M`, `cosine(4, 2)`, `off`); `none` removes a cap.

    Raises:
        SkillcError: the setting is unknown, or the value does not fit it.
    """
    known = {
        f"{kind.word}.{each.name}": each for kind in KINDS.values() for each in kind.settings or () if each.changeable
    }
    for key, text in changes.items():
        if key not in known:
            raise _unknown(key, text, known)
        block, _, name = key.partition(".")
        part = getattr(plan, block) or EvolvePlan()
        value = _changed(key, known[key], text.strip())
        changed = part.model_copy(update={name: value}) if isinstance(part, Frozen) else replace(part, **{name: value})
        plan = plan.model_copy(update={block: changed})
    return plan


def _unknown(key: str, text: str, known: Collection[str]) -> SkillcError:
    block, _, name = key.partition(".")
    near = suggest(key, known) or next((each for each in known if each.endswith(f".{key}")), None)
    hint = REMOVED.get((block, name)) or (f"did you mean `{near}`?" if near else f"valid settings: {listed(known)}")
    if key == "require":
        hint = f"use `--require {text.strip()}`"
    return SkillcError(f"unknown setting `{key}`", hint=hint)


def _changed(key: str, setting: SettingKind, text: str) -> object:
    if text == "none" and setting.default is None:
        return None
    value = read_setting(setting, text)
    if isinstance(value, Diagnostic):
        raise SkillcError(f"{value.message}, in `--set {key}={text}`", hint=value.hint)
    return _in_plan(setting, value)


def _in_plan(setting: SettingKind, value: Value) -> object:
    """The value of a setting in the plan."""
    if isinstance(setting.default, SchedulePlan):
        return _schedule(value)
    if isinstance(value, Amount):
        return int(value.value) if setting.forms[0].whole else value.value
    if isinstance(value, Items) and setting.forms[0].items[0].kind == "text":
        return tuple(item for item in value.items if isinstance(item, str))
    if isinstance(value, Items):
        named = {item.text for item in value.items if isinstance(item, Word)}
        return tuple(word for word in setting.forms[0].items[0].words if word in named)
    return value.text if isinstance(value, Word) else value


def _schedule(value: Value) -> SchedulePlan:
    """`constant(4)`, `linear(4, 2)`, `cosine(4, 2)`, `model`, or a number alone, which is constant."""
    if isinstance(value, Word):
        return SchedulePlan(kind="model")
    kind, given = (value.function, value.arguments) if isinstance(value, Invocation) else ("constant", (value,))
    numbers = [int(number.value) for number in given if isinstance(number, Amount)]
    return SchedulePlan(kind=cast("Any", kind), start=numbers[0], end=numbers[-1])


def with_trained(plan: Plan, name: str) -> Plan:
    """Return the plan that trains another skill of the program, `--set skill.train=NAME`.

    Raises:
        SkillcError: the program has no such skill, or nothing of it can be trained.
    """
    skills = (plan.skill, *plan.others)
    chosen = next((skill for skill in skills if name in (skill.name, skill.artifact)), None)
    if chosen is None:
        raise SkillcError(
            f"`skill.train`: the program has no skill `{name}`", hint=f"it has {listed(s.name for s in skills)}"
        )
    if not chosen.about_trainable and all(section.mode == "frozen" for section in chosen.sections):
        raise SkillcError(f"`skill.train`: `{name}` has no trainable part", hint="add `trainable section rules`")
    return plan.model_copy(update={"skill": chosen, "others": tuple(skill for skill in skills if skill is not chosen)})
