"""`skillc check`: what is wrong with a program, without opening its data."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command(short_help="find mistakes in a program, without opening its data")
@click.argument("programs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "concise", "json"]),
    default="text",
    show_default=True,
    help="How findings are printed.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def check(programs: tuple[Path, ...], style: str, as_json: bool) -> int:
    """Find mistakes in PROGRAMS. Exit status: 0 clean, 1 findings, 2 a file that cannot be read."""
    import json

    from skillc.frontend import check_file
    from skillc.language.diagnostics import Severity
    from skillc.language.render import as_json as to_json
    from skillc.language.render import concise, summary
    from skillc.language.render import text as drawn

    checked = [check_file(path) for path in programs]
    diagnostics = [diagnostic for each in checked for diagnostic in each.diagnostics]
    if as_json or style == "json":
        click.echo(json.dumps(to_json(diagnostics), ensure_ascii=False, indent=2))
    elif style == "concise":
        for diagnostic in diagnostics:
            click.echo(concise(diagnostic))
    else:
        color = sys.stdout.isatty()
        for diagnostic in diagnostics:
            click.echo(drawn(diagnostic, color=color) + "\n")
        click.echo(summary(diagnostics))
    return 1 if any(d.severity is not Severity.NOTE for d in diagnostics) else 0
