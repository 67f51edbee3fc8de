"""`skillc fmt`: programs in their one canonical form."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillc.cli.arguments import ProgramPath, json_option
from skillc.cli.output import print_json
from skillc.errors import SkillcError
from skillc.text import counted

if TYPE_CHECKING:
    from skillc.syntax.formatting import FormattedFile

_STDIN = Path("-")


@click.command(
    short_help="lay programs out in the one canonical form", epilog="Example: skillc fmt tickets.skill --check"
)
@click.argument("paths", nargs=-1, required=True, type=ProgramPath())
@click.option("--check", is_flag=True, help="Write nothing; print the names of the files that would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@json_option
def fmt(paths: tuple[Path, ...], check: bool, diff: bool, as_json: bool) -> int:
    """Lay PATHS out anew: files, all .skill files below folders, or `-` for standard input to standard output.

    There are no options for the form. Every comment stays, and a file is written only when the result is proved to be
    the same program. A file with a mistake in its syntax is left as it is; the others are formatted.

    Exit status: 0 all files are in the canonical form now, 1 some would change (with --check or --diff), 2 a file
    that can't be read, written or parsed.
    """
    writes = not (check or diff)
    if _STDIN in paths:
        if len(paths) > 1 or as_json:
            raise SkillcError("`-` stands alone: what is printed is the program")
        outcomes = [_standard_input(writes)]
    else:
        outcomes = _files(paths, writes)
    if as_json:
        _print_json(outcomes, writes)
    elif diff:
        _print_diff(outcomes)
    elif check:
        for outcome in outcomes:
            if outcome.changed:
                click.echo(outcome.name)
    _talk(outcomes, writes)
    if any(outcome.failed for outcome in outcomes):
        return 2
    return 1 if not writes and any(outcome.changed for outcome in outcomes) else 0


def _standard_input(writes: bool) -> FormattedFile:
    from skillc.syntax.formatting import format_bytes

    outcome = format_bytes("<stdin>", sys.stdin.buffer.read())
    if writes and outcome.text is not None:
        # As bytes, so that no platform makes other line ends of them.
        sys.stdout.buffer.write(outcome.text.encode())
        sys.stdout.buffer.flush()
    return outcome


def _files(paths: Sequence[Path], writes: bool) -> list[FormattedFile]:
    from skillc.cli.arguments import programs
    from skillc.syntax.formatting import format_file, save

    outcomes = []
    for path in programs(paths):
        outcome = format_file(path)
        outcomes.append(save(path, outcome) if writes else outcome)
    return outcomes


# ---- what is printed ------------------------------------------------------------------------------


def _print_json(outcomes: Sequence[FormattedFile], writes: bool) -> None:
    from skillc.diagnostics.formats import as_json

    done = "reformatted" if writes else "would reformat"
    files = [
        {
            "file": outcome.name,
            "status": "failed" if outcome.failed else done if outcome.changed else "unchanged",
            "error": outcome.problem.message if outcome.problem else None,
        }
        for outcome in outcomes
    ]
    found = as_json([each for outcome in outcomes for each in outcome.diagnostics])
    print_json({**found, "format_version": 1, "files": files})


def _print_diff(outcomes: Sequence[FormattedFile]) -> None:
    from skillc.diagnostics.render import difference

    colors = {"@": "cyan", "+": "green", "-": "red"}
    for outcome in outcomes:
        if not outcome.changed or outcome.text is None:
            continue
        # Not `splitlines`, which would also break at characters that end no line.
        made = difference(outcome.name, outcome.before.decode("utf-8"), outcome.text)
        for line in made.removesuffix("\n").split("\n"):
            head = line.startswith(("--- ", "+++ "))
            click.echo(click.style(line, bold=True) if head else click.style(line, fg=colors.get(line[:1])))


def _talk(outcomes: Sequence[FormattedFile], writes: bool) -> None:
    """Report errors, rewritten files and the totals on standard error."""
    from skillc.cli.output import say_error, show_diagnostics

    for outcome in outcomes:
        show_diagnostics(outcome.diagnostics)
        if outcome.problem:
            say_error(outcome.problem)
        elif writes and outcome.changed and outcome.name != "<stdin>":
            click.echo(f"reformatted {outcome.name}", err=True)
    failed = sum(outcome.failed for outcome in outcomes)
    changed = sum(outcome.changed and not outcome.failed for outcome in outcomes)
    parts = [
        _count(changed, "reformatted" if writes else "would be reformatted"),
        _count(len(outcomes) - changed - failed, "left unchanged" if writes else "already formatted"),
        _count(failed, "could not be formatted"),
    ]
    click.echo(", ".join(part for part in parts if part), err=True)


def _count(number: int, what: str) -> str:
    return f"{counted(number, 'file')} {what}" if number else ""
