"""Conflicts that a git merge left in a program: both sides between marks, within a text of a section too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.syntax.source import Source, Span

_MARK = re.compile(r"^(?:<{7} [^\n]*|\|{7} [^\n]*|={7}(?=\r?$)|>{7} [^\n]*)", re.MULTILINE)
_WRITTEN = re.compile(r"[^\r\n]")


@dataclass(frozen=True, slots=True)
class Conflict:
    """The marks of one conflict; `theirs` begins the part that is not read: the common ancestor, or the other side."""

    begin: Span
    theirs: Span
    between: Span
    end: Span


def conflicts(text: str) -> Iterator[Conflict]:
    """Each conflict whose marks stand in their order, each on a line of its own."""
    begin: Span | None = None
    base: Span | None = None
    between: Span | None = None
    for match in _MARK.finditer(text):
        span, sign = Span(match.start(), match.start() + len(match[0].rstrip())), match[0][0]
        if sign == "<":
            begin, base, between = span, None, None
        elif begin is not None and sign == "|" and between is None:
            base = span
        elif begin is not None and sign == "=" and between is None:
            between = span
        elif begin is not None and sign == ">" and between is not None:
            yield Conflict(begin, base or between, between, span)
            begin = None


def without(text: str, found: Iterable[Conflict]) -> str:
    """The text with our side alone of each conflict, of the same length and with the same lines."""
    pieces, place = [], 0
    for each in found:
        for start, end in ((each.begin.start, each.begin.end), (each.theirs.start, each.end.end)):
            pieces += [text[place:start], _WRITTEN.sub(" ", text[start:end])]
            place = end
    return "".join([*pieces, text[place:]])


def message(source: Source, found: Conflict) -> Diagnostic:
    """What is said of a conflict."""
    others = (Label(source, found.between, "the other side begins"), Label(source, found.end, "and ends"))
    hint = "keep one side, or make one of both, and remove the three marks"
    return Diagnostic(
        "SK032", "a git merge left both sides of this place", Label(source, found.begin), secondary=others, hint=hint
    )
