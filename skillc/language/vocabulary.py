"""The vocabulary of the language, for syntax highlighting."""

from __future__ import annotations

from skillc.dataclass import dataclass
from skillc.gates.functions import NAMES
from skillc.gates.units import UNITS
from skillc.language.forms import Form, SettingKind
from skillc.language.functions import PARAMETER_TYPES
from skillc.language.kinds import KINDS, STATES, TYPES

CONSTANTS = ("on", "off", "none")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of the language by role, each sorted.

    Attributes:
        kinds: words that declare something.
        modifiers: words before a kind.
        settings: names of settings.
        values: words and functions allowed as the value of a setting.
    """

    kinds: tuple[str, ...]
    modifiers: tuple[str, ...]
    settings: tuple[str, ...]
    values: tuple[str, ...]
    functions: tuple[str, ...]
    states: tuple[str, ...]
    types: tuple[str, ...]
    units: tuple[str, ...]


def vocabulary() -> Vocabulary:
    """Collect the words from the tables of kinds, functions, types and units."""
    settings: set[str] = set()
    values: set[str] = set()
    modifiers: set[str] = set()
    for kind in KINDS.values():
        modifiers |= {*kind.modifiers, *(word for suffix in kind.suffixes for word in suffix)}
        values |= {name for name, _ in kind.bare}
        _collect(kind.settings or (), settings, values)
        for form in kind.value:
            _collect_form(form, settings, values)
    return Vocabulary(
        kinds=tuple(sorted(KINDS)),
        modifiers=tuple(sorted(modifiers)),
        settings=tuple(sorted(settings)),
        values=tuple(sorted(values - set(CONSTANTS))),
        functions=tuple(sorted(NAMES)),
        states=tuple(sorted(STATES)),
        types=tuple(sorted({*TYPES, *PARAMETER_TYPES})),
        units=tuple(sorted(unit for unit in UNITS if unit.isalpha())),
    )


def _collect(found: tuple[SettingKind, ...], settings: set[str], values: set[str]) -> None:
    for setting in found:
        settings.add(setting.name)
        for form in setting.forms:
            _collect_form(form, settings, values)


def _collect_form(form: Form, settings: set[str], values: set[str]) -> None:
    values |= {*form.words} | ({form.name} if form.name else set())
    for each in form.items:
        _collect_form(each, settings, values)
    _collect(form.block or (), settings, values)
