"""Print errors and results, also where standard output is closed, full or of a narrow encoding."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from skillc import __version__
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from skillc.diagnostics.diagnostic import Diagnostic


_FULL = (errno.ENOSPC, errno.EDQUOT)


def prepare() -> None:
    """Replace closed streams by null ones, and escape characters that the encoding lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif getattr(stream, "errors", None) == "strict":
            stream.reconfigure(errors="backslashreplace")


def colored() -> bool:
    """Return whether standard output is a terminal whose user wants colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def full(problem: OSError) -> SkillcError | None:
    """Return the error of a full disk, None for any other problem."""
    if problem.errno not in _FULL:
        return None
    reason = (problem.strerror or str(problem)).lower()
    return SkillcError(f"the output can't be written: {reason}", hint="make room, or write to another disk")


def abandon() -> None:
    """Discard output that could not be written, also at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())


def print_json(value: object, *, indent: int | None = 2) -> None:
    """Print one JSON object on standard output, on one line without an indent."""
    import json

    click.echo(json.dumps(value, ensure_ascii=False, indent=indent))


def report_error(problem: SkillcError) -> None:
    """Print an expected error; with `--json` or `--json-lines` also as an object on standard output."""
    found = getattr(problem, "diagnostics", ())
    difference = getattr(problem, "difference", "")
    if "--json" in sys.argv or "--json-lines" in sys.argv:
        from skillc.diagnostics.formats import as_json

        error = {"message": problem.message, "hint": problem.hint, **as_json(found)}
        error |= {"difference": difference} if difference else {}
        if "--json-lines" in sys.argv:
            print_json({"event": "error", **error}, indent=None)
        else:
            print_json({"format_version": 1, "error": error}, indent=None)
    if found:
        show_diagnostics(found)
    if difference:
        click.echo(_printable(difference), err=True)
    say_error(problem)


def show_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Print findings on standard error; notes are left to `check` and `plan`."""
    from skillc.diagnostics.diagnostic import Severity
    from skillc.diagnostics.render import text

    color = sys.stderr.isatty()
    for diagnostic in diagnostics:
        if diagnostic.severity is not Severity.NOTE:
            click.echo(text(diagnostic, color=color) + "\n", err=True)


def say_error(problem: SkillcError) -> None:
    """Print the message of an expected error and its hint on standard error."""
    click.echo(click.style("error", fg="red", bold=True) + f": {_printable(problem.message)}", err=True)
    if problem.hint:
        click.echo(click.style("  hint", fg="cyan") + f": {_printable(problem.hint)}", err=True)


def _printable(words: str) -> str:
    """Escape what would move the cursor; a message of several lines keeps them."""
    from skillc.diagnostics.render import printable

    return "\n".join(printable(line) for line in words.split("\n"))


def report_bug(problem: Exception) -> None:
    """Print an unexpected error in one line and keeps the traceback in a file; SKILLC_DEBUG=1 shows it."""
    import tempfile
    import traceback

    trace = f"skillc {__version__}, Python {sys.version.split()[0]}\n\n" + "".join(traceback.format_exception(problem))
    if os.environ.get("SKILLC_DEBUG"):
        click.echo(trace, err=True)
        return
    with tempfile.NamedTemporaryFile("w", prefix="skillc-bug-", suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(trace)
    name = type(problem).__name__
    click.echo(f"this is a bug in skillc ({name}); the details are in {file.name}", err=True)
