"""Rules and what they mean: the first that holds decides, a default only where no other does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

Kind = Literal["any", "both", "except", "starts", "ends", "default"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        kind: `any` of the triggers occurs, `both` do, any but the last does and the last does not (`except`), the text
            starts or ends with one, or no other rule holds.
        triggers: words or short phrases.
    """

    kind: Kind
    triggers: tuple[str, ...]
    label: str


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
    words = re.sub(r"[\W_]+", " ", text).strip()
    if rule.kind == "starts":
        return any(pattern(trigger).match(words) for trigger in rule.triggers)
    if rule.kind == "ends":
        return any(re.search(pattern(trigger).pattern + "$", words, re.IGNORECASE) for trigger in rule.triggers)
    return any(found)


def deciding(rules: Sequence[Rule], text: str) -> int | None:
    """The number of the rule that decides a text; None where none does."""
    for number, rule in enumerate(rules):
        if rule.kind != "default" and holds(rule, text):
            return number
    return next((number for number, rule in enumerate(rules) if rule.kind == "default"), None)
