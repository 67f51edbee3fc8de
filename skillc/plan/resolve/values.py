"""Typed settings of the checker as the plain values of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from pydantic import JsonValue

from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.language.checked import Amount, Entity, Invocation, Items, Setting, Shares, Value, Word
from skillc.syntax.source import Source, Span

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
