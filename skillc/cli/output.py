"""Print errors and results, also where standard output is closed, full or of a narrow encoding."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from skillc import __version__
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import RenderableType

    from skillc.cli.arguments import RunOptions
    from skillc.diagnostics.diagnostic import Diagnostic


def prepare_streams() -> None:
    """Replace closed streams by null ones, and escape characters that the encoding lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif getattr(stream, "errors", None) == "strict":
            stream.reconfigure(errors="backslashreplace")


def discard_unwritten() -> None:
    """Discard output that could not be written, also at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(null, stream.fileno())


def has_color() -> bool:
    """Return whether standard output is a terminal whose user wants colors."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def disk_full_error(problem: OSError) -> SkillcError | None:
    """Return the error of a full disk, None for any other problem."""
    if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    reason = (problem.strerror or str(problem)).lower()
    return SkillcError(f"the output can't be written: {reason}", hint="make room, or write to another disk")


def print_json(value: object, *, indent: int | None = 2) -> None:
    """Print one JSON object on standard output, on one line without an indent."""
    import json

    click.echo(json.dumps(value, ensure_ascii=False, indent=indent))


def print_table(what: RenderableType) -> None:
    """Print a table or a text of rich on standard output."""
    from rich.console import Console

    Console(highlight=False, soft_wrap=False).print(what)


def print_result(
    summary: Callable[[], Mapping[str, JsonValue]],
    table: Callable[[], RenderableType],
    options: RunOptions,
    *,
    soft_wrap: bool = True,
) -> None:
    """Print the result of a run as an object, as the last event, or as a table."""
    if options.json_lines:
        print_json({"event": "result", **summary()}, indent=None)
    elif options.as_json:
        print_json(summary())
    else:
        from rich.console import Console

        Console(highlight=False, soft_wrap=soft_wrap).print(table())


def report_error(problem: SkillcError) -> None:
    """Print an expected error; with `--json` or `--json-lines` also as an object on standard output."""
    diagnostics = getattr(problem, "diagnostics", ())
    difference = getattr(problem, "difference", "")
    if "--json" in sys.argv or "--json-lines" in sys.argv:
        from skillc.diagnostics.formats import as_json

        error = {"message": problem.message, "hint": problem.hint, **as_json(diagnostics)}
        error |= {"difference": difference} if difference else {}
        if "--json-lines" in sys.argv:
            print_json({"event": "error", **error}, indent=None)
        else:
            print_json({"format_version": 1, "error": error}, indent=None)
    if diagnostics:
        show_diagnostics(diagnostics)
    if difference:
        click.echo(_printable(difference), err=True)
    print_error(problem)


def show_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Print errors and warnings on standard error; only `check` and `plan` print notes."""
    from skillc.diagnostics.diagnostic import Severity
    from skillc.diagnostics.render import text

    color = sys.stderr.isatty()
    for diagnostic in diagnostics:
        if diagnostic.severity is not Severity.NOTE:
            click.echo(text(diagnostic, color=color) + "\n", err=True)


def print_error(problem: SkillcError) -> None:
    """Print the message of an expected error and its hint on standard error."""
    click.echo(click.style("error", fg="red", bold=True) + f": {_printable(problem.message)}", err=True)
    if problem.hint:
        click.echo(click.style("  hint", fg="cyan") + f": {_printable(problem.hint)}", err=True)


def _printable(text: str) -> str:
    """Escape characters that would move the cursor, except line ends."""
    from skillc.diagnostics.render import printable

    return "\n".join(printable(line) for line in text.split("\n"))


def report_bug(problem: Exception) -> None:
    """Print an unexpected error on one line and write the traceback to a file; SKILLC_DEBUG=1 prints it instead."""
    import tempfile
    import traceback

    trace = f"skillc {__version__}, Python {sys.version.split()[0]}\n\n" + "".join(traceback.format_exception(problem))
    if os.environ.get("SKILLC_DEBUG"):
        click.echo(trace, err=True)
        return
    with tempfile.NamedTemporaryFile("w", prefix="skillc-bug-", suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(trace)
    click.echo(f"this is a bug in skillc ({type(problem).__name__}); the details are in {file.name}", err=True)
