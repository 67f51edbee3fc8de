"""Types of fields and of parameters, units, states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillc.gates.units import SYNONYMS, UNITS, decimal
from skillc.language.functions import PARAMETER_TYPES, UNIT_TYPES
from skillc.language.kinds import FIELD_TYPES, PARAMETERS, STATES, TYPES


def data() -> Mapping[str, Any]:
    """What the page of types is made of."""
    bases = {unit: base for unit, (base, _) in UNITS.items()}
    return {
        "fields": [(name, FIELD_TYPES[name]) for name in TYPES],
        "parameters": [(name, PARAMETERS.get(name) or _quantity(UNIT_TYPES[name], name)) for name in PARAMETER_TYPES],
        "states": [(name, STATES[name]) for name in STATES],
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
