"""Values of a plan as a person reads them, and the plain differences between two of its parts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction

from pydantic import BaseModel

from skillc.language.units import decimal, written


def shown(value: object, unit: str = "") -> str:
    """A value on one line."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | Fraction):
        return written(Fraction(value), unit)
    if isinstance(value, float | str):
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) and " " in value else str(value)
    if isinstance(value, BaseModel):
        pairs = ((name, getattr(value, name)) for name in type(value).model_fields)
        return ", ".join(f"{name} {shown(each)}" for name, each in pairs if each not in (None, (), {}))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {shown(each)}" for name, each in value.items()) or "none"
    if isinstance(value, Collection):
        return ", ".join(shown(each) for each in value) or "none"
    return str(value)


def share(value: Fraction) -> str:
    """A share in percent."""
    return f"{decimal(value * 100)}%"


def fields_that_differ(
    old: BaseModel, new: BaseModel, but: Collection[str] = ()
) -> Iterator[tuple[str, object, object]]:
    """Name, old and new value of each field that is not the same."""
    for name in type(new).model_fields:
        before, after = getattr(old, name), getattr(new, name)
        if name not in but and before != after:
            yield name, before, after
