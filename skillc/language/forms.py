"""The shapes that a setting's value may have, as data for the table of kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skillc.text import listed


@dataclass(frozen=True, slots=True)
class Form:
    """One shape of a value.

    Attributes:
        kind: `text` is quoted, `word` one of `words`, `call` is `name(arguments)`, `switch` is `on` or `off`, `field`
            names a field of the program, `plain` is any literal that is passed on as it is, `block` is `{ ... }` alone.
        unit: base unit of a `number`.
        bare: whether a `number` may be written without its unit, because the setting is named after it.
        whole: whether a `number` has no fraction.
        low: least value of a `number` in its base unit; None where there is none.
        high: greatest value.
        words: the words to choose from.
        name: the function of a `call`.
        arguments: forms of the positional arguments of a `call`; `many` lets the last one repeat.
        items: forms of the elements of a `list`.
        block: settings that may stand in a block behind the value; None where no block may follow.
        passes: whether that block takes any name with a plain literal.
    """

    kind: Literal["text", "number", "word", "switch", "call", "list", "ratio", "field", "plain", "block"]
    unit: str = ""
    bare: bool = True
    whole: bool = False
    low: int | None = None
    high: int | None = None
    words: tuple[str, ...] = ()
    name: str = ""
    arguments: tuple[Form, ...] = ()
    many: bool = False
    items: tuple[Form, ...] = ()
    block: tuple[SettingKind, ...] | None = None
    passes: bool = False

    def described(self) -> str:
        """The shape in a few words, for messages and for the reference."""
        if self.kind == "number":
            return _number(self)
        if self.kind == "word":
            return listed(self.words, "or")
        if self.kind == "call":
            return f"`{self.example()}`"
        return _DESCRIBED[self.kind]

    def example(self) -> str:
        """How a `call` is written."""
        numbers = iter(("4", "2", "1"))
        inner = (next(numbers) if each.kind == "number" else '"..."' for each in self.arguments)
        return f"{self.name}({', '.join(inner)})"


_DESCRIBED = {
    "text": "a text in quotes",
    "switch": "`on` or `off`",
    "list": "a list in brackets",
    "ratio": "a ratio such as `2 : 1 : 2`",
    "field": "the name of a field",
    "plain": "a plain literal",
    "block": "a block",
}


def _number(form: Form) -> str:
    if form.unit == "$":
        return "an amount in dollars such as `$3`"
    if not form.unit:
        return "a whole number" if form.whole else "a number"
    return f"a number of {'seconds' if form.unit == 's' else form.unit}"


@dataclass(frozen=True, slots=True)
class SettingKind:
    """A setting: its name, the shapes that its value may have, and what the reference says about it.

    `modifiers` are the words that may stand in front, as in `trainable about = "..."`; `default` is for readers, the
    plan fills it in.
    """

    name: str
    forms: tuple[Form, ...]
    about: str
    default: str | None = None
    modifiers: tuple[str, ...] = ()


TEXT = Form("text")
SWITCH = Form("switch")
PLAIN = Form("plain")
FIELD = Form("field")
ENV = Form("call", name="env", arguments=(TEXT,))


def count(unit: str = "", *, low: int = 1) -> Form:
    """A whole number of something that the setting is named after, so that the unit may be left out."""
    return Form("number", unit=unit, whole=True, low=low)


def amount(unit: str, *, low: int = 0, whole: bool = False) -> Form:
    """A quantity that needs its unit."""
    return Form("number", unit=unit, bare=False, whole=whole, low=low)


def number(low: int | None = None, high: int | None = None) -> Form:
    """A plain number or a share."""
    return Form("number", low=low, high=high)


def words(*choices: str) -> Form:
    """One of a few words."""
    return Form("word", words=choices)
