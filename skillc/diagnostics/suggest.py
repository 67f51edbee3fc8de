"""Suggestions: the known name that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from skillc.diagnostics.diagnostic import Fix
from skillc.syntax.source import Source, Span

_LONGEST = 100
_PART = re.compile(r"[\w-]")
_KEBAB = re.compile(r"[^\W\d]\w*(?:-\w+)+")


def suggest(word: str, known: Iterable[str]) -> str | None:
    """The nearest of the known words, None where none is near: at most a third of the letters may differ, or one.

    Case, and `-` for `_`, make no difference. Of words that are equally near the first in the alphabet is taken.

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
        # Otherwise any letter is near any other.
        if distance <= limit and distance < max(len(word), len(each)) and (best is None or (distance, each) < best):
            best = distance, each
    return best[1] if best else None


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").replace(" ", "_")


def _distance(a: str, b: str) -> int:
    """The edit distance; two neighbours that changed places are one step."""
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
    """The edit that writes the one of the known words that was probably meant."""
    near = suggest(word, known)
    return Fix(span, near, safe=False) if near else None


def spelling_hint(word: str, known: Iterable[str]) -> str | None:
    """The one of the known words that was probably meant, in the form of a hint."""
    near = suggest(word, known)
    return f"did you mean `{near}`?" if near else None


@dataclass(frozen=True, slots=True)
class HyphenatedName:
    """What was written with hyphens, and the name that it stands for."""

    span: Span
    written: str
    meant: str

    @property
    def message(self) -> str:
        """What is wrong with it."""
        return f"`{self.written}` is not a name: `-` means minus"

    @property
    def hint(self) -> str:
        """How it is written."""
        return f"write `{self.meant}`"

    @property
    def fix(self) -> Fix:
        """The edit that writes it so."""
        return Fix(self.span, self.meant, safe=False)


def hyphenated_name(source: Source, span: Span, known: Iterable[str]) -> HyphenatedName | None:
    """The known name that the text around a place is with hyphens; None where there is none."""
    text, start, end = source.text, span.start, span.end
    while start > 0 and _PART.match(text[start - 1]):
        start -= 1
    while end < len(text) and _PART.match(text[end]):
        end += 1
    written = text[start:end]
    name = written.replace("-", "_")
    return HyphenatedName(Span(start, end), written, name) if _KEBAB.fullmatch(written) and name in set(known) else None
