"""The kinds of statements, from their table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from docs.making.examples import EXAMPLES
from skillc.language.forms import Form, SettingKind
from skillc.language.kinds import EXTRA_PARAMETERS, KINDS, Kind
from skillc.language.loop import OPTIMIZE
from skillc.language.rollouts import ROLLOUT


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of a table of settings."""

    name: str
    value: str
    default: str
    about: str


@dataclass(frozen=True, slots=True)
class Block:
    """The block behind a value of a setting: how it is opened, and its settings."""

    opened: str
    settings: tuple[Setting, ...]
    passes: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """One kind, as a section of the page shows it."""

    word: str
    about: str
    shape: str
    notes: tuple[str, ...]
    settings: tuple[Setting, ...]
    blocks: tuple[Block, ...]
    example: str


def data() -> Mapping[str, Any]:
    """What the page of statements is made of."""
    return {
        "statements": [_statement(kind) for kind in KINDS.values()],
        "rollouts": [_rollout(form, word) for form in ROLLOUT for word in (form.words or (form.name,))],
        "extra": EXTRA_PARAMETERS,
    }


def loop() -> Mapping[str, Any]:
    """What the page of the optimizer is made of."""
    return {"settings": OPTIMIZE}


def _statement(kind: Kind) -> Statement:
    settings = kind.settings or ()
    return Statement(
        kind.word,
        kind.about,
        _shape(kind),
        tuple(_notes(kind)),
        tuple(_row(each) for each in settings),
        tuple(block for each in settings if each.name != "rollout" for block in _blocks(each.name, each.forms)),
        EXAMPLES[kind.word],
    )


def _shape(kind: Kind) -> str:
    """How a statement of a kind is written, with places in capitals."""
    parts = [f"({'|'.join(kind.modifiers)})"] if kind.modifiers else []
    parts.append(kind.word)
    if kind.name != "forbidden":
        parts.append("NAME" if kind.name == "required" else "[NAME]")
    if kind.parameters:
        parts.append("[(PARAMETERS)]")
    parts += [f"[{' '.join(suffix)}]" for suffix in kind.suffixes]
    text = " ".join(parts)
    if kind.type:
        text += ": TYPE"
    if kind.expression or kind.value or kind.refers:
        needed = kind.expression or kind.word in ("model", "rubric")
        text += " = VALUE" if needed else " [= VALUE]"
    if kind.settings is not None:
        text += (
            " { SETTINGS }"
            if kind.word in ("task", "skill", "data", "optimize", "budget", "evolve")
            else " [{ SETTINGS }]"
        )
    return text


def _notes(kind: Kind) -> Iterator[str]:
    places = [f"in the block of `{place}`" if place else "at the top of a file" for place in kind.within]
    yield f"Written {' or '.join(places)}{', once' if kind.once or kind.word == 'goal' else ''}."
    if kind.name == "optional":
        yield f"With a name it is one to be used elsewhere: `{kind.word} = lab.{kind.word}_name`."
    if kind.value:
        also = ", or the name of another" if kind.refers else ""
        yield f"The value is {describe(kind.value)}{also}."
    elif kind.expression:
        yield "The value is an expression."
    for name, about in kind.bare:
        yield f"`{kind.word} {name}`, without a value, {about}."
    if kind.passes:
        yield "Its block takes any other name with a plain literal, which is passed on as it is."


def _row(setting: SettingKind) -> Setting:
    words = f"{'|'.join(setting.modifiers)} " if setting.modifiers else ""
    return Setting(words + setting.name, describe(setting.forms), setting.default_markdown or "–", setting.about)


def describe(forms: tuple[Form, ...]) -> str:
    """The shapes of a value, in words, with their range."""
    return ", or ".join(_described(form) for form in forms)


def _described(form: Form) -> str:
    text = form.describe()
    if form.kind == "list" and form.items:
        text = f"a list of {describe(form.items)}"
    if form.kind == "number" and form.unit and not form.bare and form.unit != "$":
        text += ", with its unit"
    if form.kind == "number" and form.low is not None and form.high is not None:
        text += f" from {form.low} to {form.high}"
    elif form.kind == "number" and form.low:
        text += f", at least {form.low}"
    return text


def _blocks(opened: str, forms: tuple[Form, ...]) -> Iterator[Block]:
    for form in forms:
        if form.block:
            behind = form.words[0] if form.words else form.example() if form.kind == "call" else ""
            behind = '"..."' if form.kind == "text" else behind
            name = f"{opened} = {behind}".rstrip(" =") if behind else opened
            yield Block(name, tuple(_row(each) for each in form.block), form.passes)
            for each in form.block:
                yield from _blocks(each.name, each.forms)


@dataclass(frozen=True, slots=True)
class Rollout:
    """A way to run a rollout: how it is written, its settings, and the version of skillc that runs it."""

    written: str
    settings: tuple[Setting, ...]
    passes: bool
    since: str | None


def _rollout(form: Form, word: str) -> Rollout:
    written = form.example() if form.kind == "call" else word
    rows = tuple(_row(each) for each in form.block or ())
    return Rollout(written, rows, form.passes, None)
