"""Declarations of settings: the forms of a value, its default, and its documentation."""

from __future__ import annotations

from dataclasses import field, fields, replace
from fractions import Fraction
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from skillc.dataclass import dataclass
from skillc.gates.units import format_duration, format_quantity
from skillc.text import listed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a value.

    Attributes:
        kind: `text` is quoted, `word` one of `words`, `call` is `name(arguments)`, `switch` is `on` or `off`, `field`
            names a field of the program, `role` a model, `block` is `{ ... }` alone.
        unit: base unit of a `number`.
        bare: whether a `number` may omit its unit, because the setting is named after it.
        whole: whether a `number` has no fraction.
        low: least value of a `number` in its base unit; None for no bound.
        high: greatest value; None for no bound.
        words: the choices of a `word`.
        name: the function of a `call`.
        arguments: forms of the positional arguments of a `call`; `many` lets the last one repeat.
        options: named arguments of a `call`, all optional.
        items: forms of the elements of a `list`.
        block: settings of the block after the value; None if no block may follow.
        passes: whether that block passes on settings of other names, with literals as values.
    """

    kind: Literal["text", "number", "word", "switch", "call", "list", "ratio", "field", "role", "block"]
    unit: str = ""
    bare: bool = True
    whole: bool = False
    low: int | None = None
    high: int | None = None
    words: tuple[str, ...] = ()
    name: str = ""
    arguments: tuple[Form, ...] = ()
    many: bool = False
    options: tuple[SettingKind, ...] = ()
    items: tuple[Form, ...] = ()
    block: tuple[SettingKind, ...] | None = None
    passes: bool = False

    def describe(self) -> str:
        """Describe the form in messages and in the reference."""
        if self.kind == "number":
            return _number(self)
        if self.kind == "word":
            return listed(self.words, "or")
        if self.kind == "call":
            return f"`{self.example()}`"
        return _DESCRIBED[self.kind]

    def example(self) -> str:
        """A sample `call`."""
        numbers = iter(("4", "2", "1"))
        inner = (next(numbers) if each.kind == "number" else '"..."' for each in self.arguments)
        return f"{self.name}({', '.join(inner)})"


_DESCRIBED = {
    "text": "a text in quotes",
    "switch": "`on` or `off`",
    "list": "a list in brackets",
    "ratio": "a ratio such as `2 : 1 : 2`",
    "field": "the name of a field",
    "role": "the role of a model",
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
    """A setting of a block.

    Attributes:
        forms: the forms that its value may have.
        about: one line for hovers and the reference.
        default: its value in the plan if the program does not set it.
        unset: what applies without it, in words, if no value of the language expresses it.
        modifiers: the words that may come before it, as in `trainable about = "..."`.
        details: text for the page about the optimizer; empty for `about`.
        stages: the stages of a compile whose cost it changes.
        changeable: whether `--set` can change it.
        ends_run: whether a run with this cap always ends.
        truncates: whether it only cuts a run short, so that it is not part of the run's identity.
        sent: whether it is sent with each call of a model.
    """

    name: str
    forms: tuple[Form, ...]
    about: str
    default: object = None
    unset: str = ""
    modifiers: tuple[str, ...] = ()
    details: str = ""
    stages: tuple[str, ...] = ()
    changeable: bool = False
    ends_run: bool = False
    truncates: bool = False
    sent: bool = False

    @property
    def unit(self) -> str:
        """The unit that its value must be written with; empty if none."""
        return next((form.unit for form in self.forms if form.kind == "number" and not form.bare), "")

    @property
    def default_text(self) -> str | None:
        """The default as a program would write it, or in words."""
        return self.unset or (None if self.default is None else self._written(self.default))

    @property
    def default_markdown(self) -> str | None:
        """The default as markdown, a value as code."""
        text = self.default_text
        return text if text is None or self.unset else f"`{text}`"

    def _written(self, value: object) -> str:
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, int | Fraction):
            return format_duration(Fraction(value)) if self.unit == "s" else format_quantity(Fraction(value), self.unit)
        if isinstance(value, tuple):
            parts = [self._written(each) for each in value]
            return " : ".join(parts) if self.forms[0].kind == "ratio" else f"[{', '.join(parts)}]"
        return str(value)


def setting(default: T, about: str, *forms: Form, **attributes: Any) -> T:
    """Declare a setting as a field of a frozen dataclass, which is the block's part of the plan.

    A switch or a choice of words needs no forms: the type of the field implies them. `attributes` are those of
    `SettingKind`.
    """
    kind = SettingKind("", forms, about, default, changeable=True, **attributes)
    return field(default=default, metadata={"setting": kind})


def settings_of(block: type[Any]) -> tuple[SettingKind, ...]:
    """Read the settings of a block from its dataclass."""
    types = get_type_hints(block)
    return tuple(
        replace(kind, name=each.name, forms=kind.forms or (_form_of(types[each.name]),))
        for each in fields(block)
        if (kind := each.metadata["setting"])
    )


def _form_of(type_: Any) -> Form:
    if type_ is bool:
        return SWITCH
    if get_origin(type_) is tuple:
        return Form("list", items=(_form_of(get_args(type_)[0]),))
    return words(*get_args(type_))


TEXT = Form("text")
SWITCH = Form("switch")
FIELD = Form("field")
PLAIN_BLOCK = Form("block", block=(), passes=True)
ENV = Form("call", name="env", arguments=(TEXT,))
PYTHON = Form("call", name="python", arguments=(TEXT,))


def count(unit: str = "", *, low: int = 1) -> Form:
    """A whole number whose unit may be omitted, because the setting is named after it."""
    return Form("number", unit=unit, whole=True, low=low)


def amount(unit: str, *, low: int = 0, whole: bool = False) -> Form:
    """A number with a required unit."""
    return Form("number", unit=unit, bare=False, whole=whole, low=low)


def number(low: int | None = None, high: int | None = None) -> Form:
    """A number without a unit, or a share."""
    return Form("number", low=low, high=high)


def words(*choices: str) -> Form:
    """A choice of words."""
    return Form("word", words=choices)


DOLLARS = amount("$")
TIME = amount("s")
SCHEDULES = (
    Form("call", name="constant", arguments=(count(),)),
    Form("call", name="linear", arguments=(count(), count())),
    Form("call", name="cosine", arguments=(count(), count())),
    words("model"),
    count(),
)
