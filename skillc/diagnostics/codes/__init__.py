"""The registry of diagnostic codes: SK0 syntax, 1 modules, 2 names, 3 types, 4 data, 5 gates, 6 models, 7 versions,
9 internal.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from skillc.diagnostics.codes import data, gates, models, modules, names, text, types, versions
from skillc.diagnostics.codes.code import Code, Phase

__all__ = ["CODES", "RETIRED", "Code", "Phase", "code_named"]


def _assemble() -> Mapping[str, Code]:
    found: dict[str, Code] = {}
    for stage in (text, modules, names, types, data, gates, models, versions):
        for code in stage.CODES:
            if code.code in found:
                raise ValueError(f"{code.code} is registered twice")
            found[code.code] = code
    return MappingProxyType(found)


CODES: Mapping[str, Code] = _assemble()

RETIRED: Mapping[str, str] = MappingProxyType(
    {"SK552": "SK507", "SK556": "SK504", "SK558": "SK304", "SK564": "SK407", "SK565": "SK401", "SK566": "SK402"}
)
"""Retired codes and their replacements; `explain` and suppressions accept both."""


def code_named(word: str) -> Code | None:
    """Return the entry of a code or of its replacement."""
    return CODES.get(RETIRED.get(word, word))
