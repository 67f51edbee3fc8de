"""`skillc breaking`: what got weaker since another version."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command(short_help="say what got weaker since another version")
@click.argument("programs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--against", required=True, metavar="REF", help="A branch, tag or commit; or a file with the other version."
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "concise", "json"]),
    default="text",
    show_default=True,
    help="How findings are printed.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def breaking(programs: tuple[Path, ...], against: str, style: str, as_json: bool) -> int:
    """Report by rule what got weaker in PROGRAMS since REF: gates, budgets, the test split, frozen sections, metrics.

    Each of PROGRAMS is a program, or a folder whose programs are all compared. Meaning is compared, not text, and the
    files that a program uses are read at REF too; `std` is this skillc's in both. Warnings say what could not be
    compared. `skillc diff` shows all that changed.

    Exit status: 0 nothing got weaker, 1 something did, 2 an error.
    """
    import json

    from skillc.language.render import concise, summary
    from skillc.language.render import text as drawn
    from skillc.versions.findings import compare
    from skillc.versions.show import as_json as to_json

    compared = compare(programs, against)
    findings = [found for each in compared for found in each.findings]
    if as_json or style == "json":
        click.echo(json.dumps(to_json(compared, against, "the working tree"), ensure_ascii=False, indent=2))
    elif style == "concise":
        for found in findings:
            click.echo(concise(found))
    else:
        for found in findings:
            click.echo(drawn(found, color=sys.stdout.isatty()) + "\n")
        for each in compared:
            if each.state == "new":
                click.echo(f"`{each.program}` is new since `{against}`: there is nothing to compare it with", err=True)
        click.echo(summary(findings))
    return 1 if any(each.weaker for each in compared) else 0
