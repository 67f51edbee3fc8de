"""Suggest the known name that a misspelled one probably means."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Fix
from skillc.syntax.source import Source, Span

_LONGEST = 100
_PART = re.compile(r"[\w-]")
_KEBAB = re.compile(r"[^\W\d]\w*(?:-\w+)+")


def suggest(word: str, known: Iterable[str]) -> str | None:
    """Return the closest known word, or None if more than a third of the letters (at least one) differ.

    Case, and `-` instead of `_`, are ignored. Ties are broken alphabetically.

    >>> suggest("acuracy", ["accuracy", "cost"])
    'accuracy'
    >>> suggest("time", ["cost"]) is None
    True
    """
    if len(word) > _LONGEST:
        return None
    limit = max(1, len(word) // 3)
    plain = _plain(word)
    best: tuple[int, str] | None = None
    for each in known:
        if each == word or abs(len(each) - len(word)) > limit:
            continue
        distance = _distance(plain, _plain(each))
        # Without the second condition every word of one letter would match every other.
        if distance <= limit and distance < max(len(word), len(each)) and (best is None or (distance, each) < best):
            best = distance, each
    return best[1] if best else None


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").replace(" ", "_")


def _distance(a: str, b: str) -> int:
    """Return the edit distance; a transposition is one step."""
    before: list[int] = []
    last: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = last, row, [i] * (len(b) + 1)
        for j, y in enumerate(b, 1):
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], before[j - 2] + 1)
    return row[-1]


def spelling_fix(word: str, span: Span, known: Iterable[str]) -> Fix | None:
    """Return the fix that replaces a misspelled word; None if no known word is close."""
    near = suggest(word, known)
    return Fix(span, near, safe=False) if near else None


def spelling_hint(word: str, known: Iterable[str]) -> str | None:
    """Return the hint `did you mean ...?`; None if no known word is close."""
    near = suggest(word, known)
    return f"did you mean `{near}`?" if near else None


@dataclass(frozen=True, slots=True)
class HyphenatedName:
    """The diagnostic for a known name that is written with hyphens."""

    span: Span
    message: str
    hint: str
    fix: Fix


def hyphenated_name(source: Source, span: Span, known: Iterable[str]) -> HyphenatedName | None:
    """Return the diagnostic if the text around a span is a known name, written with hyphens."""
    text, start, end = source.text, span.start, span.end
    while start > 0 and _PART.match(text[start - 1]):
        start -= 1
    while end < len(text) and _PART.match(text[end]):
        end += 1
    written, place = text[start:end], Span(start, end)
    name = written.replace("-", "_")
    if not _KEBAB.fullmatch(written) or name not in set(known):
        return None
    message = f"`{written}` is not a name: `-` means minus"
    return HyphenatedName(place, message, f"write `{name}`", Fix(place, name, safe=False))
