"""The primitives: what can be measured on one output, by the name that a program uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.json_values import as_text
from skillc.plan.schema import TypePlan


@dataclass(frozen=True, slots=True)
class Measure:
    """A score in the primitive's unit, and what a reflection is told about it."""

    score: Fraction | int | float
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a primitive judges: one output of one rollout.

    Attributes:
        name: the output's.
        type: its declared type.
        value: what the model answered.
        gold: the right answer; `golds` are all that count as right.
        options: the named arguments in the program, exact numbers as Fractions.
        reveal: whether a feedback may say the right answer.
    """

    name: str
    type: TypePlan
    value: JsonValue
    gold: JsonValue
    options: Mapping[str, object]
    reveal: bool = True

    @property
    def golds(self) -> list[JsonValue]:
        """All right answers: a list counts as several, unless the output itself is a list.

        Raises:
            SkillcError: the example has none.
        """
        several = isinstance(self.gold, list) and self.type.kind != "list"
        golds = self.gold if isinstance(self.gold, list) and several else [self.gold]
        if not golds or (self.gold is None and not self.type.optional):
            raise SkillcError(f"there is no right answer for `{self.name}`")
        return golds


@dataclass(frozen=True, slots=True)
class Primitive:
    """A registered function and the range of its scores."""

    measure: Callable[[Subject], Measure]
    low: Fraction
    high: Fraction


PRIMITIVES: dict[str, Primitive] = {}


def primitive(
    name: str, *, low: int = 0, high: int = 1
) -> Callable[[Callable[[Subject], Measure]], Callable[[Subject], Measure]]:
    """Registers a function as the primitive of that name, with scores from `low` to `high`."""

    def register(function: Callable[[Subject], Measure]) -> Callable[[Subject], Measure]:
        PRIMITIVES[name] = Primitive(function, Fraction(low), Fraction(high))
        return function

    return register


def text_of(value: JsonValue) -> str:
    """A value as the text that is compared or counted; what is missing is empty."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(text_of(item) for item in value)
    return as_text(value)


def shown(value: JsonValue) -> str:
    """A value in a feedback."""
    if value is None:
        return "nothing"
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value, ensure_ascii=False)}`"


def expected(subject: Subject) -> str:
    """The right answer, where it may be told, and the one that was given, in words."""
    if not subject.reveal:
        return f"{shown(subject.value)} is wrong"
    return f"expected {' or '.join(shown(gold) for gold in subject.golds)}, got {shown(subject.value)}"
