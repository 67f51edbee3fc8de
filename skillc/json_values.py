"""JSON values: type, canonical text and digest."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, TypeAlias

from pydantic import BaseModel, JsonValue

JsonObject: TypeAlias = Mapping[str, JsonValue]

_TIGHT = (",", ":")
# `json.dumps` with options makes an encoder for each call.
_ASCII = json.JSONEncoder(sort_keys=True, separators=_TIGHT).encode


def canonical(value: object) -> str:
    """Return JSON with sorted keys and without white space. A fraction becomes `"n/d"`, a model or dataclass an object.

    Raises:
        TypeError: a value has no canonical form.
        ValueError: a number is not finite.
    """
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, separators=_TIGHT, allow_nan=False)


def digest(value: object) -> str:
    """Return the hex sha256 of the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def canonical_ascii(value: object, default: Callable[[Any], Any] | None = None) -> str:
    """Return JSON with sorted keys, without white space and in ASCII, which can encode lone surrogates.

    `default` converts values of other types; without it they raise a TypeError.
    """
    if default is not None:
        return json.dumps(value, sort_keys=True, separators=_TIGHT, default=default)
    if type(value) is not dict:
        return _ASCII(value)
    # Most rows are objects of texts, which this encodes three times as fast.
    parts = []
    for key in sorted(value):
        text = value[key]
        if type(text) is not str or type(key) is not str:
            return _ASCII(value)
        parts.append(f"{_quoted(key)}:{_quoted(text)}")
    return "{" + ",".join(parts) + "}"


def parse_json(text: str, default: Any = None) -> Any:
    """Return the value of a JSON text, or the default if it is not JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return default


def as_text(value: JsonValue) -> str:
    """Return a text unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def rounded(value: Fraction | float | None) -> float | None:
    """Return a number for a report, to six decimals; None for None."""
    return None if value is None else round(float(value), 6)


def objects_in(value: JsonValue) -> list[dict[str, JsonValue]]:
    """Return the objects in a list; none for any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


_OPENING = re.compile(r"[\[{]")


def values_within(text: str) -> Iterator[object]:
    """Yield the outermost JSON objects and lists of a text, in order: bare, in code fences, or within prose."""
    decoder = json.JSONDecoder(strict=False)
    at = 0
    while opening := _OPENING.search(text, at):
        try:
            value, at = decoder.raw_decode(text, opening.start())
        except RecursionError:
            return
        except json.JSONDecodeError:
            at = opening.end()
            continue
        yield value


def fields_of(value: object) -> dict[str, object]:
    """Return the fields of a model or a dataclass by name, without those in its `LATER` that are None or empty.

    Raises:
        TypeError: the value is neither.
    """
    if isinstance(value, BaseModel):
        found = {name: getattr(value, name) for name in type(value).model_fields}
    elif dataclasses.is_dataclass(value):
        found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        raise TypeError(f"{type(value).__name__} has no canonical form")
    later = getattr(type(value), "LATER", ())
    return {name: each for name, each in found.items() if name not in later or each not in (None, ())}


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no canonical form")
        return value
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_plain(item) for item in value]
    return {name: _plain(item) for name, item in fields_of(value).items()}


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key must be a text, not {type(key).__name__}")
    return key
