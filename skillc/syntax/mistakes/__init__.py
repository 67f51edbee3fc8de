"""Mistakes of syntax: for each the message that its author needs, and the edit after which reading goes on."""

from __future__ import annotations

from skillc.syntax.mistakes import characters, signs, statements
from skillc.syntax.mistakes.situation import Detector, Mistake, Situation, unexpected

__all__ = ["Mistake", "Situation", "explain"]

# The first that answers counts.
_DETECTORS: tuple[Detector, ...] = (
    signs.nesting,
    characters.unknown_character,
    statements.colon_for_equals,
    signs.open_string,
    signs.or_sign,
    signs.comment_sign,
    statements.condition,
    statements.comma_in_block,
    statements.quoted_key,
    statements.quoted_name,
    statements.operator_as_value,
    statements.hyphen_in_name,
    statements.block_as_value,
    statements.reserved_word,
    signs.arithmetic,
    signs.comparison_sign,
    signs.setting_sign,
    signs.bare_point,
    signs.open_bracket,
    statements.missing_comma,
    statements.missing_value,
    signs.closes_nothing,
)


def explain(situation: Situation) -> Mistake:
    """Explain why reading stopped."""
    for detector in _DETECTORS:
        if found := detector(situation):
            return found
    return unexpected(situation)
