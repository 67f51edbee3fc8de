"""Mistakes of syntax: for each the message that its author needs, and the edit after which reading goes on."""

from __future__ import annotations

from skillc.syntax.mistakes import brackets, characters, generic, operators, statements
from skillc.syntax.mistakes.situation import Detector, Mistake, Situation

__all__ = ["Mistake", "Situation", "explain"]

# In order: the first that answers is believed.
_DETECTORS: tuple[Detector, ...] = (
    brackets.nesting,
    characters.unknown_character,
    statements.colon_for_equals,
    brackets.open_string,
    operators.or_sign,
    operators.comment_sign,
    statements.condition,
    statements.comma_in_block,
    statements.quoted_key,
    statements.quoted_name,
    statements.operator_as_value,
    statements.hyphen_in_name,
    statements.block_as_value,
    statements.reserved_word,
    operators.arithmetic,
    operators.comparison_sign,
    operators.setting_sign,
    operators.bare_point,
    brackets.open_bracket,
    statements.missing_comma,
    statements.missing_value,
    brackets.closes_nothing,
)


def explain(situation: Situation) -> Mistake:
    """What went wrong where reading stopped."""
    for detector in _DETECTORS:
        if found := detector(situation):
            return found
    return generic.unexpected(situation)
