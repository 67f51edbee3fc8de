"""Types of fields and of parameters, units, states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillc.language.fields import TYPES
from skillc.language.functions import PARAMETER_TYPES, UNIT_TYPES
from skillc.language.scope import STATES
from skillc.language.units import SYNONYMS, UNITS, decimal

_FIELDS = {
    "text": "any text",
    "bool": "yes or no; in a metric it counts 1 or 0",
    "number": "a number",
    "integer": "a whole number",
    "json": "a JSON object or list",
    "file": "the path of a file",
    "image": "the path of an image",
    "list": "`list[text]`, `list[number]`: items of one type; `list` alone is `list[text]`",
}
_PARAMETERS = {
    "metric": "a metric's name, or an expression of one rollout",
    "claim": "a written comparison of two means: `candidate.m > incumbent.m`",
    "condition": "a condition on one rollout",
    "text": "a field, or a text in quotes",
    "texts": "a list of texts in quotes",
    "field": "a field that examples can be grouped by",
    "rubric": "a rubric, or a text in quotes",
    "model": "a model's role",
    "skill": "a skill of the program",
}
_STATES = {
    "candidate": "the skill that the gate decides on",
    "incumbent": "the skill that the candidate was made from, and would replace",
    "best": "the accepted skill with the highest mean of the goal so far",
    "initial": "the skill as the program has it, before the first step",
}


def data() -> Mapping[str, Any]:
    """What the page of types is made of."""
    bases = {unit: base for unit, (base, _) in UNITS.items()}
    return {
        "fields": [(name, _FIELDS[name]) for name in TYPES],
        "parameters": [(name, _PARAMETERS.get(name) or _quantity(UNIT_TYPES[name], name)) for name in PARAMETER_TYPES],
        "states": [(name, _STATES[name]) for name in STATES],
        "units": [
            (unit, "a plain number" if not base else f"`{base}`", decimal(UNITS[unit][1]))
            for unit, base in bases.items()
        ],
        "synonyms": sorted(SYNONYMS.items(), key=lambda pair: (pair[1], pair[0])),
    }


def _quantity(unit: str, name: str) -> str:
    if unit:
        return f"a quantity in `{unit}`"
    return "a share such as `5%`" if name == "share" else "a plain number"
