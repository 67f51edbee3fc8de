"""Formatting files: what each would become, and writing it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from skillc.diagnostics.diagnostic import Diagnostic
from skillc.errors import SkillcError
from skillc.syntax.files import SourceError, decode, read_program, write_source
from skillc.syntax.formatting import format_source
from skillc.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    Attributes:
        name: as the user wrote it.
        before: its bytes; empty where it could not be read.
        text: its canonical form; None where there is none.
        diagnostics: why there is none.
        problem: why it could not be read or written.
    """

    name: str
    before: bytes
    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()
    problem: SkillcError | None = None

    @property
    def failed(self) -> bool:
        """Whether the file is neither in its canonical form nor could be brought into it."""
        return self.text is None or self.problem is not None

    @property
    def changed(self) -> bool:
        """Whether formatting changes the file, be it only by its line ends."""
        return self.text is not None and self.text.encode() != self.before


def format_bytes(name: str, data: bytes) -> Outcome:
    """Format what a file of that name holds."""
    try:
        source = Source(name, decode(name, data))
    except SourceError as problem:
        return Outcome(name, data, None, problem=problem)
    formatted = format_source(source)
    return Outcome(name, data, formatted.text, formatted.diagnostics)


def format_file(path: Path) -> Outcome:
    """Format a file, without writing it."""
    try:
        data = read_program(path)
    except SourceError as problem:
        return Outcome(str(path), b"", None, problem=problem)
    return format_bytes(str(path), data)


def save(path: Path, outcome: Outcome) -> Outcome:
    """Write a file's canonical form atomically, following a link and keeping permissions; leave a formatted one alone.

    Returns:
        The outcome, with a problem if the file can't be written; its content is then unchanged.
    """
    if not outcome.changed or outcome.text is None:
        return outcome
    try:
        write_source(path, outcome.text, keep_mark=False)
    except SourceError as problem:
        return replace(outcome, problem=problem)
    return outcome
