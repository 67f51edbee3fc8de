"""The table of kinds is data that agrees with itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skillc.gates.functions import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS
from skillc.gates.units import SYNONYMS, UNITS, decimal
from skillc.language.arguments import READERS
from skillc.language.forms import Form, SettingKind
from skillc.language.kinds import KINDS, kinds_in
from skillc.language.loop import CAPS


def settings_in(settings: tuple[SettingKind, ...]) -> Iterator[SettingKind]:
    for setting in settings:
        yield setting
        for form in setting.forms:
            yield from settings_in(form.block or ())


def forms_in(setting: SettingKind) -> Iterator[Form]:
    for form in setting.forms:
        yield form
        yield from form.arguments
        yield from form.items


def test_every_kind_and_setting_is_described() -> None:
    for kind in KINDS.values():
        assert kind.about, kind.word
        assert all(parent == "" or parent in KINDS for parent in kind.within)
        for setting in settings_in(kind.settings or ()):
            assert setting.about, setting.name
            assert setting.forms, setting.name
            for form in forms_in(setting):
                assert form.describe()
                assert form.kind != "number" or form.unit in {unit for unit, _ in UNITS.values()} | {"$"}


def test_lookups() -> None:
    assert set(kinds_in("task")) == {"input", "output"}
    assert set(kinds_in("data")) == {"field"}
    assert KINDS["budget"].setting("cost") is not None
    assert KINDS["budget"].setting("costs") is None
    assert all(KINDS["budget"].setting(cap) for cap in CAPS)


def test_every_parameter_of_a_builtin_can_be_read() -> None:
    for builtin in (*EXAMPLE_FUNCTIONS.values(), *RUN_FUNCTIONS.values()):
        assert builtin.about
        assert builtin.usage.startswith(f"{builtin.name}(")
        for parameter in builtin.parameters:
            assert parameter.takes in READERS


@pytest.mark.parametrize(("word", "right"), [("seconds", "s"), ("minutes", "min"), ("usd", "$"), ("percent", "%")])
def test_synonyms_are_no_units(word: str, right: str) -> None:
    assert word not in UNITS
    assert SYNONYMS[word] == right


@pytest.mark.parametrize(
    ("value", "text"),
    [("5", "5"), ("-5", "-5"), ("1/20", "0.05"), ("-1/8", "-0.125"), ("1/3", "1 / 3"), ("31/10", "3.1")],
)
def test_decimals(value: str, text: str) -> None:
    from fractions import Fraction

    assert decimal(Fraction(value)) == text
