"""What the compiler has to say about a text: values that are collected, never raised."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from skillc.syntax.source import Source, Span

LATER = "SK605"
"""The code of what only a later version can run. A program with such an error has a meaning all the same."""


class Severity(Enum):
    """How much a diagnostic weighs: an error stops a compile, a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Label:
    """A place that a message points at, with what is to be said about that place (may be empty)."""

    source: Source
    span: Span
    text: str = ""


@dataclass(frozen=True, slots=True)
class Fix:
    """A replacement of `span` by `text`; `safe` when it cannot change what the program means to its author."""

    span: Span
    text: str
    safe: bool = True


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    Attributes:
        code: a code of the registry (`codes.py`), such as `SK201`.
        message: lower case, no final stop, the user's words in backticks.
        primary: the place; the other labels tell where the rest of the story stands.
        secondary: at most a few further places.
        hint: one line that says the fix.
    """

    code: str
    message: str
    primary: Label
    severity: Severity = Severity.ERROR
    secondary: tuple[Label, ...] = ()
    hint: str | None = None
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that a comment of the program says may stay, with the reason and the comment."""

    diagnostic: Diagnostic
    reason: str
    comment: Label
