"""A copy of a piece of the source that recovery may change, and still knows where each character came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skillc.syntax.source import Source, Span


class Edit(NamedTuple):
    """Characters `start` to `end` of a draft, replaced by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A text whose i-th character stands at `places[i]` in the source; `places` has one more, for the end."""

    source: Source
    text: str
    places: Sequence[int]

    def span(self, start: int, end: int) -> Span:
        """The place in the source of a range of the draft."""
        last = min(max(start, end), len(self.text))
        first = min(start, last)
        # Not `places[last]` alone: what was removed behind the range is no part of it.
        stop = self.places[last - 1] + 1 if last > first else self.places[last]
        return Span(self.places[first], max(stop, self.places[first]))

    def edited(self, edits: Sequence[Edit]) -> Draft:
        """The draft after edits that do not overlap, in any order."""
        text, places = self.text, list(self.places)
        for edit in sorted(edits, reverse=True):
            places[edit.start : edit.end] = [places[edit.start]] * len(edit.text)
            text = text[: edit.start] + edit.text + text[edit.end :]
        return Draft(self.source, text, places)

    def blanked(self, start: int, end: int) -> Draft:
        """The draft with a range turned into spaces, line ends kept."""
        blank = "".join(c if c in "\r\n" else " " for c in self.text[start:end])
        return Draft(self.source, self.text[:start] + blank + self.text[end:], self.places)

    def unchanged(self, start: int, end: int) -> bool:
        """Whether a range still reads as it does in the source."""
        return self.source.slice(self.span(start, end)) == self.text[start:end]
