"""Syntax errors: the message for each, and the patch after which parsing can continue."""

from __future__ import annotations

from skillc.syntax.mistakes import characters, signs, statements
from skillc.syntax.mistakes.context import Detector, ErrorContext, Mistake, unexpected

__all__ = ["ErrorContext", "Mistake", "explain"]

# In this order; the first that recognizes the error explains it.
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


def explain(context: ErrorContext) -> Mistake:
    """Explain why parsing stopped."""
    return next((found for detector in _DETECTORS if (found := detector(context))), None) or unexpected(context)
