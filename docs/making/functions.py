"""The functions of the language, from their registry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skillc.gates.functions import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS, Builtin, BuiltinParameter, Level
from skillc.gates.intervals import Interval
from skillc.gates.units import decimal
from skillc.language.arguments import READERS


@dataclass(frozen=True, slots=True)
class Function:
    """A function as its section shows it."""

    usage: str
    name: str
    about: str
    takes: tuple[str, ...]
    gives: str
    since: str | None


def data() -> Mapping[str, Any]:
    """What the page of functions is made of."""
    both = [each for each in EXAMPLE_FUNCTIONS.values() if each.level is None]
    return {
        "example": _shown(each for each in EXAMPLE_FUNCTIONS.values() if each.level is not None),
        "run": _shown(each for each in RUN_FUNCTIONS.values() if each.level is not None),
        "both": _shown(both),
    }


def _shown(functions: Iterable[Builtin]) -> list[Function]:
    return [
        Function(
            each.usage,
            each.name,
            each.about,
            tuple(_taken(parameter) for parameter in each.parameters),
            _given(each),
            None if each.since == "0.1" else each.since,
        )
        for each in functions
    ]


def _taken(parameter: BuiltinParameter) -> str:
    words = what(parameter.takes)
    name = f"{parameter.name} =" if parameter.named else parameter.name
    return f"`{name}` {words}" + ("" if parameter.required else ", optional")


def what(takes: str) -> str:
    """What an argument is, in the words of the function that reads it."""
    told = READERS[takes].__doc__
    if told is None:
        return f"the word `{takes}`"
    words = told.strip().rstrip(".")
    return words if words.startswith(("`", '"')) else words[0].lower() + words[1:]


def _given(function: Builtin) -> str:
    if function.unit is None:
        return {"python": "a number between `low` and `high`, 0 and 1 by default"}.get(
            function.name, "the unit of what it is given"
        )
    if function.unit:
        return f"`{function.unit}`, {_range(function.range)}"
    kind = "a plain number" if function.level is Level.RUN or not function.range.finite else "a score"
    return f"{kind}, {_range(function.range)}"


def _range(found: Interval) -> str:
    low, high = found.bounds
    if low is None:
        return "without bounds"
    return f"at least {decimal(low)}" if high is None else f"from {decimal(low)} to {decimal(high)}"
