"""`json_fields` and `valid_json`: whether an object can be read, and how many of its fields are right."""

from __future__ import annotations

import json
from fractions import Fraction

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.metrics.equality import same
from skillc.metrics.registry import Measure, Subject, primitive, shown


@primitive("json_fields")
def json_fields(subject: Subject) -> Measure:
    """The share of the right object's fields, or of the named ones, that the answer has with the same value.

    The best over all right answers. A field that neither object has is right.
    """
    golds = [gold for gold in map(read_object, subject.golds) if gold is not None]
    if not golds:
        raise SkillcError(f"the right answer for `{subject.name}` is no JSON object")
    answer = read_object(subject.value)
    if answer is None:
        return Measure(0, f"{shown(subject.value)} is no JSON object")
    return max((_against(answer, gold, subject) for gold in golds), key=lambda measure: measure.score)


@primitive("valid_json")
def valid_json(subject: Subject) -> Measure:
    """1 where the answer is a JSON object or list and nothing else stands around it, else 0."""
    value = subject.value
    if isinstance(value, str):
        try:
            # Numbers of any length are JSON, and `NaN` is not.
            value = json.loads(value, parse_int=float, parse_constant=_no_constant)
        except (ValueError, RecursionError) as problem:
            return Measure(0, f"this is no JSON: {str(problem)[:100]}")
    right = isinstance(value, dict | list)
    return Measure(int(right), "right" if right else f"{shown(subject.value)} is no JSON object or list")


def _no_constant(name: str) -> JsonValue:
    raise ValueError(f"`{name}` is no value")


def _against(answer: dict[str, JsonValue], gold: dict[str, JsonValue], subject: Subject) -> Measure:
    given = subject.options.get("fields")
    names = [str(name) for name in given] if isinstance(given, list | tuple) else list(gold)
    wrong = [name for name in names if (name in answer) != (name in gold) or not same(answer.get(name), gold.get(name))]
    score = Fraction(len(names) - len(wrong), len(names)) if names else Fraction(1)
    return Measure(score, "; ".join(_told(name, answer, gold, subject) for name in wrong) or "right")


def _told(name: str, answer: dict[str, JsonValue], gold: dict[str, JsonValue], subject: Subject) -> str:
    if not subject.reveal:
        return f"{name}: {shown(answer.get(name))} is wrong"
    return f"{name}: expected {shown(gold.get(name))}, got {shown(answer.get(name))}"


def read_object(value: JsonValue) -> dict[str, JsonValue] | None:
    """A JSON object, also from its text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None
