"""Rules and what they mean: the first that holds decides, a default only where no other does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

Kind = Literal["any", "both", "except", "without", "starts", "ends", "default"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        kind: `any` of the triggers occurs, `both` do, any but the last does and the last does not (`except`), none
            occurs (`without`), the text starts or ends with one, or no other rule holds.
        triggers: words or short phrases.
        field: the only input that is searched; empty for all inputs.
    """

    kind: Kind
    triggers: tuple[str, ...]
    label: str
    field: str = ""


@cache
def pattern(trigger: str) -> re.Pattern[str]:
    """Finds a trigger as whole words, in any case."""
    return re.compile(rf"(?<![^\W_]){re.escape(trigger)}(?![^\W_])", re.IGNORECASE)


def holds(rule: Rule, text: str) -> bool:
    """Whether a rule's condition holds."""
    found = [bool(pattern(trigger).search(text)) for trigger in rule.triggers]
    if rule.kind == "both":
        return all(found)
    if rule.kind == "except":
        return any(found[:-1]) and not found[-1]
    if rule.kind == "without":
        return not any(found)
    words = re.sub(r"[\W_]+", " ", text).strip()
    if rule.kind == "starts":
        return any(pattern(trigger).match(words) for trigger in rule.triggers)
    if rule.kind == "ends":
        return any(re.search(pattern(trigger).pattern + "$", words, re.IGNORECASE) for trigger in rule.triggers)
    return any(found)


def deciding(rules: Sequence[Rule], text: str, fields: Mapping[str, str] | None = None) -> int | None:
    """Return the number of the rule that decides, or None if no rule holds.

    Args:
        rules: in their order.
        text: all inputs.
        fields: each input by its name, for rules that name one.
    """
    for number, rule in enumerate(rules):
        searched = fields[rule.field] if fields and rule.field else text
        if rule.kind != "default" and holds(rule, searched):
            return number
    return next((number for number, rule in enumerate(rules) if rule.kind == "default"), None)
