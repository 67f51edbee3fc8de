"""What a field's text holds: `mentions`, `covers`, `words`, `lines`, `tokens`. They need no right answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from pydantic import JsonValue

from skillc.metrics.equality import tidy
from skillc.metrics.registry import Measure, shown, text_of
from skillc.tokens import count_tokens

_MOST_TOLD = 8


def phrases_of(value: JsonValue) -> list[str]:
    """The texts that are looked for: those of a list, or the one; empty ones are none."""
    items = value if isinstance(value, list) else [value]
    return [text for text in map(text_of, items) if text.strip()]


def mentions(value: JsonValue, phrases: list[str], reveal: bool = True) -> Measure:
    """1 where the text holds at least one of the phrases, ignoring case and how white space is laid out, else 0."""
    text = _folded(text_of(value))
    found = [phrase for phrase in phrases if _folded(phrase) in text]
    if not found:
        return Measure(0, f"mentions none of {_listed(phrases)}" if reveal else "mentions none of them")
    return Measure(1, f"mentions {_listed(found)}" if reveal else f"mentions {len(found)} of them")


def covers(value: JsonValue, phrases: list[str], reveal: bool = True) -> Measure:
    """The share of the phrases that the text holds, ignoring case and how white space is laid out; of none all."""
    text = _folded(text_of(value))
    missing = [phrase for phrase in phrases if _folded(phrase) not in text]
    score = Fraction(len(phrases) - len(missing), len(phrases)) if phrases else Fraction(1)
    if not missing:
        return Measure(score, "right")
    return Measure(score, f"lacks {_listed(missing)}" if reveal else f"lacks {len(missing)} of {len(phrases)}")


def words(text: str) -> int:
    """Runs of characters between white space."""
    return len(text.split())


def lines(text: str) -> int:
    """Lines that are not blank; a list has one for each item."""
    return sum(bool(line.strip()) for line in text.splitlines())


def _folded(text: str) -> str:
    return tidy(" ".join(tidy(text).casefold().split()))


def _listed(phrases: list[str]) -> str:
    more = ", ..." if len(phrases) > _MOST_TOLD else ""
    return ", ".join(shown(phrase) for phrase in phrases[:_MOST_TOLD]) + more


COUNTS: Mapping[str, Callable[[str], int]] = MappingProxyType({"tokens": count_tokens, "words": words, "lines": lines})
SEARCHES: Mapping[str, Callable[[JsonValue, list[str], bool], Measure]] = MappingProxyType(
    {"mentions": mentions, "covers": covers}
)
