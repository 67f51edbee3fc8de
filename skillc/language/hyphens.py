"""`exact-match` where `exact_match` is meant: in an expression it reads as a difference of two names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from skillc.language.diagnostics import Fix
from skillc.syntax.source import Source, Span

_PART = re.compile(r"[\w-]")
_KEBAB = re.compile(r"[^\W\d]\w*(?:-\w+)+")


@dataclass(frozen=True, slots=True)
class Hyphened:
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


def hyphened(source: Source, span: Span, known: Iterable[str]) -> Hyphened | None:
    """The known name that the text around a place is with hyphens; None where there is none."""
    text, start, end = source.text, span.start, span.end
    while start > 0 and _PART.match(text[start - 1]):
        start -= 1
    while end < len(text) and _PART.match(text[end]):
        end += 1
    written = text[start:end]
    name = written.replace("-", "_")
    return Hyphened(Span(start, end), written, name) if _KEBAB.fullmatch(written) and name in set(known) else None
