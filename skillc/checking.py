"""What `skillc check` does with a file: look at it, mend it if asked to, and go on where it can't be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity, Suppressed
from skillc.errors import SkillcError
from skillc.frontend import check_source
from skillc.syntax.files import read_main
from skillc.syntax.source import Source, Span

Fixes = Literal["none", "safe", "unsafe"]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """What was found in one file.

    Attributes:
        path: the file.
        diagnostics: what is left to say about it.
        suppressed: what its comments keep out of them.
        readable: whether it could be read; if not, that is the one finding.
        before: its text, and `after` the text with the fixes; the same where nothing was mended.
        fixed: how many findings were mended.
        refused: how many fixes were left out, for each would have left a new error.
    """

    path: Path
    diagnostics: tuple[Diagnostic, ...]
    suppressed: tuple[Suppressed, ...] = ()
    readable: bool = True
    before: str = ""
    after: str = ""
    fixed: int = 0
    refused: int = 0


def check_and_fix(path: Path, fixes: Fixes = "none") -> CheckedFile:
    """What is to be said about a file, after the fixes that are asked for. Nothing is written."""
    try:
        source = read_main(path)
    except SkillcError as error:
        return CheckedFile(path, (unreadable(path, error),), readable=False)
    if fixes == "none":
        checked = check_source(source, path.parent)
        return CheckedFile(path, checked.diagnostics, checked.suppressed, True, source.text, source.text)
    from skillc.diagnostics.fixing import fix

    done = fix(source, lambda text: check_source(text, path.parent), unsafe=fixes == "unsafe")
    left = done.checked
    return CheckedFile(
        path,
        left.diagnostics,
        left.suppressed,
        True,
        source.text,
        done.source.text,
        len(done.applied),
        len(done.refused),
    )


def with_data(looked: CheckedFile) -> CheckedFile:
    """The same with what the plan and the examples give reason to say; reads the file again, as it is now."""
    if not looked.readable:
        return looked
    from skillc.frontend import check_data

    found = check_data(looked.path)
    return replace(looked, diagnostics=found.kept, suppressed=found.suppressed)


def unreadable(path: Path, error: SkillcError) -> Diagnostic:
    """The finding for a file that can't be read."""
    return Diagnostic("SK040", error.message, Label(Source(str(path), ""), Span(0, 0)), hint=error.hint)


def exit_status(looked: Iterable[CheckedFile]) -> int:
    """The exit status: 2 for a file that can't be read, 1 for an error or a warning, else 0."""
    files = tuple(looked)
    if not all(each.readable for each in files):
        return 2
    return 1 if any(d.severity is not Severity.NOTE for each in files for d in each.diagnostics) else 0
